//! A server that has its counters in Redis.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};
use tidegate_store_redis::test_util::wait_until;

use crate::server::Server;

/// `tidegate serve`, asked over HTTP.
pub(crate) struct Node {
    server: Server,
    admin: String,
}

/// What a caller was told.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) is_allowed: bool,
    pub(crate) is_degraded: bool,
    /// What is left of the limit, if it was decided.
    pub(crate) remaining: Option<u64>,
    /// The header.
    pub(crate) retry_after: Option<String>,
}

/// The histogram of decisions: an upper bound in seconds, and how many took no longer.
pub(crate) struct Durations(Vec<(f64, f64)>);

/// How long a call to Redis may take here: on a loaded machine the 5 ms of production are soon over.
const TIMEOUT: (&str, &str) = ("TIDEGATE_STORE_TIMEOUT", "1s");

/// Enough for a breaker to open.
const N_AT_ONCE: usize = 8;

// === impl Node ===

impl Node {
    /// Starts one whose limits are all strict.
    pub(crate) fn start(store: &str) -> Self {
        Self::start_with(store, "strict")
    }

    /// Starts one whose limits are shared by `consistency`.
    pub(crate) fn start_with(store: &str, consistency: &str) -> Self {
        let args = [
            "--rules",
            "redis_fails.yaml",
            "--store",
            store,
            "--consistency",
            consistency,
        ];
        let server = Server::start_with(&args, &[TIMEOUT]);
        let admin = server.admin_address();
        Self { server, admin }
    }

    /// Asks once. Whatever happens to Redis, the answer is a yes or a no.
    #[track_caller]
    pub(crate) fn ask(&self, key: &str, value: &str) -> Answer {
        let question = json!({"domain": "faults", "descriptors": [{key: value}]}).to_string();
        let length = question.len();
        let head = format!("POST /v1/check HTTP/1.1\r\nContent-Length: {length}\r\n");
        let answer = exchange(
            &self.server.address,
            &format!("{head}Connection: close\r\n\r\n{question}"),
        );
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

    #[track_caller]
    pub(crate) fn ask_often(&self, key: &str, value: &str, times: usize) -> Vec<Answer> {
        (0..times).map(|_| self.ask(key, value)).collect()
    }

    /// Asks until a breaker is open, several at a time: each may wait for the timeout.
    pub(crate) fn ask_until_broken(&self) {
        wait_until("the breaker opens", || {
            thread::scope(|scope| {
                for _ in 0..N_AT_ONCE {
                    scope.spawn(|| self.ask("ample", "probe"));
                }
            });
            self.is_broken()
        });
    }

    /// Asks until Redis decides again.
    pub(crate) fn ask_until_mended(&self) {
        wait_until("Redis decides again", || {
            !self.ask("ample", "probe").is_degraded
        });
    }

    /// Whether a breaker is open.
    pub(crate) fn is_broken(&self) -> bool {
        self.sum("tidegate_store_degraded", "") > 0
    }

    /// The sum of the series of one metric that have `label`.
    pub(crate) fn sum(&self, name: &str, label: &str) -> u64 {
        sum(&self.get("/metrics"), name, label)
    }

    /// The body of a page of the admin listener.
    pub(crate) fn get(&self, path: &str) -> String {
        let question =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = exchange(&self.admin, &question);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.to_owned()
    }

    /// Where it speaks gRPC.
    pub(crate) fn grpc_address(&self) -> String {
        self.server.grpc_address()
    }

    /// Ends it, and gives its log.
    pub(crate) fn end(self) -> Vec<String> {
        self.server.end()
    }

    pub(crate) fn durations(&self) -> Durations {
        Durations::read(&self.get("/metrics"))
    }
}

// === impl Durations ===

impl Durations {
    pub(crate) fn read(page: &str) -> Self {
        let prefix = "tidegate_decision_duration_seconds_bucket{le=\"";
        let buckets = page.lines().filter_map(|line| {
            let (bound, count) = line.strip_prefix(prefix)?.split_once("\"} ")?;
            let bound = bound.replace("+Inf", "inf").parse().unwrap();
            Some((bound, count.parse().unwrap()))
        });
        Self(buckets.collect())
    }

    /// Those after `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let pairs = self.0.iter().zip(&before.0);
        let since = pairs.map(|((bound, after), (_, before))| (*bound, after - before));
        Self(since.collect())
    }

    /// The bound that half of them were within.
    pub(crate) fn median(&self) -> f64 {
        let (_, total) = self.0.last().unwrap();
        let half = |(_, count): &&(f64, f64)| *count * 2.0 >= *total;
        self.0.iter().find(half).unwrap().0
    }
}

/// The sum of the series of one metric that have `label`.
pub(crate) fn sum(page: &str, name: &str, label: &str) -> u64 {
    let of_series = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let is_it = rest.starts_with(['{', ' ']) && rest.contains(label);
        is_it.then(|| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
    };
    page.lines().filter_map(of_series).sum()
}

fn exchange(address: &str, question: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
