//! The limit of open files, which bounds connections whatever the settings say.

use tidegate_gateway::{Gateway, UpstreamConfig};
use tidegate_server::{ListenConfig, ServerConfig};
use tracing::warn;

/// Files besides connections: listeners, the event queues of threads, Redis, health checks, files that are read again.
const RESERVE: u64 = 128;

/// The fewest connections of a listener, however few files there are.
const LEAST_CONNECTIONS: usize = 16;

/// Raises the limit of open files as far as the system allows. If all connections of the settings would exceed it, warns and lowers
/// the connections of each listener, so that files for reloads and operators are left.
pub(super) fn raise_limit(server: &mut ServerConfig, gateway: Option<&Gateway>) {
    let Some(limit) = system::raise_limit() else {
        return;
    };
    let clients = clients(server);
    let upstreams = upstreams(server, gateway);
    let needed = RESERVE.saturating_add(clients.saturating_add(upstreams) as u64);
    if limit >= needed {
        return;
    }
    let free = usize::try_from(limit.saturating_sub(RESERVE)).unwrap_or(usize::MAX);
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

    #[test]
    fn listeners_share_the_files_that_there_are() {
        let parts = [4_096, 4_096, 16_384].map(|most| part(most, 896, 4_096 + 4_096 + 16_384));
        assert_eq!(parts, [149, 149, 597]);
        assert!(parts.iter().sum::<usize>() <= 896);
        assert_eq!(part(4_096, 1, 24_576), LEAST_CONNECTIONS);
        assert_eq!(part(3, 1, 24_576), 3);
    }
}
