//! A server for one test, and a client that writes HTTP by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{Limiter, LimiterConfig, RuleSet};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_server::{Address, HttpConfig, ListenConfig, Parts, ServerConfig, Stop};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// 2026-11-15 12:00:00.25 UTC, a quarter of a second into a minute, since the epoch.
const NOON: Duration = Duration::from_millis(1_794_744_000_250);

/// A server under test. Its clock stands still.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: mpsc::UnboundedSender<Stop>,
    serving: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(yaml: &str) -> Self {
        Self::start_with(yaml, HttpConfig::default()).await
    }

    pub(crate) async fn start_with(yaml: &str, http_bounds: HttpConfig) -> Self {
        let config = ServerConfig {
            http_bounds,
            ..config()
        };
        Self::start_as(yaml, config).await
    }

    #[expect(clippy::unused_async, reason = "who starts a server expects to wait")]
    pub(crate) async fn start_as(yaml: &str, config: ServerConfig) -> Self {
        let clock = ManualClock::default();
        clock.advance(NOON);
        let store = EmbeddedStore::with_clock(StoreConfig::default(), clock);
        let limiter = Limiter::new(store, rules(yaml), LimiterConfig::default());
        let parts = Parts {
            gateway: None,
            limiter: Arc::new(limiter),
            observatory: Arc::default(),
            admin: None,
        };
        let server = tidegate_server::Server::bind(config).unwrap();
        let Address::Tcp(address) = server.bound()[0].address else {
            panic!("the first listener is no TCP socket");
        };
        let (stop, mut stops) = mpsc::unbounded_channel();
        let stop_asked = async move || match stops.recv().await {
            Some(stop) => stop,
            None => std::future::pending().await,
        };
        let serving = tokio::spawn(async move { server.run(&parts, stop_asked).await.unwrap() });
        Self {
            address,
            stop,
            serving,
        }
    }

    /// Tells the server to stop, and gives what to wait for until it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        let _ = self.stop.send(Stop::AfterDelay);
        self.serving
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Posts `body` to `/json`.
    pub(crate) async fn ask(&self, body: &str) -> Reply {
        self.exchange(&post(body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        self.exchange(&request).await
    }

    /// Sends `request` and reads until the server closes.
    pub(crate) async fn exchange(&self, request: impl AsRef<[u8]>) -> Reply {
        let mut stream = self.connect().await;
        stream.write_all(request.as_ref()).await.unwrap();
        read_to_end(&mut stream).await
    }
}

/// One HTTP listener on a free port.
pub(crate) fn config() -> ServerConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    ServerConfig {
        http: vec![ListenConfig::new(any)],
        ..ServerConfig::default()
    }
}

/// A request to `/json` after which the connection closes.
pub(crate) fn post(body: &str) -> String {
    post_to("/json", body)
}

/// A request to `path` after which the connection closes.
pub(crate) fn post_to(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Reads all that comes until the server closes.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    tokio::time::timeout(Duration::from_mins(1), read)
        .await
        .expect("an answer in time")
        .unwrap();
    Reply::parse(&String::from_utf8(bytes).unwrap())
}

fn rules(yaml: &str) -> RuleSet {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: yaml.into(),
    };
    match compile(&[source], &CompileOptions::default()) {
        Ok(compiled) => compiled.rules,
        Err(report) => panic!("{report}"),
    }
}

// === impl Reply ===

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self {
            status: status.parse().unwrap(),
            headers: lines.map(header).collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(its_name, _)| its_name == name)
            .map(|(_, value)| value.as_str())
    }

    /// All headers of rate limits, in order.
    pub(crate) fn limit_headers(&self) -> Vec<String> {
        let is_ours = |name: &str| name.starts_with("x-ratelimit-") || name == "retry-after";
        let ours = self.headers.iter().filter(|(name, _)| is_ours(name));
        ours.map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }
}
