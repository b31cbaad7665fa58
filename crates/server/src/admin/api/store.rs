//! How the store is doing.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use tidegate_limiter::report::{
    RegionReport, ServerInfo, ServerReport, SharingReport, StoreReport,
};

use crate::admin::reply::{self, Reply};
use crate::admin::{AdminHooks, StateReport, timestamp};

#[derive(Debug, Serialize)]
struct StoreView<'a> {
    kind: &'static str,
    health: &'static str,
    used_bytes: u64,
    max_bytes: u64,
    evicted: u64,
    untracked: u64,
    state: Option<StateView>,
    servers: Vec<ServerView<'a>>,
    regions: Vec<RegionView<'a>>,
    sharing: Option<SharingView>,
}

#[derive(Debug, Serialize)]
struct StateView {
    written_at: Option<String>,
    counters: u64,
    bytes: u64,
    failures: u64,
    fault: Option<String>,
}

/// One server that all nodes have in common.
#[derive(Debug, Serialize)]
struct ServerView<'a> {
    address: &'a str,
    breaker: &'static str,
    fault: Option<&'a str>,
    opened: u64,
    connections: u64,
    reconnects: u64,
    calls: u64,
    writes: u64,
    waiting: u64,
    spared: u64,
    redirected: u64,
    errors: ErrorsView,
    mean_micros: Option<u64>,
    info: Option<InfoView>,
}

/// Another region.
#[derive(Debug, Serialize)]
struct RegionView<'a> {
    name: &'a str,
    health: &'static str,
    servers: Vec<ServerView<'a>>,
}

#[derive(Debug, Serialize)]
struct ErrorsView {
    timeout: u64,
    connection: u64,
    reply: u64,
    protocol: u64,
    overload: u64,
}

#[derive(Debug, Serialize)]
struct InfoView {
    used_memory: u64,
    max_memory: Option<u64>,
    cpu_millis: u64,
    evicted_keys: u64,
    connections: u64,
}

/// How this node shares limits with others.
#[derive(Debug, Serialize)]
struct SharingView {
    members: u64,
    leases: LeasesView,
    refusals: RefusalsView,
    eventual: EventualView,
    split: SplitView,
    standby: StandbyView,
}

#[derive(Debug, Serialize)]
struct LeasesView {
    keys: u64,
    draws: u64,
    drawn: u64,
    spent: u64,
    given_back: u64,
    lapsed: u64,
}

#[derive(Debug, Serialize)]
struct RefusalsView {
    remembered: u64,
    answered: u64,
}

#[derive(Debug, Serialize)]
struct EventualView {
    counters: u64,
    syncs: u64,
    failures: u64,
    pending: u64,
    overshoot: u64,
    worst_overshoot: u64,
    alone: u64,
    bytes: u64,
    evicted: u64,
    untracked: u64,
    age_millis: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SplitView {
    counters: u64,
    heartbeats: u64,
    failures: u64,
    age_millis: Option<u64>,
}

#[derive(Debug, Serialize)]
struct StandbyView {
    requests: u64,
    refused: u64,
    divided_by: u64,
}

/// How the store is doing.
pub(in crate::admin) fn store(store: &StoreReport, hooks: &dyn AdminHooks) -> Reply {
    reply::json(&StoreView {
        kind: store.kind.name(),
        health: store.health().name(),
        used_bytes: store.memory.used_bytes,
        max_bytes: store.memory.max_bytes,
        evicted: store.memory.evicted,
        untracked: store.memory.untracked,
        state: hooks.state().map(StateView::from),
        servers: store.servers.iter().map(ServerView::from).collect(),
        regions: store.regions.iter().map(RegionView::from).collect(),
        sharing: store.sharing.as_ref().map(SharingView::from),
    })
}

// === impl StateView ===

impl From<StateReport> for StateView {
    fn from(report: StateReport) -> Self {
        let written_at = report.written_at.map(|since| UNIX_EPOCH + since);
        Self {
            written_at: written_at.map(timestamp::rfc3339),
            counters: report.counters,
            bytes: report.bytes,
            failures: report.failures,
            fault: report.fault,
        }
    }
}

// === impl ServerView ===

impl<'a> From<&'a ServerReport> for ServerView<'a> {
    fn from(report: &'a ServerReport) -> Self {
        let latencies = &report.latencies;
        Self {
            address: &report.address,
            breaker: report.breaker.name(),
            fault: report.fault.as_deref(),
            opened: report.opened,
            connections: report.connections,
            reconnects: report.reconnects,
            calls: report.calls,
            writes: report.writes,
            waiting: report.waiting,
            spared: report.spared,
            redirected: report.redirected,
            errors: ErrorsView {
                timeout: report.errors.timeout,
                connection: report.errors.connection,
                reply: report.errors.reply,
                protocol: report.errors.protocol,
                overload: report.errors.overload,
            },
            mean_micros: (latencies.sum_nanos / 1_000).checked_div(latencies.count()),
            info: report.info.as_ref().map(InfoView::from),
        }
    }
}

// === impl RegionView ===

impl<'a> From<&'a RegionReport> for RegionView<'a> {
    fn from(report: &'a RegionReport) -> Self {
        Self {
            name: &report.name,
            health: report.health().name(),
            servers: report.servers.iter().map(ServerView::from).collect(),
        }
    }
}

// === impl InfoView ===

impl From<&ServerInfo> for InfoView {
    fn from(info: &ServerInfo) -> Self {
        Self {
            used_memory: info.used_memory,
            max_memory: info.max_memory,
            cpu_millis: millis(info.cpu),
            evicted_keys: info.evicted_keys,
            connections: info.clients,
        }
    }
}

// === impl SharingView ===

impl From<&SharingReport> for SharingView {
    fn from(report: &SharingReport) -> Self {
        Self {
            members: report.members,
            leases: LeasesView {
                keys: report.leases.keys,
                draws: report.leases.draws,
                drawn: report.leases.drawn,
                spent: report.leases.spent,
                given_back: report.leases.given_back,
                lapsed: report.leases.lapsed,
            },
            refusals: RefusalsView {
                remembered: report.refusals.remembered,
                answered: report.refusals.answered,
            },
            eventual: EventualView {
                counters: report.eventual.counters,
                syncs: report.eventual.syncs,
                failures: report.eventual.failures,
                pending: report.eventual.pending,
                overshoot: report.eventual.overshoot,
                worst_overshoot: report.eventual.worst_overshoot,
                alone: report.eventual.alone,
                bytes: report.eventual.bytes,
                evicted: report.eventual.evicted,
                untracked: report.eventual.untracked,
                age_millis: report.eventual.age.map(millis),
            },
            split: SplitView {
                counters: report.split.counters,
                heartbeats: report.split.heartbeats,
                failures: report.split.failures,
                age_millis: report.split.age.map(millis),
            },
            standby: StandbyView {
                requests: report.standby.requests,
                refused: report.standby.refused,
                divided_by: report.standby.divided_by,
            },
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
