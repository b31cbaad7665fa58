//! What tests, the fuzzer and the benchmarks reach without a listener. No part of the product.

use std::rc::Rc;
use std::sync::Arc;

use tidegate_limiter::{Limiter, Store};
use tidegate_observe::Observatory;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::door::{Door, Peer, SharedDoor};
use crate::drain::{self, DrainSwitch};
use crate::{Answers, AuthorizeConfig, GrpcConfig, grpc};

/// One core of a server, for the gRPC connections that a test hands it.
#[derive(Debug)]
pub struct GrpcCore<S> {
    door: SharedDoor<S>,
    config: GrpcConfig,
    switch: DrainSwitch,
    drain: drain::Drain,
}

// === impl GrpcCore ===

impl<S: Store + 'static> GrpcCore<S> {
    /// A core that asks `limiter`.
    pub fn new(limiter: Limiter<S>, config: GrpcConfig) -> Self {
        let (switch, drain) = drain::drain();
        let door = Door {
            limiter: Arc::new(limiter),
            recorder: Arc::new(Observatory::default()).recorder(),
            answers: Answers::default(),
            authorize: AuthorizeConfig::default(),
            load: Arc::default(),
        };
        Self {
            door: Rc::new(door),
            config,
            switch,
            drain,
        }
    }

    /// Serves one connection to its end, on the current `LocalSet`.
    pub fn serve<I>(&self, io: I) -> impl Future<Output = ()> + use<S, I>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let door = Rc::clone(&self.door);
        grpc::serve_connection(io, Peer::Unix, door, self.config, self.drain.clone())
    }

    /// Begins the end.
    pub fn drain(&self) {
        self.switch.begin();
    }
}
