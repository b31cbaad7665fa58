//! How the servers are doing, as every store tells it.

use std::time::Duration;

use tidegate_store::report::{
    Breaker, CallErrors, Latencies, ServerInfo, ServerReport, StoreKind, StoreReport,
};

use crate::client::{self, BreakerState, Client, Counts, Latency, pause};

/// How often servers are asked what they say of themselves.
const LOOK: Duration = Duration::from_secs(10);

/// How long they may take over it: nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks the servers of `client` again and again what they say of themselves, for as long as it runs. Reports
/// tell it.
pub async fn watch(client: &Client) {
    let client = client.with_timeout(PATIENCE);
    loop {
        // What a server that fails does not say, its breaker does.
        let _ = client.info().await;
        pause(LOOK).await;
    }
}

/// How the servers of `client` are doing.
pub fn report(client: &Client) -> StoreReport {
    let mut servers: Vec<_> = client.report().into_iter().map(server).collect();
    servers.sort_by(|one, other| one.address.cmp(&other.address));
    StoreReport {
        kind: StoreKind::Redis,
        servers,
        ..StoreReport::default()
    }
}

fn server(report: client::ServerReport) -> ServerReport {
    let Counts {
        calls,
        writes,
        connects,
        not_asked,
        redirected,
        ..
    } = report.counts;
    let connections = number(report.links);
    ServerReport {
        address: report.address.into(),
        breaker: match report.breaker {
            BreakerState::Closed => Breaker::Closed,
            BreakerState::Open => Breaker::Open,
        },
        opened: report.breaker_opened,
        fault: report.fault,
        connections,
        reconnects: connects.saturating_sub(connections),
        calls,
        writes,
        waiting: number(report.waiting),
        spared: not_asked,
        redirected,
        errors: errors(&report.counts),
        latencies: latencies(&report.counts.latency),
        info: report.info.as_ref().map(info),
    }
}

const fn errors(counts: &Counts) -> CallErrors {
    CallErrors {
        timeout: counts.timeouts,
        connection: counts.lost.saturating_add(counts.overloaded),
        reply: counts.refused,
        protocol: counts.faulty,
    }
}

fn latencies(latency: &Latency) -> Latencies {
    Latencies {
        buckets: latency.buckets,
        sum_nanos: nanos(latency.total),
    }
}

fn info(info: &client::ServerInfo) -> ServerInfo {
    ServerInfo {
        used_memory: info.used_memory,
        max_memory: info.max_memory,
        cpu: info.cpu_user + info.cpu_system,
        evicted_keys: info.evicted_keys,
        clients: info.clients,
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
