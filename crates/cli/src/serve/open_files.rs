//! The limit of open files, which bounds connections whatever the settings say.

use std::iter;

use tidegate_gateway::{Gateway, UpstreamConfig};
use tidegate_server::{ListenConfig, ServerConfig};
use tidegate_store_redis::client::Deployment;
use tracing::warn;

use crate::config::{Config, Engine, RedisUrl};

/// Files besides connections and those of each thread: listeners, health checks, files that are read again.
const BASE: u64 = 96;

/// The event queue of a thread and what wakes it: four were counted.
const OF_THREAD: u64 = 4;

/// Threads besides those that answer: operators' and that of the listeners.
const MORE_THREADS: u64 = 2;

/// The masters of a Redis Cluster, which are not known at start: more than most have.
const CLUSTER_MASTERS: u64 = 32;

/// The fewest connections of a listener, however few files there are.
const LEAST_CONNECTIONS: usize = 16;

/// Raises the limit of open files as far as the system allows. If all connections of the settings would exceed it, warns and lowers
/// the connections of each listener, so that files for reloads and operators are left.
pub(super) fn raise_limit(config: &Config, server: &mut ServerConfig, gateway: Option<&Gateway>) {
    let Some(limit) = system::raise_limit() else {
        return;
    };
    let reserve = reserve(server.cores.0.get() as u64, redis_servers(config));
    let clients = clients(server);
    let upstreams = upstreams(server, gateway);
    let needed = reserve.saturating_add(clients.saturating_add(upstreams) as u64);
    if limit >= needed {
        return;
    }
    let free = usize::try_from(limit.saturating_sub(reserve)).unwrap_or(usize::MAX);
    // Upstreams seldom have as many connections as they may, so clients keep half of the files.
    let for_clients = free.saturating_sub(upstreams).max(free / 2);
    for listener in listeners(server) {
        listener.max_connections = part(listener.max_connections, for_clients, clients);
    }
    warn!(
        limit,
        needed,
        max_connections = for_clients.min(clients),
        "the limit of open files is lower than all connections may need, so listeners take fewer; set `LimitNOFILE={needed}` (systemd) \
         or `ulimit -n {needed}`, or lower `max_connections`"
    );
}

/// The files that threads and calls to Redis take: each thread that answers has a connection of its own to each server.
fn reserve(n_threads: u64, n_redis: u64) -> u64 {
    let threads = n_threads.saturating_add(MORE_THREADS);
    BASE.saturating_add(threads.saturating_mul(OF_THREAD + n_redis))
}

/// The servers of all Redis that limits are counted in, Sentinels included.
fn redis_servers(config: &Config) -> u64 {
    let Engine::Redis(home) = &config.store.engine else {
        return 0;
    };
    let others = config.regions.others(home).map(|(_, url)| url);
    let servers = |url: &RedisUrl| match &url.config.deployment {
        Deployment::Single(_) => 1,
        Deployment::Sentinel { sentinels, .. } => 1 + sentinels.len() as u64,
        Deployment::Cluster { .. } => CLUSTER_MASTERS,
    };
    iter::once(&**home).chain(others).map(servers).sum()
}

/// The part of `for_clients` files of a listener that has `most` of all `clients` connections.
fn part(most: usize, for_clients: usize, clients: usize) -> usize {
    let part = most as u128 * for_clients as u128 / clients.max(1) as u128;
    let part = usize::try_from(part).unwrap_or(usize::MAX);
    part.max(LEAST_CONNECTIONS).min(most)
}

/// The connections that all listeners may have together.
fn clients(server: &mut ServerConfig) -> usize {
    let of_listener = |listener: &mut ListenConfig| listener.max_connections;
    listeners(server)
        .map(of_listener)
        .fold(0, usize::saturating_add)
}

/// The connections that all upstreams may have together.
fn upstreams(server: &ServerConfig, gateway: Option<&Gateway>) -> usize {
    let of_upstream = |upstream: &UpstreamConfig| {
        // Each thread may have at least one.
        let of_target = upstream.max_connections.max(server.cores.0.get());
        of_target.saturating_mul(upstream.targets.len())
    };
    let config = gateway.map(Gateway::config);
    let upstreams = config.iter().flat_map(|config| &config.upstreams);
    let connections = upstreams.map(|upstream| of_upstream(upstream));
    connections.fold(0, usize::saturating_add)
}

fn listeners(server: &mut ServerConfig) -> impl Iterator<Item = &mut ListenConfig> {
    let listeners = [
        &mut server.gateway,
        &mut server.http,
        &mut server.grpc,
        &mut server.admin,
        &mut server.metrics,
    ];
    listeners.into_iter().flatten()
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Raises the limit of the process to the most it may set itself. Returns the limit in force, unless there is none.
    pub(super) fn raise_limit() -> Option<u64> {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum,
            Err(_) => limit.current,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Other systems keep their limit.
    pub(super) fn raise_limit() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted of a process with clients gone: 26 files with 2 threads and 146 with 32, in memory; 30 and 180 with a Redis.
    #[test]
    fn threads_and_redis_have_files_of_their_own() {
        let check = |n_threads, n_redis, counted| {
            let reserve = reserve(n_threads, n_redis);
            assert!(reserve > counted, "{reserve} of {counted}");
        };
        check(2, 0, 26);
        check(32, 0, 146);
        check(2, 1, 30);
        check(32, 1, 180);
        // Each thread has a connection to each master.
        assert!(reserve(32, CLUSTER_MASTERS) > 146 + 32 * CLUSTER_MASTERS);
    }

    #[test]
    fn listeners_share_the_files_that_there_are() {
        let parts = [4_096, 4_096, 16_384].map(|most| part(most, 896, 4_096 + 4_096 + 16_384));
        assert_eq!(parts, [149, 149, 597]);
        assert!(parts.iter().sum::<usize>() <= 896);
        assert_eq!(part(4_096, 1, 24_576), LEAST_CONNECTIONS);
        assert_eq!(part(3, 1, 24_576), 3);
    }
}
