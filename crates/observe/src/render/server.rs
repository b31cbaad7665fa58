//! The servers that all nodes have in common.

use tidegate_limiter::report::{BOUNDS, Breaker, ServerInfo, ServerReport};

use super::family::Family;
use super::page::{Buckets, Page, Seconds};

/// The most servers that are shown, by address: one that is set up wrong must not flood the page.
const MOST_SERVERS: usize = 128;

const SERVERS: Family = Family::gauge("tidegate_store_servers", "Servers of the store.");
const BREAKER: Family = Family::gauge(
    "tidegate_store_breaker",
    "1 for the state that the circuit breaker of a server is in, else 0.",
);
const OPENED: Family = Family::counter(
    "tidegate_store_breaker_opened_total",
    "Number of times that the circuit breaker of a server opened.",
);
const TIMEOUT: Family = Family::gauge(
    "tidegate_store_timeout_seconds",
    "Timeout of calls to a server, which adapts to the time that its replies take.",
);
const CONNECTIONS: Family = Family::gauge(
    "tidegate_store_connections",
    "Connections to a server that are open.",
);
const RECONNECTS: Family = Family::counter(
    "tidegate_store_reconnects_total",
    "Number of times that a lost connection to a server was reconnected.",
);
const CALLS: Family = Family::counter(
    "tidegate_store_calls_total",
    "Calls that were sent to a server; several may be one command.",
);
const WRITES: Family = Family::counter(
    "tidegate_store_writes_total",
    "Writes that calls went out in; calls that wait at one moment share one.",
);
const WAITING: Family = Family::gauge(
    "tidegate_store_waiting_calls",
    "Calls that wait for the reply of a server.",
);
const SPARED: Family = Family::counter(
    "tidegate_store_spared_calls_total",
    "Calls that were not sent because the circuit breaker was open.",
);
const REDIRECTED: Family = Family::counter(
    "tidegate_store_redirected_calls_total",
    "Calls that were sent again, for the server said where else.",
);
const ERRORS: Family = Family::counter(
    "tidegate_store_call_errors_total",
    "Calls that came to nothing, by what became of them.",
);
const DURATION: Family = Family::histogram(
    "tidegate_store_call_duration_seconds",
    "How long calls took that were answered.",
);
const USED_MEMORY: Family = Family::gauge(
    "tidegate_redis_used_memory_bytes",
    "Memory that Redis says it uses.",
);
const MAX_MEMORY: Family = Family::gauge(
    "tidegate_redis_max_memory_bytes",
    "Memory that Redis says it may use; absent if nothing bounds it.",
);
const CPU: Family = Family::counter(
    "tidegate_redis_cpu_seconds_total",
    "Processor time that Redis says it took.",
);
const EVICTED: Family = Family::counter(
    "tidegate_redis_evicted_keys_total",
    "Keys that Redis says it gave up before their time.",
);
const REDIS_CONNECTIONS: Family = Family::gauge(
    "tidegate_redis_connections",
    "Connections that Redis says it has, from everybody.",
);

/// Adds all that is known of `servers`.
pub(super) fn add(page: &mut Page, servers: &[ServerReport]) {
    page.single(&SERVERS, servers.len());
    let shown = &servers[..servers.len().min(MOST_SERVERS)];
    add_state(page, shown);
    add_calls(page, shown);
    add_info(page, shown);
}

fn add_state(page: &mut Page, servers: &[ServerReport]) {
    let mut series = page.family(&BREAKER);
    for server in servers {
        for state in Breaker::ALL {
            let labels = [("server", &*server.address), ("state", state.name())];
            series.add(&labels, u8::from(server.breaker == state));
        }
    }
    add_each(page, &OPENED, servers, |server| server.opened);
    let mut series = page.family(&TIMEOUT);
    for server in servers {
        series.add(&[("server", &*server.address)], Seconds(server.timeout));
    }
    add_each(page, &CONNECTIONS, servers, |server| server.connections);
    add_each(page, &RECONNECTS, servers, |server| server.reconnects);
}

fn add_calls(page: &mut Page, servers: &[ServerReport]) {
    add_each(page, &CALLS, servers, |server| server.calls);
    add_each(page, &WRITES, servers, |server| server.writes);
    add_each(page, &WAITING, servers, |server| server.waiting);
    add_each(page, &SPARED, servers, |server| server.spared);
    add_each(page, &REDIRECTED, servers, |server| server.redirected);
    let mut series = page.family(&ERRORS);
    for server in servers {
        for (kind, count) in server.errors.by_kind() {
            series.add(&[("server", &*server.address), ("kind", kind)], count);
        }
    }
    let mut series = page.family(&DURATION);
    for server in servers {
        let buckets = Buckets {
            bounds: &BOUNDS,
            counts: &server.latencies.buckets,
            sum_nanos: server.latencies.sum_nanos,
        };
        series.add_buckets(&[("server", &*server.address)], &buckets);
    }
}

/// What the servers say of themselves.
fn add_info(page: &mut Page, servers: &[ServerReport]) {
    let mut add = |family: &Family, number: fn(&ServerInfo) -> Option<u64>| {
        let mut series = page.family(family);
        for server in servers {
            if let Some(number) = server.info.as_ref().and_then(number) {
                series.add(&[("server", &*server.address)], number);
            }
        }
    };
    add(&USED_MEMORY, |info| Some(info.used_memory));
    add(&MAX_MEMORY, |info| info.max_memory);
    add(&EVICTED, |info| Some(info.evicted_keys));
    add(&REDIS_CONNECTIONS, |info| Some(info.clients));
    let mut series = page.family(&CPU);
    for server in servers {
        if let Some(info) = &server.info {
            series.add(&[("server", &*server.address)], Seconds(info.cpu));
        }
    }
}

/// One number of each server.
fn add_each(
    page: &mut Page,
    family: &Family,
    servers: &[ServerReport],
    number: impl Fn(&ServerReport) -> u64,
) {
    let mut series = page.family(family);
    for server in servers {
        series.add(&[("server", &*server.address)], number(server));
    }
}
