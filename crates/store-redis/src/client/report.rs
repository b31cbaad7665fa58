//! What a client tells of its servers.

use std::time::Duration;

use super::breaker::BreakerState;
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
    /// How many runtimes talk to it, each by a connection of its own.
    pub links: usize,
    /// What became of the calls.
    pub counts: Counts,
}
