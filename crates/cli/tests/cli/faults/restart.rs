//! Nodes that restart, or join, while Redis is gone: what all nodes together admit in a window.
//!
//! Real processes and a real Redis, at default settings. Each node has a client that asks for every limit more than three
//! times as often as the limit allows. A window counts the requests that were sent and answered inside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tidegate_store::{Clock, SystemClock};
use tidegate_store_redis::test_util::{RedisServer, wait_until};

use crate::program::scratch;
use crate::server::Server;

const LIMIT: usize = 100;
const WINDOW: Duration = Duration::from_secs(4);

/// The time between two rounds of a client: over three times the limit, from four nodes together.
const PAUSE: Duration = Duration::from_millis(45);

/// Each limit by its key and fields.
const LIMITS: [(&str, &str); 6] = [
    ("strict_window", "consistency: strict"),
    ("leased_window", "consistency: leased"),
    ("split_window", "consistency: split"),
    ("eventual_window", "consistency: eventual"),
    ("strict_log", "consistency: strict, algorithm: sliding_log"),
    (
        "leased_bucket",
        "consistency: leased, algorithm: token_bucket",
    ),
];

/// Nodes that share a Redis.
struct Fleet {
    folders: Folders,
    redis: RedisServer,
    folder: PathBuf,
    nodes: Vec<Mutex<Option<Server>>>,
    is_over: AtomicBool,
    admissions: Mutex<Vec<Admission>>,
}

/// The state folders of nodes.
#[derive(Clone, Copy, Debug)]
enum Folders {
    /// One for all, as on one machine.
    Shared,
    /// One for each.
    Own,
}

/// One admitted request, by the machine's clock in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Admission {
    key: &'static str,
    sent: u64,
    answered: u64,
}

// === impl Fleet ===

impl Fleet {
    /// Starts `n_nodes` nodes that have counted each other, and leaves room for `n_more`.
    fn start(name: &str, folders: Folders, n_nodes: usize, n_more: usize) -> Self {
        let folder = scratch(name);
        let mut rules = "domain: faults\ndescriptors:\n".to_owned();
        for (key, fields) in LIMITS {
            let limit = format!(
                "{{ limit: {LIMIT}, window: {}s, {fields} }}",
                WINDOW.as_secs()
            );
            writeln!(rules, "  - {{ key: {key}, rate_limit: {limit} }}").unwrap();
        }
        fs::write(folder.join("rules.yaml"), rules).unwrap();
        let fleet = Self {
            folders,
            redis: RedisServer::start(),
            folder,
            nodes: (0..n_nodes + n_more).map(|_| Mutex::new(None)).collect(),
            is_over: AtomicBool::new(false),
            admissions: Mutex::default(),
        };
        for node in 0..n_nodes {
            fleet.start_node(node);
        }
        for node in 0..n_nodes {
            fleet.wait_for_members(node, n_nodes);
        }
        fleet
    }

    fn start_node(&self, node: usize) {
        let (rules, url) = (self.folder.join("rules.yaml"), self.redis.url());
        let args = ["--rules", rules.to_str().unwrap(), "--store", &url];
        let state = self.state_folder(node);
        let variables = [("STATE_DIRECTORY", state.to_str().unwrap())];
        let server = Server::start_with(&args, &variables);
        *self.node(node) = Some(server);
    }

    fn state_folder(&self, node: usize) -> PathBuf {
        self.folder.join(match self.folders {
            Folders::Shared => "state".to_owned(),
            Folders::Own => format!("state-{node}"),
        })
    }

    fn stop_node(&self, node: usize, signal: &str) {
        let server = self.node(node).take().expect("a running node");
        server.stop(signal);
    }

    /// Waits until a node has written that there are so many members.
    fn wait_for_members(&self, node: usize, members: usize) {
        wait_until("the number of members is written", || {
            let files = fs::read_dir(self.state_folder(node)).unwrap();
            let texts = files.filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
            let is_counted = |text: &str| {
                ["heartbeat", "eventual"]
                    .iter()
                    .all(|way| text.contains(&format!("{way} {members} ")))
            };
            texts.into_iter().any(|text| is_counted(&text))
        });
    }

    fn node(&self, node: usize) -> MutexGuard<'_, Option<Server>> {
        self.nodes[node]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks all nodes for all limits while `act` runs, and two windows longer. `act` returns when the outage began;
    /// returns the span from then to the end.
    fn drive(&self, act: impl FnOnce() -> u64) -> Range<u64> {
        thread::scope(|scope| {
            for node in 0..self.nodes.len() {
                scope.spawn(move || self.ask(node));
            }
            pause(WINDOW / 2);
            let outage = act();
            pause(WINDOW * 2);
            self.is_over.store(true, Ordering::Relaxed);
            outage..now()
        })
    }

    /// One client: asks one node for each limit in turn, over one connection for as long as the node runs.
    fn ask(&self, node: usize) {
        while !self.is_over.load(Ordering::Relaxed) {
            let address = self
                .node(node)
                .as_ref()
                .map(|server| server.address.clone());
            let connection = address.and_then(|address| TcpStream::connect(address).ok());
            if let Some(connection) = connection {
                self.ask_over(BufReader::new(connection));
            }
            pause(PAUSE);
        }
    }

    /// Ends when the connection does.
    fn ask_over(&self, mut connection: BufReader<TcpStream>) {
        while !self.is_over.load(Ordering::Relaxed) {
            for (key, _) in LIMITS {
                let sent = now();
                let Some(is_allowed) = exchange(&mut connection, key) else {
                    return;
                };
                if is_allowed {
                    let answered = now();
                    let mut admissions = self.admissions.lock().unwrap();
                    admissions.push(Admission {
                        key,
                        sent,
                        answered,
                    });
                }
            }
            pause(PAUSE);
        }
    }

