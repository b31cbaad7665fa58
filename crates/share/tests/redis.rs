//! Leases through a real Redis: nodes that hammer one limit, and processes that are killed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../tests/support/cargo.rs"]
mod cargo;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cargo::cargo_build;
use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec};
use tidegate_share::{SharedConfig, SharedStore};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode,
    OnFull, Store, StoreConfig,
};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::RedisServer;

type Node = Arc<SharedStore<RedisStore>>;

const LIMIT: u64 = 5_000;

/// So long that next to never an edge of it passes while a test runs, and short enough for the limit to be lent.
const WINDOW: Duration = Duration::from_hours(6);

fn node(server: &RedisServer) -> Node {
    let mut config = ClientConfig::from_url(&server.url()).unwrap();
    // The machine that runs tests may be busy; what a slow call comes to is tested elsewhere.
    let patience = Some(Duration::from_secs(10));
    (config.min_timeout, config.timeout) = (patience, patience);
    let remote = RedisStore::new(Client::new(&config).unwrap());
    let local = EmbeddedStore::new(StoreConfig {
        max_memory: 1 << 20,
    });
    Arc::new(SharedStore::new(remote, local, SharedConfig::default()))
}

fn quota(limit: u64) -> Quota {
    let spec = QuotaSpec {
        limit,
        window: WINDOW,
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).unwrap()
}

async fn is_admitted(node: &Node, quota: &Quota, consistency: Consistency) -> bool {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &["ann"],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency,
    };
    let mut decisions = Decisions::new();
    let charges = [charge];
    let charged = node.charge(&charges, Charging::AllOrNone, &mut decisions);
    charged.await.unwrap().admission == Admission::Admitted
}

/// Asks until the limit is used up, strictly, and says how often that was admitted.
async fn use_up(node: &Node, quota: &Quota) -> u64 {
    let mut n_admitted = 0;
    while is_admitted(node, quota, Consistency::Strict).await {
        n_admitted += 1;
    }
    n_admitted
}

/// Scripts that the server has run.
fn n_scripts(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let stats = format!("{stats:?}");
    let calls = stats.split("cmdstat_evalsha:calls=").nth(1).unwrap_or("0");
    let digits: String = calls.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Two nodes that hammer one limit admit exactly that, and ask for few of their decisions.
#[tokio::test]
async fn two_nodes_admit_what_one_limit_allows() {
    let server = RedisServer::start();
    let nodes = [node(&server), node(&server)];
    let mut tasks = tokio::task::JoinSet::new();
    for place in 0..8 {
        let node = Arc::clone(&nodes[place % 2]);
        tasks.spawn(async move {
            let quota = quota(LIMIT);
            let mut n_admitted = 0;
            for _ in 0..1_000 {
                n_admitted += u64::from(is_admitted(&node, &quota, Consistency::Leased).await);
                tokio::task::yield_now().await;
            }
            n_admitted
        });
    }
    let by_lease: u64 = tasks.join_all().await.into_iter().sum();
    let scripts = n_scripts(&server);
    for node in &nodes {
        node.finish().await;
    }
    let strictly = use_up(&nodes[0], &quota(LIMIT)).await;
    assert_eq!(by_lease + strictly, LIMIT, "{by_lease} by lease");
    assert!(scripts < 8_000 / 10, "{scripts} calls for 8,000 requests");
}

#[tokio::test]
async fn hammering_a_refused_key_costs_no_call() {
    let server = RedisServer::start();
    let (node, five) = (node(&server), quota(5));
    while is_admitted(&node, &five, Consistency::Leased).await {}
    // A refusal is remembered for a second: a round in which that ends proves nothing, but is rare.
    for _ in 0..20 {
        assert!(!is_admitted(&node, &five, Consistency::Leased).await);
        let before = n_scripts(&server);
        for _ in 0..1_000 {
            assert!(!is_admitted(&node, &five, Consistency::Leased).await);
        }
        if n_scripts(&server) == before {
            return;
        }
    }
    panic!("each thousand refusals cost calls");
}

/// Processes that are killed at any moment take their permits along, and no permit is spent twice.
#[tokio::test]
async fn killed_processes_spend_nothing_twice() {
    let server = RedisServer::start();
    let program = build();
    let start = || Lessee::start(&program, &server);
    let mut admitted = 0;
    for n_read in [10, 300, 1_500] {
        let mut lessees = [start(), start()];
        let [doomed, _] = &mut lessees;
        doomed.read(n_read);
        admitted += lessees.map(Lessee::kill).iter().sum::<u64>();
    }
    let node = node(&server);
    let left = use_up(&node, &quota(LIMIT)).await;
    assert!(
        admitted + left <= LIMIT,
        "{admitted} by processes that were killed, {left} left"
    );
    assert!(admitted >= 1_810, "{admitted}");
}

/// A node as a process.
struct Lessee {
    child: Child,
    output: ChildStdout,
    n_read: u64,
}

// === impl Lessee ===

impl Lessee {
    fn start(program: &Path, server: &RedisServer) -> Self {
        let mut child = Command::new(program)
            .args([&server.url(), &LIMIT.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            output: child.stdout.take().unwrap(),
            child,
            n_read: 0,
        }
    }

    /// Reads until so many requests were admitted, or it has ended.
    fn read(&mut self, n: usize) {
        let mut bytes = vec![0; n];
        let mut filled = 0;
        while filled < n {
            match self.output.read(&mut bytes[filled..]).unwrap() {
                0 => break,
                n_bytes => filled += n_bytes,
            }
        }
        self.n_read += filled as u64;
    }

    /// Kills it, and says how many requests it admitted in its life.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        self.n_read + rest.len() as u64
    }
}

impl Drop for Lessee {
    fn drop(&mut self) {
        // Whoever was killed already does not mind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the example and gives its path.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = cargo_build()
        // As scripts/test builds the workspace, so that nothing is built again for other features.
        .args([
            "--workspace",
            "--all-features",
            "--example",
            "lessee",
            "--target-dir",
        ])
        .arg(target)
        .status()
        .unwrap();
    assert!(built.success(), "the example does not build");
    target.join("debug/examples/lessee")
}
