//! A server for one test, and what is said to it over any kind of connection.

use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_server::{Address, Certificates, ListenConfig, Parts, Server, ServerConfig, Stop};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 1000}
";

pub(crate) const QUESTION: &str =
    r#"{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "alice"}]}]}"#;

/// The question above as Envoy sends it: domain, descriptor, entry, key, value.
const MESSAGE: &[u8] = b"\x0a\x03api\x12\x0f\x0a\x0d\x0a\x04user\x12\x05alice";

/// The method of the rate limit service.
pub(crate) const ASK: &str =
    "http://test/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Far more than anything here takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A server that runs. Its clock stands still.
pub(crate) struct Running {
    pub(crate) addresses: Vec<Address>,
    pub(crate) certificates: Certificates,
    stop: mpsc::UnboundedSender<Stop>,
    run: JoinHandle<()>,
}

/// An HTTP answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

// === impl Running ===

impl Running {
    pub(crate) fn start(config: ServerConfig) -> Self {
        let server = Server::bind(config).unwrap();
        let addresses = server.bound().into_iter().map(|it| it.address).collect();
        let certificates = server.certificates();
        let (stop, mut stops) = mpsc::unbounded_channel();
        let stop_asked = async move || match stops.recv().await {
            Some(stop) => stop,
            None => pending().await,
        };
        let parts = parts();
        let run = tokio::spawn(async move { server.run(&parts, stop_asked).await.unwrap() });
        Self {
            addresses,
            certificates,
            stop,
            run,
        }
    }

    /// The address of the listener at `index`, over the network.
    pub(crate) fn tcp(&self, index: usize) -> SocketAddr {
        match self.addresses[index] {
            Address::Tcp(address) => address,
            Address::Unix(_) => panic!("no address of the network"),
        }
    }

    pub(crate) async fn connect(&self, index: usize) -> TcpStream {
        TcpStream::connect(self.tcp(index)).await.unwrap()
    }

    pub(crate) fn ask_to_stop(&self, stop: Stop) {
        self.stop.send(stop).unwrap();
    }

    /// Drops the server while it runs.
    pub(crate) async fn cancel(self) {
        self.run.abort();
        assert!(self.run.await.unwrap_err().is_cancelled());
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        timeout(LONG, self.run).await.expect("an end").unwrap();
    }
}

fn parts() -> Parts<EmbeddedStore<ManualClock>> {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
        panic!("the rules are good");
    };
    let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::default());
    let limiter = Limiter::new(store, compiled.rules, LimiterConfig::default());
    Parts {
        gateway: None,
        limiter: Arc::new(limiter),
        observatory: Arc::default(),
        admin: None,
    }
}

/// A listener on a free port.
pub(crate) fn any_port() -> ListenConfig {
    ListenConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// A folder for one test, empty.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The head of a request with `length` bytes to follow.
pub(crate) fn head(request: &str, length: usize) -> String {
    format!("{request} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n")
}

/// A request to `/json`.
pub(crate) fn post() -> String {
    head("POST /json", QUESTION.len()) + QUESTION
}

/// Sends an HTTP request and reads one answer; `None` if the connection breaks off before.
pub(crate) async fn try_ask(
    io: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &str,
) -> Option<Reply> {
    io.write_all(request.as_bytes()).await.ok()?;
    io.flush().await.ok()?;
    read_reply(io).await
}

/// Sends an HTTP request and reads its answer.
pub(crate) async fn ask(io: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> Reply {
    try_ask(io, request).await.expect("an answer")
}

/// Reads one HTTP answer with a length.
pub(crate) async fn read_reply(io: &mut (impl AsyncRead + Unpin)) -> Option<Reply> {
    let mut text = String::new();
    loop {
        let mut bytes = [0; 4096];
        let read = timeout(LONG, io.read(&mut bytes)).await.expect("in time");
        let count = read.ok().filter(|count| *count > 0)?;
        text += std::str::from_utf8(&bytes[..count]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<usize>().unwrap())
        });
        if body.len() == length.expect("a length") {
            return Some(Reply {
                status: head[9..12].parse().unwrap(),
                head: head.to_owned(),
                body: body.to_owned(),
            });
        }
    }
}

/// Calls the rate limit service over gRPC and gives the status of the call; `None` if there was no
/// connection.
pub(crate) async fn try_call<I>(io: I) -> Option<String>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, connection) = h2::client::handshake(io).await.ok()?;
    tokio::spawn(connection);
    let mut requests = requests.ready().await.ok()?;
    let (response, mut stream) = requests.send_request(grpc_head(ASK), false).ok()?;
    stream.send_data(grpc_message(), true).ok()?;
    let (status, _) = grpc_answer(response.await.ok()?).await;
    Some(status)
}

/// Asks `grpc.health.v1` and gives the number of its answer: 1 is serving, 2 is not.
pub(crate) async fn grpc_health(io: TcpStream) -> u8 {
    let (requests, connection) = h2::client::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let mut requests = requests.ready().await.unwrap();
    let check = "http://test/grpc.health.v1.Health/Check";
    let (response, mut stream) = requests.send_request(grpc_head(check), false).unwrap();
    stream.send_data(Bytes::from_static(&[0; 5]), true).unwrap();
    let (status, message) = grpc_answer(response.await.unwrap()).await;
    assert_eq!(status, "0");
    // Five bytes of the frame, then field 1.
    assert_eq!(message[..6], [0, 0, 0, 0, 2, 8]);
    message[6]
}

pub(crate) fn grpc_head(method: &str) -> http::Request<()> {
    http::Request::post(method)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap()
}

pub(crate) fn grpc_message() -> Bytes {
    let length = u32::try_from(MESSAGE.len()).unwrap();
    let frame = [&[0], &length.to_be_bytes()[..], MESSAGE].concat();
    frame.into()
}

/// The status of a call, and what came before it.
pub(crate) async fn grpc_answer(response: http::Response<h2::RecvStream>) -> (String, Vec<u8>) {
    let early = response.headers().get("grpc-status").cloned();
    let mut stream = response.into_body();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data.unwrap();
        stream.flow_control().release_capacity(data.len()).unwrap();
        body.extend_from_slice(&data);
    }
    let trailers = stream.trailers().await.unwrap();
    let late = trailers.and_then(|trailers| trailers.get("grpc-status").cloned());
    let status = late.or(early).expect("a status");
    (status.to_str().unwrap().to_owned(), body)
}