    /// The most that was admitted of each limit in a window that lies in `span`: a window of the clock, any span as
    /// long as the window for a log, and for a bucket what it admitted in the mean beyond its burst.
    fn worst(&self, span: &Range<u64>) -> BTreeMap<&'static str, usize> {
        let admissions = self.admissions.lock().unwrap();
        let length = u64::try_from(WINDOW.as_nanos()).unwrap();
        let mut worst = BTreeMap::new();
        for (key, fields) in LIMITS {
            let of_key = |it: &&Admission| it.key == key && it.sent >= span.start;
            let admitted: Vec<Admission> = admissions.iter().filter(of_key).copied().collect();
            let within = |start: u64| {
                let end = start + length;
                let is_inside = |it: &&Admission| it.sent >= start && it.answered < end;
                admitted.iter().filter(is_inside).count()
            };
            let most = if fields.contains("sliding_log") {
                admitted.iter().map(|it| within(it.sent)).max()
            } else if fields.contains("token_bucket") {
                let windows = (span.end - span.start).div_ceil(length);
                let beyond = admitted.len().saturating_sub(LIMIT);
                Some(beyond / usize::try_from(windows).unwrap())
            } else {
                let edges = span.start.div_ceil(length)..span.end / length;
                let counts: Vec<usize> = edges.map(|edge| within(edge * length)).collect();
                eprintln!("{key}: {counts:?}");
                counts.into_iter().max()
            };
            worst.insert(key, most.unwrap_or(0));
        }
        eprintln!("worst window of {LIMIT}: {worst:?}");
        worst
    }

    /// No window has more than `most` of any limit.
    #[track_caller]
    fn admits_at_most(&self, span: &Range<u64>, most: usize) {
        let worst = self.worst(span);
        assert!(
            worst.values().all(|it| *it <= most),
            "more than {most}: {worst:?}"
        );
    }
}

/// Asks for one limit; `None` if the connection ended.
fn exchange(connection: &mut BufReader<TcpStream>, key: &str) -> Option<bool> {
    let question = json!({"domain": "faults", "descriptors": [{key: "all"}]}).to_string();
    let length = question.len();
    let head = format!("POST /v1/check HTTP/1.1\r\nHost: node\r\nContent-Length: {length}\r\n");
    let question = format!("{head}\r\n{question}");
    connection.get_mut().write_all(question.as_bytes()).ok()?;
    let (mut status, mut length) = (String::new(), 0);
    connection.read_line(&mut status).ok()?;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    connection.read_exact(&mut vec![0; length]).ok()?;
    let is_allowed = status.starts_with("HTTP/1.1 200");
    assert!(is_allowed || status.starts_with("HTTP/1.1 429"), "{status}");
    Some(is_allowed)
}

/// Lets time pass: traffic has a pace, and outages last.
fn pause(span: Duration) {
    let end = now() + u64::try_from(span.as_nanos()).unwrap();
    wait_until("time passes", || now() >= end);
}

fn now() -> u64 {
    SystemClock::new().now().nanos()
}

/// Restarts each of the nodes in turn.
fn restart_all(fleet: &Fleet, signal: &str) {
    for node in 0..fleet.nodes.len() {
        fleet.stop_node(node, signal);
        fleet.start_node(node);
        pause(Duration::from_millis(500));
    }
}

#[test]
fn a_rolling_restart_in_an_outage_admits_the_limit() {
    let fleet = Fleet::start("restart_term", Folders::Shared, 4, 0);
    let span = fleet.drive(|| {
        fleet.redis.kill();
        let outage = now();
        // The plans of split limits are over.
        pause(WINDOW * 2);
        restart_all(&fleet, "-TERM");
        outage
    });
    fleet.admits_at_most(&span, LIMIT + LIMIT / 10);
}

#[test]
fn killed_nodes_admit_one_share_more_each() {
    let fleet = Fleet::start("restart_kill", Folders::Own, 4, 0);
    let span = fleet.drive(|| {
        fleet.redis.kill();
        let outage = now();
        pause(WINDOW);
        restart_all(&fleet, "-KILL");
        outage
    });
    // All four may be killed in one window.
    fleet.admits_at_most(&span, LIMIT * 2 + LIMIT / 10);
}

#[test]
fn a_fleet_that_grows_in_an_outage_admits_by_its_growth() {
    let fleet = Fleet::start("restart_grow", Folders::Shared, 2, 2);
    let span = fleet.drive(|| {
        fleet.redis.kill();
        let outage = now();
        pause(WINDOW);
        fleet.start_node(2);
        fleet.start_node(3);
        outage
    });
    fleet.admits_at_most(&span, LIMIT * 2 + LIMIT / 10);
}

#[test]
fn a_flushed_redis_that_dies_leaves_the_shares_as_they_were() {
    let fleet = Fleet::start("restart_flush", Folders::Own, 4, 0);
    let span = fleet.drive(|| {
        fleet.redis.must(&["FLUSHALL"]);
        // As a rule one or two nodes have sent a heartbeat since.
        pause(Duration::from_millis(400));
        fleet.redis.kill();
        now()
    });
    let mut worst = fleet.worst(&span);
    // Its plans were flushed too, and new ones are made of fewer members.
    worst.remove("split_window");
    let most = LIMIT + LIMIT / 10;
    assert!(
        worst.values().all(|it| *it <= most),
        "more than {most}: {worst:?}"
    );
}
