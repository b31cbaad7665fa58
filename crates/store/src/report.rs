//! What a store tells of itself: plain numbers for metrics, health checks and operators.
//!
//! A store fills in what it knows and leaves the rest as it is by default. Nothing here is a client's
//! string, and all of it is bounded by what the operator set up.

mod latency;

use std::sync::Arc;
use std::time::Duration;

use crate::StoreStats;

pub use latency::{BOUNDS, Latencies};

/// How a store is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// Which store it is.
    pub kind: StoreKind,
    /// The counters in this node's memory.
    pub memory: StoreStats,
    /// The servers that all nodes have in common, by address.
    pub servers: Vec<ServerReport>,
    /// The other regions that are told what is admitted here. Whether they can be is not part of the store's
    /// health: it decides as it should.
    pub regions: Vec<RegionReport>,
    /// Decisions of those servers that the core would have made otherwise: a fault of one of the two.
    pub disagreements: u64,
    /// How this node shares limits with others, if it does.
    pub sharing: Option<SharingReport>,
}

/// What this node has been through with another region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionReport {
    /// What the operator calls it.
    pub name: Arc<str>,
    /// The servers of its store, by address.
    pub servers: Vec<ServerReport>,
}

/// Which store it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// In this node's memory alone.
    #[default]
    Memory,
    /// In Redis, in common with other nodes.
    Redis,
}

/// Whether a store decides as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// It does.
    Whole,
    /// A server does not answer: what it was to decide goes by `on_failure`.
    Degraded,
    /// The same, and the number of members is unknown: this node enforces whole limits, not its shares.
    Unshared,
    /// Memory is full of counters in use: new callers are decided on by `on_full`. A server may fail as well.
    Full,
}

/// What this node has been through with one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Where it is, as `host:port` or the path of a socket; never a password.
    pub address: Arc<str>,
    /// Whether it is asked.
    pub breaker: Breaker,
    /// How often the breaker opened.
    pub opened: u64,
    /// The timeout of a call that is made now.
    pub timeout: Duration,
    /// What went wrong last, if the breaker is not closed.
    pub fault: Option<Arc<str>>,
    /// Connections that are open.
    pub connections: u64,
    /// Connections that were made anew after one was lost.
    pub reconnects: u64,
    /// Calls that were sent.
    pub calls: u64,
    /// Writes that they went out in: several calls that wait at one moment share one.
    pub writes: u64,
    /// Calls that wait for their reply.
    pub waiting: u64,
    /// Calls that were not sent, for the breaker was open.
    pub spared: u64,
    /// Calls that were sent again, for the server said where else.
    pub redirected: u64,
    /// Calls that came to nothing.
    pub errors: CallErrors,
    /// How long calls took that were answered.
    pub latencies: Latencies,
    /// What the server said of itself last, if it did.
    pub info: Option<ServerInfo>,
}

/// Whether a server is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breaker {
    /// It is.
    #[default]
    Closed,
    /// It is not, for it failed; now and then somebody looks whether it is back.
    Open,
}

/// Calls that came to nothing, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallErrors {
    /// There was no reply in time.
    pub timeout: u64,
    /// There was no connection, or it was lost.
    pub connection: u64,
    /// The server said no: out of memory, read-only, wrong password, loading.
    pub reply: u64,
    /// What came back was no reply that was asked for.
    pub protocol: u64,
    /// It was not sent, for too many waited.
    pub overload: u64,
}

/// What a server says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Bytes in use.
    pub used_memory: u64,
    /// Bytes that may be; `None` if nothing bounds them.
    pub max_memory: Option<u64>,
    /// Processor time it took, user's and system's.
    pub cpu: Duration,
    /// Keys that made way for others before their time.
    pub evicted_keys: u64,
    /// Connections that it has.
    pub clients: u64,
}

/// How a node shares limits with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingReport {
    /// Nodes that share, this one included, as far as it knows.
    pub members: u64,
    /// Permits drawn ahead of need.
    pub leases: LeaseReport,
    /// Refusals remembered.
    pub refusals: RefusalReport,
    /// Totals that nodes exchange.
    pub eventual: EventualReport,
    /// Shares of limits.
    pub split: SplitReport,
    /// Decisions that this node made alone.
    pub standby: StandbyReport,
}

/// Permits drawn ahead of need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseReport {
    /// Keys for which permits are in hand.
    pub keys: u64,
    /// Times that permits were asked for.
    pub draws: u64,
    /// Permits that were drawn.
    pub drawn: u64,
    /// Permits that were spent.
    pub spent: u64,
    /// Permits that were given back.
    pub given_back: u64,
    /// Permits that ran out of time unspent.
    pub lapsed: u64,
}

/// Refusals remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalReport {
    /// Those in memory.
    pub remembered: u64,
    /// Requests that were refused by one.
    pub answered: u64,
}

