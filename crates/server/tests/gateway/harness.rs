//! A gateway for one test, an upstream that records every byte, and a client that sends any bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_gateway::{
    AccessConfig, DenialBody, EscapedSlashes, Gateway, GatewayBounds, GatewayConfig, HeaderEdits,
    RouteAction, RouteConfig, RouteMatch, UpstreamConfig,
};
use tidegate_identify::{ClientAddress, Identities, Proxies, Recipe, Recipes, Source, Trust};
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_observe::Observatory;
use tidegate_rules::{CompileOptions, Source as RulesSource, compile};
use tidegate_server::{Address, CoreCount, ListenConfig, Parts, Server, ServerConfig, Stop};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Far more than anything here takes.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Ten a day for each value of `x-user`, of `soft` one and one more, three failed payments a day for each card.
const RULES: &str = "
domain: gateway
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10}
  - key: user
    value: soft
    rate_limit: {unit: day, requests_per_unit: 1, soft: 100%}
  - key: card
    rate_limit: {unit: day, requests_per_unit: 3, count_status: [402]}
";

/// A gateway that runs. The store's clock stands still until it is moved.
pub(crate) struct RunningGateway {
    address: SocketAddr,
    stop: mpsc::UnboundedSender<Stop>,
    run: JoinHandle<()>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) observatory: Arc<Observatory>,
}

/// An upstream that records every byte of every connection and answers each request the same.
pub(crate) struct RecordingUpstream {
    pub(crate) address: SocketAddr,
    record: Arc<Record>,
    accepted: Arc<Notify>,
    finish: Arc<Notify>,
    task: JoinHandle<()>,
}

/// The bytes that an upstream received.
#[derive(Debug, Default)]
struct Record {
    requests: Mutex<Vec<Vec<u8>>>,
    /// What was no whole request when its connection ended.
    rests: Mutex<Vec<u8>>,
}

/// A response as its bytes came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) text: String,
}

// === impl RunningGateway ===

impl RunningGateway {
    /// A gateway in front of one upstream.
    pub(crate) fn start(upstream: SocketAddr) -> Self {
        Self::start_with(config(upstream), GatewayBounds::default())
    }

    pub(crate) fn start_with(config: GatewayConfig, bounds: GatewayBounds) -> Self {
        let cores = CoreCount::default();
        let gateway = Arc::new(Gateway::new(config, cores.0).unwrap());
        let server = Server::bind(ServerConfig {
            gateway: vec![ListenConfig {
                max_connections: bounds.max_connections,
                max_connections_per_address: bounds.max_connections_per_address,
                ..ListenConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)))
            }],
            gateway_bounds: bounds,
            cores,
            ..ServerConfig::default()
        })
        .unwrap();
        let Address::Tcp(address) = server.bound()[0].address else {
            panic!("an address of the network");
        };
        let (stop, mut stops) = mpsc::unbounded_channel();
        let stop_asked = async move || match stops.recv().await {
            Some(stop) => stop,
            None => std::future::pending().await,
        };
        let clock = Arc::new(ManualClock::default());
        let parts = parts(Arc::clone(&gateway), Arc::clone(&clock));
        let observatory = Arc::clone(&parts.observatory);
        let run = tokio::spawn(async move { server.run(&parts, stop_asked).await.unwrap() });
        Self {
            address,
            stop,
            run,
            gateway,
            clock,
            observatory,
        }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A connection from another address of this machine.
    pub(crate) async fn connect_from(&self, source: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((source, 0))).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    /// Sends bytes on a new connection and reads until the other side closes or a whole response is there.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Option<Received> {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        receive(&mut stream).await
    }

    /// Sends bytes on a new connection, and gives all that is received until the other side closes.
    pub(crate) async fn send_until_closed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut received = Vec::new();
        let read = timeout(LONG, stream.read_to_end(&mut received)).await;
        read.expect("the end of the connection").unwrap();
        received
    }

    pub(crate) fn ask_to_stop(&self) {
        self.stop.send(Stop::Now).unwrap();
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        timeout(LONG, self.run).await.expect("an end").unwrap();
    }
}

// === impl RecordingUpstream ===

impl RecordingUpstream {
    /// An upstream that sends `response` for every request.
    pub(crate) async fn start(response: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let record = Arc::<Record>::default();
        let accepted = Arc::<Notify>::default();
        let finish = Arc::<Notify>::default();
        let (records, was_accepted, finishes) = (
            Arc::clone(&record),
            Arc::clone(&accepted),
            Arc::clone(&finish),
        );
        let task = tokio::spawn(async move {
            // They end with this task.
            let mut connections = JoinSet::new();
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap().0,
                    () = finishes.notified() => break,
                };
                was_accepted.notify_one();
                connections.spawn(record_requests(stream, Arc::clone(&records), response));
            }
            connections.join_all().await;
        });
        Self {
            address,
            record,
            accepted,
            finish,
            task,
        }
    }

    /// An upstream that says `ok`.
    pub(crate) async fn ok() -> Self {
        Self::start(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await
    }

    /// Waits until the gateway has connected since the last such wait.
    pub(crate) async fn connected(&self) {
        let accepted = timeout(LONG, self.accepted.notified()).await;
        accepted.expect("a connection");
    }

    /// The requests so far, head and body, in the order of their ends.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.record.requests.lock().unwrap();
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        requests.iter().map(text).collect()
    }

    /// All requests, once the gateway has closed its connections. There must be nothing beside them.
    pub(crate) async fn all_requests(&mut self) -> Vec<String> {
        self.finish.notify_one();
        timeout(LONG, &mut self.task)
            .await
            .expect("an end")
            .unwrap();
        let rests = self.record.rests.lock().unwrap();
        assert!(rests.is_empty(), "{:?}", String::from_utf8_lossy(&rests));
        self.requests()
    }
}

