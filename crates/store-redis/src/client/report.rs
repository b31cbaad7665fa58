//! What a client tells of its servers.

use std::sync::Arc;
use std::time::Duration;

use super::breaker::BreakerState;
use super::info::ServerInfo;
use super::stats::Counts;

/// How one server fares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// Where it is.
    pub address: String,
    /// Whether it is asked.
    pub breaker: BreakerState,
    /// For how long that has been so.
    pub breaker_since: Duration,
    /// How often the breaker has opened.
    pub breaker_opened: u64,
    /// Why it is not asked, while the breaker is open.
    pub fault: Option<Arc<str>>,
    /// How many runtimes talk to it, each by a connection of its own.
    pub links: usize,
    /// How many calls wait for their reply.
    pub waiting: usize,
    /// What it said of itself when it was last asked, if it was: see [`Client::info`](super::Client::info).
    pub info: Option<ServerInfo>,
    /// What became of the calls.
    pub counts: Counts,
}
