//! A server with an admin listener for one test, and a client that writes HTTP by hand.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tidegate_limiter::{Limiter, LimiterConfig};
use tidegate_observe::Observatory;
use tidegate_rules::{CompileOptions, Compiled, Limit, Report, Source, compile};
use tidegate_server::{
    Address, Admin, AdminConfig, AdminHooks, AdminReach, AdminToken, DrainConfig, Front,
    ListenConfig, Parts, ReloadOutcome, ReloadReport, ReloadTrigger, Reloading, ServerConfig,
    StateReport, Stop,
};
use tidegate_store::ManualClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::store::TestStore;

/// 2026-11-15 12:00:00 UTC since the epoch.
const NOON: Duration = Duration::from_hours(498_540);

pub(crate) const RULES: &str = "
domain: api
descriptors:
  - key: user_id
    rate_limits:
      - {unit: minute, requests_per_unit: 5, name: per_minute}
      - {unit: hour, requests_per_unit: 100, algorithm: token_bucket}
  - key: partner
  - key: plan
    value: free
    shadow_mode: true
    rate_limit: {unit: second, requests_per_unit: 1, replaces: [{name: per_minute}]}
";

pub(crate) const TOKEN: &str = "open-sesame";

/// A server under test, with a listener for requests, one for operators and one for scrapers. Its clock stands still.
pub(crate) struct Desk {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    metrics: SocketAddr,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) limiter: Arc<Limiter<TestStore>>,
    stop: mpsc::UnboundedSender<Stop>,
}

/// A program around the server.
#[derive(Debug)]
pub(crate) struct Hooks {
    level: Mutex<String>,
    last: Mutex<Option<ReloadReport>>,
    /// The rules that the next reload finds.
    pub(crate) rules: Mutex<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A request in the making.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// A token, and a listener that others can reach.
pub(crate) fn guarded() -> AdminConfig {
    AdminConfig {
        token: AdminToken::new(TOKEN),
        ..AdminConfig::default()
    }
}

/// No token, and a listener that nobody else can reach.
pub(crate) fn local() -> AdminConfig {
    AdminConfig {
        reach: AdminReach::ThisMachine,
        ..AdminConfig::default()
    }
}

pub(crate) fn compiled(yaml: &str) -> Result<Compiled, Report> {
    let source = Source {
        name: "rules.yaml".to_owned(),
        bytes: yaml.into(),
    };
    compile(&[source], &CompileOptions::default())
}

/// The caller `user_id=value`, as the API takes it.
pub(crate) fn user(value: &str) -> Value {
    json!({"domain": "api", "entries": [{"key": "user_id", "value": value}]})
}

// === impl Desk ===

impl Desk {
    pub(crate) fn start() -> Self {
        Self::start_with(local())
    }

    pub(crate) fn start_with(config: AdminConfig) -> Self {
        Self::start_as(config, Duration::ZERO)
    }

    /// A server that goes on for `delay` once it is told to stop.
    pub(crate) fn start_as(config: AdminConfig, delay: Duration) -> Self {
        let hooks = Arc::new(Hooks::new());
        let admin = admin(Arc::clone(&hooks), config);
        let limiter = Arc::clone(&admin.limiter);
        let parts = Parts {
            gateway: None,
            limiter: Arc::clone(&limiter),
            observatory: Arc::clone(&admin.observatory),
            admin: Some(Arc::new(admin)),
        };
        let server = tidegate_server::Server::bind(listeners(delay)).unwrap();
        let address = |front| {
            let bound = server.bound();
            let of_front = bound.iter().find(|it| it.front == front).unwrap();
            match of_front.address {
                Address::Tcp(address) => address,
                Address::Unix(_) => panic!("no TCP socket"),
            }
        };
        let (http, admin) = (address(Front::Http), address(Front::Admin));
        let metrics = address(Front::Metrics);
        let (stop, mut stops) = mpsc::unbounded_channel();
        let stop_asked = async move || match stops.recv().await {
            Some(stop) => stop,
            None => std::future::pending().await,
        };
        tokio::spawn(async move { server.run(&parts, stop_asked).await.unwrap() });
        Self {
            http,
            admin,
            metrics,
            hooks,
            limiter,
            stop,
        }
    }

