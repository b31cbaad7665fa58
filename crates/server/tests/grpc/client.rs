//! A core of the server and clients of it, over pipes in one thread, so that time can be moved.

use std::rc::Rc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, StatusCode};
use prost::Message;
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_server::GrpcConfig;
use tidegate_server::test_util::GrpcCore;
use tidegate_store::{EmbeddedStore, ManualClock, Store, StoreConfig};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;

use crate::wire::{RateLimitRequest, RateLimitResponse};

pub(crate) const SHOULD_RATE_LIMIT: &str =
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// A server by these rules whose clock stands still.
pub(crate) struct Server<S = EmbeddedStore<ManualClock>>(Rc<GrpcCore<S>>);

/// A client of one connection.
#[derive(Clone)]
pub(crate) struct Client(SendRequest<Bytes>);

/// The answers to a call that has many.
pub(crate) struct Watch(RecvStream);

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) http: StatusCode,
    /// The headers, and the trailers among them.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Runs a test with time that moves when nothing else does.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

// === impl Server ===

impl<S> Clone for Server<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Server {
    pub(crate) fn new(rules: &str) -> Self {
        Self::with(rules, GrpcConfig::default(), LimiterConfig::default())
    }

    pub(crate) fn with(rules: &str, config: GrpcConfig, limiter: LimiterConfig) -> Self {
        let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::default());
        Self::with_store(store, rules, config, limiter)
    }
}

impl<S: Store + 'static> Server<S> {
    /// A server with any store.
    pub(crate) fn with_store(
        store: S,
        rules: &str,
        config: GrpcConfig,
        limiter: LimiterConfig,
    ) -> Self {
        let source = Source {
            name: "rules.yaml".to_owned(),
            bytes: rules.as_bytes().to_vec(),
        };
        let rules = compile(&[source], &CompileOptions::default())
            .unwrap()
            .rules;
        let core = GrpcCore::new(Limiter::new(store, rules, limiter), config);
        Self(Rc::new(core))
    }

    pub(crate) fn drain(&self) {
        self.0.drain();
    }

    /// A connection as bare bytes, and its end on the server's side.
    pub(crate) fn pipe(&self) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        (ours, self.serve(theirs))
    }

    /// Serves a connection.
    pub(crate) fn serve(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
    ) -> JoinHandle<()> {
        spawn_local(self.0.serve(io))
    }

    pub(crate) async fn connect(&self) -> Client {
        let (io, _) = self.pipe();
        Client::new(io).await
    }
}

// === impl Client ===

impl Client {
    pub(crate) async fn new(io: DuplexStream) -> Self {
        // By itself h2's client takes many small answers at once for an attack.
        let handshake = h2::client::Builder::new()
            .data_frame_budget(1 << 20)
            .handshake(io)
            .await;
        let (requests, connection) = handshake.unwrap();
        spawn_local(connection);
        Self(requests)
    }

    /// Asks, and expects an answer.
    pub(crate) async fn ask(&mut self, question: &RateLimitRequest) -> RateLimitResponse {
        let reply = self.call(SHOULD_RATE_LIMIT, &framed(question)).await;
        assert_eq!(reply.headers["grpc-status"], "0", "{reply:?}");
        RateLimitResponse::decode(&reply.body[5..]).unwrap()
    }

    /// Calls a method with whole frames as its body.
    pub(crate) async fn call(&mut self, path: &str, body: &[u8]) -> Reply {
        self.send(head(path).body(()).unwrap(), &[body]).await
    }

    /// Begins a call whose message is still to come.
    pub(crate) async fn open(
        &mut self,
        request: Request<()>,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut requests = self.0.clone().ready().await.unwrap();
        requests.send_request(request, false).unwrap()
    }

    /// Begins a call whose message never comes.
    pub(crate) async fn begin(&mut self, request: Request<()>) -> Reply {
        let (response, _stream) = self.open(request).await;
        Reply::read(response).await
    }

    /// Begins a call that has many answers.
    pub(crate) async fn watch(&mut self, path: &str, body: &[u8]) -> Watch {
        let (response, mut stream) = self.open(head(path).body(()).unwrap()).await;
        stream
            .send_data(Bytes::copy_from_slice(body), true)
            .unwrap();
        Watch(response.await.unwrap().into_body())
    }

    /// Sends a request whose body comes in these pieces.
    pub(crate) async fn send(&mut self, request: Request<()>, pieces: &[&[u8]]) -> Reply {
        let mut requests = self.0.clone().ready().await.unwrap();
        let (response, mut stream) = requests.send_request(request, pieces.is_empty()).unwrap();
        for (index, piece) in pieces.iter().enumerate() {
            let piece = Bytes::copy_from_slice(piece);
            // Who answers early need not read on.
            let _ = stream.send_data(piece, index + 1 == pieces.len());
            tokio::task::yield_now().await;
        }
        Reply::read(response).await
    }
}

// === impl Watch ===

impl Watch {
    /// The next message, each of which comes in a frame of its own.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.0.data().await.map(Result::unwrap)
    }

    /// The status at the end.
    pub(crate) async fn status(&mut self) -> String {
        let trailers = self.0.trailers().await.unwrap().unwrap();
        trailers["grpc-status"].to_str().unwrap().to_owned()
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) async fn read(response: ResponseFuture) -> Self {
        let response = response.await.unwrap();
        let http = response.status();
        let mut headers = response.headers().clone();
        let mut stream = response.into_body();
        let mut body = BytesMut::new();
        while let Some(data) = stream.data().await {
            let data = data.unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            body.extend_from_slice(&data);
        }
        headers.extend(stream.trailers().await.unwrap().unwrap_or_default());
        Reply {
            http,
            headers,
            body: body.freeze(),
        }
    }

    /// The message of an answer that has one.
    pub(crate) fn message<M: Message + Default>(&self) -> M {
        M::decode(&self.body[5..]).unwrap()
    }

    /// The status and its text.
    pub(crate) fn status(&self) -> (&str, &str) {
        let header = |name| self.headers.get(name).map_or("", |it| it.to_str().unwrap());
        (header("grpc-status"), header("grpc-message"))
    }
}

/// Asserts that no more time has passed, on the clock of the test.
#[track_caller]
pub(crate) fn assert_within(started: Instant, most: Duration) {
    let took = started.elapsed();
    assert!(took <= most, "{took:?}");
}

/// The head of a call.
pub(crate) fn head(path: &str) -> http::request::Builder {
    Request::post(format!("http://tidegate{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

/// A message with its length before it.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut frame).unwrap();
    frame.freeze()
}