impl Drop for RecordingUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads requests strictly: a line ends in CR LF, and nothing but a length or chunks gives a body.
async fn record_requests(mut stream: TcpStream, record: Arc<Record>, response: &'static [u8]) {
    let mut buffer = Vec::new();
    loop {
        let Some(length) = request_length(&buffer) else {
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk).await {
                Ok(n_bytes) if n_bytes > 0 => buffer.extend_from_slice(&chunk[..n_bytes]),
                _ => {
                    record.rests.lock().unwrap().append(&mut buffer);
                    return;
                }
            }
            continue;
        };
        let rest = buffer.split_off(length);
        let request = std::mem::replace(&mut buffer, rest);
        record.requests.lock().unwrap().push(request);
        if stream.write_all(response).await.is_err() {
            return;
        }
    }
}

/// The bytes of the first request, if it is complete.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let find = |bytes: &[u8], end: &[u8]| bytes.windows(end.len()).position(|it| it == end);
    let head_bytes = find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).to_ascii_lowercase();
    if head.contains("\r\ntransfer-encoding: chunked\r\n") {
        let end = find(&bytes[head_bytes..], b"0\r\n\r\n")? + 5;
        return Some(head_bytes + end);
    }
    let length = head.split("\r\ncontent-length: ").nth(1);
    let length: usize = length.map_or(0, |it| it.split('\r').next().unwrap().parse().unwrap());
    (bytes.len() >= head_bytes + length).then_some(head_bytes + length)
}

/// Reads one response with a length or chunks, or until the end; `None` if there is not even a head.
pub(crate) async fn receive(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.split("\r\ncontent-length: ").nth(1);
            let length = length.map(|it| it.split('\r').next().unwrap().parse::<usize>().unwrap());
            let is_chunked = lower.contains("transfer-encoding: chunked");
            let is_whole = match length {
                Some(length) => body.len() >= length,
                None if is_chunked => body.ends_with("0\r\n\r\n"),
                None => lower.starts_with("http/1.1 101") || lower.starts_with("http/1.1 204"),
            };
            if is_whole {
                return Some(Received::of(text));
            }
        }
        let mut chunk = vec![0; 16 * 1024];
        let read = timeout(LONG, stream.read(&mut chunk))
            .await
            .expect("in time");
        match read {
            Ok(n_bytes) if n_bytes > 0 => bytes.extend_from_slice(&chunk[..n_bytes]),
            _ => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return text.contains("\r\n\r\n").then(|| Received::of(text));
            }
        }
    }
}

// === impl Received ===

impl Received {
    fn of(text: String) -> Self {
        Self {
            status: text[9..12].parse().unwrap(),
            text,
        }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next()?;
        head.lines().skip(1).find_map(|line| {
            let (its_name, value) = line.split_once(": ")?;
            its_name.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn body(&self) -> &str {
        self.text
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }
}

/// Settings with one upstream and one route, limits by `x-user`, and no trusted proxy.
pub(crate) fn config(upstream: SocketAddr) -> GatewayConfig {
    let target = format!("http://{upstream}").parse().unwrap();
    GatewayConfig {
        domain: GatewayConfig::DOMAIN.to_owned(),
        routes: vec![route("all")],
        upstreams: vec![Arc::new(UpstreamConfig::new("api", vec![target]))],
        descriptors: Arc::new(
            Recipes::new(vec![
                Recipe::new([("user", Source::Header("x-user".to_owned()))]),
                Recipe::new([("card", Source::Header("x-card".to_owned()))]),
            ])
            .unwrap(),
        ),
        identities: Arc::new(Identities::default()),
        client_address: ClientAddress {
            trust: Trust::Proxies(Proxies::from_iter([])),
            ..ClientAddress::default()
        },
        access: AccessConfig::default(),
        cors: None,
        own_prefix: GatewayConfig::OWN_PREFIX.to_owned(),
        denial_body: DenialBody::Problem,
    }
}

/// A route for everything to the first upstream.
pub(crate) fn route(name: &str) -> RouteConfig {
    RouteConfig {
        name: name.to_owned(),
        matches: RouteMatch::default(),
        action: RouteAction::Forward {
            upstream: 0,
            rewrite: None,
        },
        escaped_slashes: EscapedSlashes::Check,
        descriptors: None,
        missing_token: None,
        require: Vec::new(),
        request_headers: HeaderEdits::default(),
        response_headers: HeaderEdits::default(),
        retry: None,
        max_body_bytes: None,
        total_timeout: None,
        websocket: None,
    }
}

fn parts(gateway: Arc<Gateway>, clock: Arc<ManualClock>) -> Parts<EmbeddedStore<Arc<ManualClock>>> {
    let source = RulesSource {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let Ok(compiled) = compile(&[source], &CompileOptions::default()) else {
        panic!("the rules are good");
    };
    let store = EmbeddedStore::with_clock(StoreConfig::default(), clock);
    let limiter = Limiter::new(store, compiled.rules, LimiterConfig::default());
    Parts {
        gateway: Some(gateway),
        limiter: Arc::new(limiter),
        observatory: Arc::default(),
        admin: None,
    }
}
