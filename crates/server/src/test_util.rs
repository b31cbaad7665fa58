//! What tests, the fuzzer and the benchmarks reach without a listener. No part of the product.

use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_limiter::{Descriptor, Limiter, Store};
use tidegate_observe::Observatory;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::admin::Scope;
use crate::core_context::{CoreContext, SharedCoreContext};
use crate::drain::{self, DrainSwitch};
use crate::grpc::CallMemory;
use crate::peer::Peer;
use crate::wire::protobuf::write_response;
use crate::wire::{EscapedTexts, Question};
use crate::{Admin, Answers, AuthorizeConfig, GrpcConfig, admin, grpc};

/// One core of a server, for the gRPC connections that a test hands it.
#[derive(Debug)]
pub struct GrpcCore<S> {
    core: SharedCoreContext<S>,
    config: GrpcConfig,
    memory: Arc<CallMemory>,
    switch: DrainSwitch,
    drain: drain::Drain,
}

/// One core of a server, for the admin connections that a test hands it. They come over a unix socket.
#[derive(Debug)]
pub struct AdminCore<S> {
    admin: Arc<Admin<S>>,
    /// Dropped, it would end everything.
    _switch: DrainSwitch,
    drain: drain::Drain,
}

/// The gRPC connections for which memory is reserved.
const CONNECTIONS: usize = 64;

// === impl GrpcCore ===

impl<S: Store + 'static> GrpcCore<S> {
    /// A core that asks `limiter`.
    pub fn new(limiter: Limiter<S>, config: GrpcConfig) -> Self {
        let (switch, drain) = drain::drain();
        let core = CoreContext {
            limiter: Arc::new(limiter),
            recorder: Rc::new(Arc::new(Observatory::default()).recorder()),
            answers: Answers::default(),
            authorize: AuthorizeConfig::default(),
            rejected_questions: Arc::default(),
            load: Arc::default(),
        };
        Self {
            core: Rc::new(core),
            config,
            memory: Arc::new(CallMemory::new(config.max_memory_bytes, CONNECTIONS)),
            switch,
            drain,
        }
    }

    /// Serves one connection to its end, on the current `LocalSet`.
    pub fn serve<I>(&self, io: I) -> impl Future<Output = ()> + use<S, I>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let core = Rc::clone(&self.core);
        let (memory, drain) = (Arc::clone(&self.memory), self.drain.clone());
        grpc::serve_connection(
            io,
            Peer::Unix,
            core,
            self.config,
            memory,
            Arc::default(),
            drain,
        )
    }

    /// Begins the end.
    pub fn drain(&self) {
        self.switch.begin();
    }
}

// === impl AdminCore ===

impl<S: Store + 'static> AdminCore<S> {
    /// A core that answers operators.
    pub fn new(admin: Admin<S>) -> Self {
        let (switch, drain) = drain::drain();
        Self {
            admin: Arc::new(admin),
            _switch: switch,
            drain,
        }
    }

    /// Serves one connection to its end.
    pub fn serve<I>(&self, io: I) -> impl Future<Output = ()> + use<S, I>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (admin, drain) = (Arc::clone(&self.admin), self.drain.clone());
        admin::serve_connection(
            io,
            Peer::Unix,
            Scope::Everything,
            admin,
            Arc::default(),
            drain,
        )
    }
}

/// What a `RateLimitRequest` in protobuf asks, or why it asks nothing.
pub fn read_question<T>(
    message: &[u8],
    see: impl FnOnce(&str, &[Descriptor<'_>], u64) -> T,
) -> Result<T, String> {
    let texts = EscapedTexts::default();
    let mut question = Question::default();
    let read = question
        .read(message, &texts)
        .map_err(|error| error.to_string());
    read.map(|()| see(question.domain, &question.descriptors(), question.hits()))
}

/// Writes the `RateLimitResponse` in protobuf to the `RateLimitRequest` in `message`.
pub fn answer_question<S: Store>(
    message: &[u8],
    limiter: &Limiter<S>,
    out: &mut BytesMut,
) -> Result<(), String> {
    let texts = EscapedTexts::default();
    let mut question = Question::default();
    let read = question
        .read(message, &texts)
        .map_err(|error| error.to_string());
    read?;
    let (domain, hits) = (question.domain, question.hits());
    let verdict = limiter.check_now(domain, &question.descriptors(), hits);
    let verdict = verdict.map_err(|error| error.to_string())?;
    write_response(&verdict, &Answers::default(), out);
    Ok(())
}
