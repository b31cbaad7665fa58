//! Tests of connections over a pipe, in paused time. No route fits any request, so all are answered 404.

mod http2;
mod tls;

use std::future::pending;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_answer::Headers;
use tidegate_identify::{ClientAddress, Identities, Peer, Recipe, Recipes, Source as Identity};
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_observe::Observatory;
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, StoreConfig};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::detect::FIRST_BYTES;
use super::{ClientConnection, ClientProtocol, ServerDrain, serve_connection};
use crate::GatewayBounds;
use crate::config::{AccessConfig, DenialBody, GatewayConfig};
use crate::gateway::Gateway;
use crate::thread::GatewayThread;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

/// A client's end of a connection.
struct Client {
    stream: DuplexStream,
    /// The room of the last read at the gateway's end.
    last_read: Arc<AtomicUsize>,
}

/// A drain whose grace is over when the test says so.
struct TestDrain(oneshot::Receiver<()>);

/// The gateway's end of a connection.
struct ProbedStream<I = DuplexStream> {
    stream: I,
    last_read: Arc<AtomicUsize>,
}

// === impl Client ===

impl Client {
    /// A connection that bounds hold and that is closed if it is idle when `drain` is over. `n_bytes` fit into it.
    fn connect(bounds: GatewayBounds, drain: impl ServerDrain + 'static, n_bytes: usize) -> Self {
        Self::connect_to(thread(bounds), drain, n_bytes)
    }

    fn connect_to(
        thread: Rc<GatewayThread<EmbeddedStore>>,
        drain: impl ServerDrain + 'static,
        n_bytes: usize,
    ) -> Self {
        let (stream, theirs) = duplex(n_bytes);
        let last_read = Arc::<AtomicUsize>::default();
        let probed = ProbedStream {
            stream: theirs,
            last_read: Arc::clone(&last_read),
        };
        let connection = ClientConnection {
            peer: Peer::Unix,
            is_tls: false,
            protocol: None,
            certificate: None,
        };
        spawn_local(serve_connection(
            probed,
            connection,
            Arc::default(),
            thread,
            drain,
        ));
        Self { stream, last_read }
    }

    fn new() -> Self {
        Self::connect(bounds(), pending(), 64 * 1024)
    }

    /// True if nothing but the first bytes of a head is waited for.
    fn is_parked(&self) -> bool {
        self.last_read.load(Ordering::Relaxed) == FIRST_BYTES
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads a response of the gateway, and returns its head.
    async fn receive(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        assert!(head.starts_with("http/1.1 404"), "{head}");
        head
    }

    async fn get(&mut self) -> String {
        self.send(GET).await;
        let head = self.receive().await;
        // The gateway runs until it waits.
        sleep(Duration::from_millis(1)).await;
        head
    }

    /// The time until the gateway closes the connection, without a byte.
    async fn closed_after(&mut self) -> Duration {
        let began = Instant::now();
        assert_eq!(self.stream.read(&mut [0]).await.unwrap(), 0);
        began.elapsed()
    }
}

// === impl TestDrain ===

impl ServerDrain for TestDrain {
    async fn begun(&mut self) {
        self.closing().await;
    }

    async fn closing(&mut self) {
        (&mut self.0).await.unwrap();
    }
}

// === impl ProbedStream ===

impl<I: AsyncRead + Unpin> AsyncRead for ProbedStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.last_read.store(buffer.remaining(), Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ProbedStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn bounds() -> GatewayBounds {
    GatewayBounds {
        head_timeout: 10 * SECOND,
        idle_timeout: 60 * SECOND,
        max_requests: 4,
        ..GatewayBounds::default()
    }
}

fn thread(bounds: GatewayBounds) -> Rc<GatewayThread<EmbeddedStore>> {
    let descriptor = Recipe::new([("user", Identity::Header("x-user".to_owned()))]);
    let config = GatewayConfig {
        domain: GatewayConfig::DOMAIN.to_owned(),
        routes: Vec::new(),
        upstreams: Vec::new(),
        descriptors: Arc::new(Recipes::new(vec![descriptor]).unwrap()),
        identities: Arc::new(Identities::default()),
        client_address: ClientAddress::default(),
        access: AccessConfig::default(),
        cors: None,
        own_prefix: GatewayConfig::OWN_PREFIX.to_owned(),
        denial_body: DenialBody::Problem,
    };
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: "domain: gateway".into(),
    };
    let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
        panic!("the rules are good");
    };
    let store = EmbeddedStore::new(StoreConfig::default());
    let limiter = Limiter::new(store, compiled.rules, LimiterConfig::default());
    Rc::new(GatewayThread::new(
        Arc::new(Gateway::new(config, NonZeroUsize::MIN).unwrap()),
        Arc::new(limiter),
        Rc::new(Arc::new(Observatory::default()).recorder()),
        Headers::default(),
        bounds,
    ))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build_local(LocalOptions::default())
        .unwrap();
    runtime.block_on(test);
}

#[test]
fn an_idle_connection_is_parked_and_serves_on() {
    run(async {
        let mut client = Client::new();
        sleep(SECOND).await;
        assert!(client.is_parked(), "before the first request");
        client.get().await;
        assert!(client.is_parked(), "after the first request");
        sleep(5 * SECOND).await;
        client.get().await;
        assert!(client.is_parked(), "after a long pause");
        client.get().await;
        assert!(!client.is_parked(), "while requests follow each other");
        sleep(2 * SECOND).await;
        assert!(client.is_parked(), "after the client was busy");
    });
}

