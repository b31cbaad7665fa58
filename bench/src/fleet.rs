//! Several nodes on one Redis, and a crowd of callers that counts what each was told: what the trials
//! of many nodes share.

mod crowd;
mod scrape;

use std::error::Error;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crowd::{Crowd, Pace, Told};
pub use scrape::{Histogram, counter};
use tidegate_store_redis::test_util::RedisServer;

use crate::service::Process;

/// What came of a trial.
pub struct Verdict {
    /// In words, for the page of results.
    pub section: String,
    /// What was promised and not kept.
    pub failures: Vec<String>,
}

/// Requests of one user in each window.
pub const LIMIT: u64 = 600;

/// The most that any one window of a user may see, if Redis loses its counts in it: those, what the
/// nodes let pass alone, and those of an empty Redis.
pub const LIMIT_WHEN_LOST: u64 = 3 * LIMIT;

/// The limit of each user.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How many requests.
    pub limit: u64,
    /// In each of these.
    pub windows: Windows,
    /// How long a decision waits for Redis, whatever Redis took before. A machine that the crowd keeps busy is
    /// no dead Redis.
    pub timeout: &'static str,
}

/// Fixed windows, by this machine's clock, which is Redis' too.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Their length, in whole seconds.
    pub length: Duration,
}

/// Some nodes and their Redis.
pub struct Fleet {
    /// The Redis.
    pub redis: RedisServer,
    /// The nodes.
    pub nodes: Vec<Node>,
    rules: PathBuf,
    flags: Vec<String>,
    timeout: &'static str,
    /// The windows of each user's limit.
    pub windows: Windows,
}

/// One node.
pub struct Node {
    /// The process.
    pub process: Process,
    /// Where its metrics are.
    pub metrics: SocketAddr,
}

// === impl Fleet ===

impl Fleet {
    /// Starts a Redis and so many nodes on it, each on one thread, with these flags besides.
    pub fn start(nodes: usize, terms: Terms, flags: &[&str]) -> Result<Self, Box<dyn Error>> {
        let name = format!("tidegate-fleet-{}.yaml", std::process::id());
        let rules = std::env::temp_dir().join(name);
        std::fs::write(&rules, text_of_rules(terms)?)?;
        let mut fleet = Self {
            redis: RedisServer::start(),
            nodes: Vec::new(),
            rules,
            flags: flags.iter().map(ToString::to_string).collect(),
            timeout: terms.timeout,
            windows: terms.windows,
        };
        for _ in 0..nodes {
            let node = fleet.node()?;
            fleet.nodes.push(node);
        }
        Ok(fleet)
    }

    /// A further node on the same Redis.
    pub fn node(&self) -> Result<Node, Box<dyn Error>> {
        let metrics = free_address()?;
        let store = self.redis.url();
        let mut flags = vec!["--store", &store];
        flags.extend(self.flags.iter().map(String::as_str));
        let address = metrics.to_string();
        let settings = [
            ("TIDEGATE_LISTENERS_METRICS_ADDRESS", address.as_str()),
            ("TIDEGATE_STORE_TIMEOUT", self.timeout),
            ("TIDEGATE_STORE_MIN_TIMEOUT", self.timeout),
        ];
        let process = Process::tidegate_with(&self.rules, 1, &flags, &settings)?;
        Ok(Node { process, metrics })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A file left behind in the temporary folder does no harm.
        let _ = std::fs::remove_file(&self.rules);
    }
}

/// Lets so much time pass: a trial takes as long as it says, whatever happens in it.
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// The same for one caller among many.
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

// === impl Windows ===

impl Windows {
    /// Which window it is now.
    pub fn now(self) -> u64 {
        self.after(Duration::ZERO)
    }

    /// Which window it will be after so long.
    pub fn after(self, time: Duration) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        (now.unwrap_or_default() + time).as_secs() / self.length.as_secs().max(1)
    }
}

fn text_of_rules(terms: Terms) -> Result<String, std::fmt::Error> {
    let mut text = String::from("domain: bench\ndescriptors:\n");
    let Terms { limit, windows, .. } = terms;
    let window = windows.length.as_secs();
    writeln!(
        text,
        "  - {{key: user, rate_limit: {{window: {window}s, limit: {limit}}}}}"
    )?;
    Ok(text)
}

/// An address that nobody listens at.
pub fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