    /// Tells the server to stop.
    pub(crate) fn stop(&self) {
        self.stop.send(Stop::AfterDelay).unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(&Ask::new("GET", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(&Ask::new("POST", path).body(&body.to_string()))
            .await
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Reply {
        exchange(self.admin, &ask.text(self.admin)).await
    }

    /// Asks the listener that has metrics alone.
    pub(crate) async fn scrape(&self, ask: &Ask) -> Reply {
        exchange(self.metrics, &ask.text(self.metrics)).await
    }

    /// Whether one request of a user may pass.
    pub(crate) async fn passes(&self, user_id: &str) -> bool {
        self.ask(user_id).await.status == 200
    }

    /// The answer to one request of a user.
    pub(crate) async fn ask(&self, user_id: &str) -> Reply {
        let entries = json!([{"key": "user_id", "value": user_id}]);
        let question = json!({"domain": "api", "descriptors": [{"entries": entries}]});
        let ask = Ask::new("POST", "/json").body(&question.to_string());
        let reply = exchange(self.http, &ask.text(self.http)).await;
        assert!(matches!(reply.status, 200 | 429), "{reply:?}");
        reply
    }
}

/// What an admin listener is made of.
pub(crate) fn admin(hooks: Arc<Hooks>, config: AdminConfig) -> Admin<TestStore> {
    let clock = ManualClock::default();
    clock.advance(NOON);
    let store = TestStore::new(clock);
    let rules = compiled(RULES).unwrap().rules;
    Admin {
        gateway: None,
        limiter: Arc::new(Limiter::new(store, rules, LimiterConfig::default())),
        observatory: Arc::new(Observatory::default()),
        hooks,
        config,
    }
}

fn listeners(delay: Duration) -> ServerConfig {
    let anywhere: SocketAddr = ([127, 0, 0, 1], 0).into();
    ServerConfig {
        http: vec![ListenConfig::new(anywhere)],
        admin: vec![ListenConfig::new(anywhere)],
        metrics: vec![ListenConfig::new(anywhere)],
        drain: DrainConfig {
            delay,
            ..DrainConfig::default()
        },
        ..ServerConfig::default()
    }
}

/// Sends `request` and reads until the server closes.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut bytes))
        .await
        .expect("an answer in time")
        .unwrap();
    Reply::parse(&String::from_utf8(bytes).unwrap())
}

// === impl Hooks ===

impl Hooks {
    pub(crate) fn new() -> Self {
        Self {
            level: Mutex::new("info".to_owned()),
            last: Mutex::new(None),
            rules: Mutex::new(RULES.to_owned()),
        }
    }
}

impl AdminHooks for Hooks {
    fn config(&self) -> Value {
        json!({"admin": {"token": "(redacted)"}})
    }

    fn reload(&self) -> Reloading<'_> {
        let (outcome, findings) = match compiled(&self.rules.lock().unwrap()) {
            Ok(compiled) => {
                let (domains, rules) = (1, compiled.rules.rules().count());
                let outcome = ReloadOutcome::Replaced { domains, rules };
                (outcome, compiled.warnings)
            }
            Err(report) => {
                let reason = "the rules have faults".to_owned();
                (ReloadOutcome::Kept { reason }, report)
            }
        };
        let report = ReloadReport {
            at: UNIX_EPOCH + NOON,
            trigger: ReloadTrigger::Admin,
            outcome,
            findings,
        };
        *self.last.lock().unwrap() = Some(report.clone());
        Box::pin(async { report })
    }

    fn rules_source(&self) -> String {
        "rules.yaml".to_owned()
    }

    fn sharing(&self, limit: &Limit) -> Vec<String> {
        vec![format!("strict: {}", limit.description())]
    }

    fn last_reload(&self) -> Option<ReloadReport> {
        self.last.lock().unwrap().clone()
    }

    fn log_level(&self) -> String {
        self.level.lock().unwrap().clone()
    }

    fn set_log_level(&self, level: &str) -> Result<(), String> {
        if !["debug", "info"].contains(&level) {
            return Err("write debug or info".to_owned());
        }
        level.clone_into(&mut self.level.lock().unwrap());
        Ok(())
    }

    fn state(&self) -> Option<StateReport> {
        Some(StateReport {
            written_at: Some(Duration::from_hours(500_000)),
            counters: 5,
            bytes: 6,
            failures: 7,
            fault: None,
        })
    }
}

// === impl Ask ===

impl Ask {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    /// Another header; `Host` replaces the usual one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn text(&self, address: SocketAddr) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            let _ = write!(head, "Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let (length, body) = (self.body.len(), &self.body);
        format!("{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
    }
}

// === impl Reply ===

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self {
            status: status.unwrap().parse().unwrap(),
            headers: lines.map(header).collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(its_name, _)| its_name == name)?;
        Some(value)
    }

    /// The body, which is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// What an error says.
    #[track_caller]
    pub(crate) fn detail(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem = self.json();
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().unwrap().to_owned()
    }

    /// The body of a 200.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}