#[test]
fn a_busy_connection_stays_with_hyper() {
    run(async {
        let bounds = GatewayBounds {
            max_requests: 100,
            ..bounds()
        };
        let mut client = Client::connect(bounds, pending(), 64 * 1024);
        client.get().await;
        for _ in 0..20 {
            sleep(SECOND * 9 / 10).await;
            client.get().await;
            assert!(!client.is_parked());
        }
        let closed_after = client.closed_after().await;
        assert!(
            closed_after > 59 * SECOND && closed_after <= 62 * SECOND,
            "{closed_after:?}"
        );
    });
}

#[test]
fn no_byte_of_a_pipelined_head_is_lost() {
    for at in 0..=GET.len() {
        run(async {
            let mut client = Client::new();
            let (begin, end) = GET.split_at(at);
            client.send(&[GET, begin].concat()).await;
            client.receive().await;
            sleep(5 * SECOND).await;
            client.send(&[end, GET].concat()).await;
            client.receive().await;
            client.receive().await;
            sleep(5 * SECOND).await;
            client.get().await;
        });
    }
}

#[test]
fn a_parked_connection_is_closed_in_time() {
    run(async {
        let mut client = Client::new();
        client.get().await;
        let closed_after = client.closed_after().await;
        assert!(
            closed_after > 59 * SECOND && closed_after <= 60 * SECOND,
            "{closed_after:?}"
        );

        let mut client = Client::new();
        client.get().await;
        sleep(30 * SECOND).await;
        client.send(b"G").await;
        let closed_after = client.closed_after().await;
        assert!(
            closed_after > 9 * SECOND && closed_after <= 11 * SECOND,
            "{closed_after:?}"
        );
    });
}

#[test]
fn a_parked_connection_ends_with_the_drain_or_its_client() {
    run(async {
        let (drain, drained) = oneshot::channel::<()>();
        let mut client = Client::connect(bounds(), TestDrain(drained), 64 * 1024);
        client.get().await;
        assert!(client.is_parked());
        drain.send(()).unwrap();
        assert_eq!(client.closed_after().await, Duration::ZERO);

        let mut client = Client::new();
        client.get().await;
        client.stream.shutdown().await.unwrap();
        assert_eq!(client.closed_after().await, Duration::ZERO);
    });
}

#[test]
fn the_next_response_closes_the_connection_once_the_server_leaves() {
    run(async {
        let thread = thread(bounds());
        let mut client = Client::connect_to(Rc::clone(&thread), pending(), 64 * 1024);
        assert!(!client.get().await.contains("connection: close"));
        assert!(client.is_parked());
        thread.leave();
        sleep(30 * SECOND).await;
        assert!(client.get().await.contains("connection: close"));
        client.closed_after().await;
    });
}

#[test]
fn a_request_that_arrived_before_the_drain_is_answered() {
    run(async {
        let (drain, drained) = oneshot::channel::<()>();
        let mut client = Client::connect(bounds(), TestDrain(drained), 64 * 1024);
        client.get().await;
        client.send(GET).await;
        drain.send(()).unwrap();
        client.receive().await;
        client.closed_after().await;
    });
}

#[test]
fn requests_of_a_connection_are_counted_across_pauses() {
    run(async {
        let mut client = Client::new();
        for number in 1..=4 {
            let head = client.get().await;
            assert_eq!(head.contains("connection: close"), number == 4);
            sleep(5 * SECOND).await;
        }
        client.closed_after().await;
    });
}

#[test]
fn the_rest_of_a_body_is_never_a_request() {
    for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        run(async {
            let mut client = Client::new();
            client.get().await;
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
            client.send(head.as_bytes()).await;
            client.receive().await;
            // The client sends what the framing makes part of the body; the connection may be closed by now.
            let _ = client.stream.write_all(GET).await;
            sleep(5 * SECOND).await;
            let mut rest = Vec::new();
            client.stream.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"");
        });
    }
}

#[test]
fn a_connection_is_parked_after_a_body_too() {
    // The first read takes the shortest one whole. Of the others, hyper reads the rest after the response.
    for n_bytes in [2, 1_500, 3_000, 9_000] {
        run(async {
            let mut client = Client::new();
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {n_bytes}\r\n\r\n");
            let body = vec![b'x'; n_bytes];
            client.send(&[head.as_bytes(), &body].concat()).await;
            client.receive().await;
            sleep(3 * SECOND).await;
            assert!(client.is_parked(), "{n_bytes}");
            client.get().await;
            let closed_after = client.closed_after().await;
            assert!(closed_after > 59 * SECOND, "{n_bytes}: {closed_after:?}");
        });
    }
}

#[test]
fn a_response_that_waits_for_its_reader_is_whole() {
    run(async {
        let mut client = Client::connect(bounds(), pending(), GET.len());
        for _ in 0..3 {
            client.send(GET).await;
            sleep(5 * SECOND).await;
            assert!(!client.is_parked());
            client.receive().await;
            sleep(5 * SECOND).await;
            assert!(client.is_parked());
        }
    });
}

#[test]
fn a_client_of_known_protocol_is_parked_until_its_first_byte() {
    run(async {
        let (stream, mut theirs) = duplex(1024);
        let last_read = Arc::<AtomicUsize>::default();
        let probed = ProbedStream {
            stream,
            last_read: Arc::clone(&last_read),
        };
        let thread = thread(bounds());
        let connection = ClientConnection {
            peer: Peer::Unix,
            is_tls: true,
            protocol: Some(ClientProtocol::Http1),
            certificate: None,
        };
        spawn_local(serve_connection(
            probed,
            connection,
            Arc::default(),
            thread,
            pending(),
        ));
        sleep(SECOND).await;
        assert_eq!(last_read.load(Ordering::Relaxed), FIRST_BYTES);
        let began = Instant::now();
        assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(began.elapsed(), 59 * SECOND);
    });
}