/// Totals that nodes exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventualReport {
    /// Counters in memory.
    pub counters: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Exchanges that succeeded.
    pub syncs: u64,
    /// Exchanges that failed.
    pub failures: u64,
    /// Hits that some region does not know yet.
    pub pending: u64,
    /// Hits that were admitted above a limit, by all nodes together, as far as this one knows.
    pub overshoot: u64,
    /// The most above one limit at one time.
    pub worst_overshoot: u64,
    /// Hits that were decided by this node's share, because some region could not be reached.
    pub alone: u64,
    /// Counters that were evicted because memory was full.
    pub evicted: u64,
    /// Hits that were decided by `on_full`, because memory was full and no counter could be evicted.
    pub untracked: u64,
    /// Whether `on_full` decided in the last minute.
    pub is_full: bool,
    /// How long ago totals were last exchanged; `None` before the first time.
    pub age: Option<Duration>,
}

/// Shares of limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitReport {
    /// Counters of which this node has a share.
    pub counters: u64,
    /// Heartbeats that were heard.
    pub heartbeats: u64,
    /// Heartbeats that came to nothing.
    pub failures: u64,
    /// How long ago the last one was heard; `None` before the first.
    pub age: Option<Duration>,
}

/// Decisions that a node made alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandbyReport {
    /// Requests that were decided alone.
    pub requests: u64,
    /// Those of them that were refused.
    pub refused: u64,
    /// By how many a limit is divided for them.
    pub divided_by: u64,
    /// Bytes that their counters take.
    pub used_bytes: u64,
}

// === impl StoreReport ===

impl StoreReport {
    /// Whether the store decides as it should: every server is asked, and there is room for every counter.
    pub fn health(&self) -> StoreHealth {
        let sharing = self.sharing.as_ref();
        let is_full = sharing.is_some_and(|sharing| sharing.eventual.is_full);
        health_of(&self.servers).or_full(self.memory.is_full || is_full)
    }

    /// Whether a server fails and is not asked.
    pub fn is_degraded(&self) -> bool {
        health_of(&self.servers) != StoreHealth::Whole
    }

    /// Charges and hits that found no room for their counter and were decided by `on_full`.
    pub fn untracked(&self) -> u64 {
        let sharing = self.sharing.as_ref();
        let eventual = sharing.map_or(0, |sharing| sharing.eventual.untracked);
        self.memory.untracked.saturating_add(eventual)
    }
}

// === impl RegionReport ===

impl RegionReport {
    /// Whether the region can be told: every server of its is asked.
    pub fn health(&self) -> StoreHealth {
        health_of(&self.servers)
    }
}

// === impl StoreKind ===

impl StoreKind {
    /// As metrics and operators read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
        }
    }
}

// === impl StoreHealth ===

impl StoreHealth {
    /// The same health, or that of a full store if the number of members is known: an `eventual` limit runs out of
    /// room when a server fails.
    #[must_use]
    pub const fn or_full(self, is_full: bool) -> Self {
        match self {
            Self::Whole | Self::Degraded if is_full => Self::Full,
            health => health,
        }
    }

    /// As probes and operators read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "ok",
            Self::Degraded | Self::Unshared | Self::Full => "degraded",
        }
    }
}

// === impl Breaker ===

impl Breaker {
    /// All states.
    pub const ALL: [Self; 2] = [Self::Closed, Self::Open];

    /// As metrics and operators read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
        }
    }
}

// === impl CallErrors ===

impl CallErrors {
    /// Each kind by its name.
    pub const fn by_kind(&self) -> [(&'static str, u64); 5] {
        [
            ("timeout", self.timeout),
            ("connection", self.connection),
            ("reply", self.reply),
            ("protocol", self.protocol),
            ("overload", self.overload),
        ]
    }

    /// All kinds together.
    pub const fn total(&self) -> u64 {
        self.timeout
            .saturating_add(self.connection)
            .saturating_add(self.reply)
            .saturating_add(self.protocol)
            .saturating_add(self.overload)
    }
}

fn health_of(servers: &[ServerReport]) -> StoreHealth {
    let is_asked = |server: &ServerReport| server.breaker == Breaker::Closed;
    if servers.iter().all(is_asked) {
        StoreHealth::Whole
    } else {
        StoreHealth::Degraded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_whole_while_every_server_is_asked() {
        let server = |breaker| ServerReport {
            breaker,
            ..ServerReport::default()
        };
        let mut report = StoreReport::default();
        assert_eq!(report.health(), StoreHealth::Whole);
        report.servers.push(server(Breaker::Closed));
        assert_eq!(report.health(), StoreHealth::Whole);
        report.servers.push(server(Breaker::Open));
        assert_eq!(report.health(), StoreHealth::Degraded);
    }

    /// An eventual limit finds no room when a server fails: both are to be seen.
    #[test]
    fn a_full_table_of_eventual_limits_is_part_of_the_health() {
        let mut report = StoreReport::default();
        let mut sharing = SharingReport::default();
        sharing.eventual.is_full = true;
        report.sharing = Some(sharing);
        assert_eq!(report.health(), StoreHealth::Full);
        report.servers.push(ServerReport {
            breaker: Breaker::Open,
            ..ServerReport::default()
        });
        assert_eq!(report.health(), StoreHealth::Full);
        assert!(report.is_degraded());
    }
}
