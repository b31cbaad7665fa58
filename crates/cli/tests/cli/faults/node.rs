//! A server that has its counters in Redis.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};
use tidegate_store_redis::test_util::wait_until;

use super::grpc;
use super::page::Page;
use crate::server::Server;

/// `tidegate serve`, and those who ask it.
pub(super) struct Node {
    server: Server,
    admin: String,
}

/// How long a node waits for Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Longer than any test: no call is late, however busy the machine.
    Endless,
    /// As long as a test can wait.
    Short,
}

/// By which door a caller comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// `/v1/check`, with a connection for each request.
    Http,
    /// Envoy's service, all requests at once.
    Grpc,
}

/// What a caller was told.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) is_allowed: bool,
    pub(super) is_degraded: bool,
    /// What is left of the limit, if it was decided and the door says so.
    pub(super) remaining: Option<u64>,
    /// The header, where there is one.
    pub(super) retry_after: Option<String>,
}

/// What several requests of one caller were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) n_allowed: usize,
    pub(super) n_degraded: usize,
}

/// Enough for a breaker to open.
const N_AT_ONCE: usize = 8;

// === impl Node ===

impl Node {
    /// Starts one whose limits are all strict.
    pub(super) fn start(store: &str, patience: Patience) -> Self {
        Self::start_with(store, patience, "strict")
    }

    /// Starts one whose limits are shared by `consistency`.
    pub(super) fn start_with(store: &str, patience: Patience, consistency: &str) -> Self {
        let rules = ["--rules", "redis_fails.yaml", "--store", store];
        let args = [&rules[..], &["--consistency", consistency]].concat();
        let timeout = match patience {
            Patience::Endless => "60s",
            Patience::Short => "1s",
        };
        let variables = [
            ("TIDEGATE_STORE_TIMEOUT", timeout),
            ("TIDEGATE_STORE_MIN_TIMEOUT", timeout),
        ];
        let server = Server::start_with(&args, &variables);
        let admin = server.admin_address();
        Self { server, admin }
    }

    /// Asks once, over HTTP. Whatever happens to Redis, the answer is a yes or a no.
    #[track_caller]
    pub(super) fn ask(&self, key: &str, value: &str) -> Answer {
        let question = json!({"domain": "faults", "descriptors": [{key: value}]}).to_string();
        let length = question.len();
        let head = format!("POST /v1/check HTTP/1.1\r\nContent-Length: {length}\r\n");
        let question = format!("{head}Connection: close\r\n\r\n{question}");
        let answer = exchange(&self.server.address, &question);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 429"),
            "{answer}"
        );
        let body: Value = serde_json::from_str(body).unwrap();
        let header = |line: &str| Some(line.strip_prefix("retry-after: ")?.to_owned());
        Answer {
            is_allowed: head.starts_with("HTTP/1.1 200"),
            is_degraded: body["degraded"] == true,
            remaining: body["limits"][0]["remaining"].as_u64(),
            retry_after: head.lines().find_map(header),
        }
    }

    /// Asks so many times.
    #[track_caller]
    pub(super) fn ask_often(
        &self,
        door: Door,
        key: &str,
        value: &str,
        times: usize,
    ) -> Vec<Answer> {
        match door {
            Door::Http => (0..times).map(|_| self.ask(key, value)).collect(),
            Door::Grpc => grpc::ask(&self.server.grpc_address(), key, value, times),
        }
    }

    /// Asks so many times, and counts the answers.
    #[track_caller]
    pub(super) fn tally(&self, door: Door, key: &str, value: &str, times: usize) -> Tally {
        let answers = self.ask_often(door, key, value, times);
        let count = |is_so: fn(&&Answer) -> bool| answers.iter().filter(is_so).count();
        Tally {
            n_allowed: count(|answer| answer.is_allowed),
            n_degraded: count(|answer| answer.is_degraded),
        }
    }

    /// Asks by all doors at once, as `value`, until a breaker is open: each may wait for the timeout. Whoever is on
    /// the way when Redis fails passes like everybody else.
    pub(super) fn ask_until_broken(&self, value: &str) {
        wait_until("the breaker opens", || {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let tally = self.tally(Door::Grpc, "ample", value, N_AT_ONCE);
                    assert_eq!(tally.n_allowed, N_AT_ONCE);
                });
                for _ in 0..N_AT_ONCE {
                    scope.spawn(|| assert!(self.ask("ample", value).is_allowed));
                }
            });
            self.is_broken()
        });
    }

    /// Asks until Redis decides again.
    pub(super) fn ask_until_mended(&self) {
        wait_until("Redis decides again", || {
            let answer = self.ask("ample", "probe");
            assert!(answer.is_allowed, "{answer:?}");
            !answer.is_degraded
        });
    }

    /// Whether a breaker is open.
    pub(super) fn is_broken(&self) -> bool {
        self.page().sum("tidegate_store_degraded", "") > 0
    }

    /// Its metrics.
    pub(super) fn page(&self) -> Page {
        Page::new(self.get("/metrics"))
    }

    /// What the admin API says of the servers.
    pub(super) fn servers(&self) -> Vec<Value> {
        let store: Value = serde_json::from_str(&self.get("/api/v1/store")).unwrap();
        store["servers"].as_array().unwrap().clone()
    }

    /// The body of a page of the admin listener.
    pub(super) fn get(&self, path: &str) -> String {
        get(&self.admin, path)
    }

    /// What it tells those who ask whether to send callers here: by HTTP, and whether it serves by gRPC.
    pub(super) fn health(&self) -> (String, bool) {
        let serves = grpc::is_serving(&self.server.grpc_address());
        (get(&self.server.address, "/healthcheck"), serves)
    }

    /// Where it speaks HTTP.
    pub(super) fn address(&self) -> &str {
        &self.server.address
    }

    /// Ends it, and gives its log.
    pub(super) fn end(self) -> Vec<String> {
        self.server.end()
    }
}

// === impl Door ===

impl Door {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Http, Self::Grpc];
}

fn get(address: &str, path: &str) -> String {
    let question = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = exchange(address, &question);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    body.to_owned()
}

fn exchange(address: &str, question: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
