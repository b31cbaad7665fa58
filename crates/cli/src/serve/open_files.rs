//! The limit of open files, which bounds connections whatever the settings say.

use tidegate_gateway::{Gateway, UpstreamConfig};
use tidegate_server::{ListenConfig, ServerConfig};
use tracing::warn;

/// Files besides connections: listeners, the event queues of threads, Redis, health checks, files that are read again.
const RESERVE: u64 = 128;

/// Raises the limit of open files as far as the system allows, and warns if all connections of the settings would exceed it.
pub(super) fn raise_limit(server: &ServerConfig, gateway: Option<&Gateway>) {
    let needed = needed(server, gateway);
    if let Some(limit) = system::raise_limit()
        && limit < needed
    {
        warn!(
            limit,
            needed,
            "the limit of open files is lower than all connections may need; set `LimitNOFILE={needed}` (systemd) \
             or `ulimit -n {needed}`, or lower `max_connections`"
        );
    }
}

/// The files that are open when every listener and every upstream has as many connections as it may.
fn needed(server: &ServerConfig, gateway: Option<&Gateway>) -> u64 {
    let listeners = [
        &server.gateway,
        &server.http,
        &server.grpc,
        &server.admin,
        &server.metrics,
    ];
    let of_listener = |listener: &ListenConfig| listener.max_connections;
    let clients: usize = listeners.into_iter().flatten().map(of_listener).sum();
    let of_upstream = |upstream: &UpstreamConfig| {
        // Each thread may have at least one.
        let of_target = upstream.max_connections.max(server.cores.0.get());
        of_target.saturating_mul(upstream.targets.len())
    };
    let config = gateway.map(Gateway::config);
    let upstreams = config.iter().flat_map(|config| &config.upstreams);
    let upstreams = upstreams.map(|upstream| of_upstream(upstream));
    let connections = upstreams.fold(clients, usize::saturating_add);
    RESERVE.saturating_add(connections as u64)
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
