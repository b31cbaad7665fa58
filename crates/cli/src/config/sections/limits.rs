//! What clients are allowed, and how the server stops.

use std::time::Duration;

use tidegate_identify::{Proxies, Proxy};
use tidegate_rules::document::Code;
use tidegate_server::DrainConfig;

use crate::config::reader::Section;
use crate::config::value::{Bytes, Count};

/// What clients are allowed.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: Count<1>,
    pub(crate) connections_per_address: Option<Count<1>>,
    pub(crate) exempt_peers: Proxies,
    pub(crate) head_bytes: Bytes,
    pub(crate) body_bytes: Bytes,
    pub(crate) message_bytes: Bytes,
    pub(crate) head_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) grpc: GrpcLimits,
}

/// The limits of gRPC connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcLimits {
    pub(crate) idle_timeout: Duration,
    pub(crate) keepalive_interval: Duration,
    pub(crate) grpc_memory: Bytes,
    pub(crate) connection_age: Option<Duration>,
    pub(crate) connection_age_grace: Duration,
    pub(crate) concurrent_calls: Count<1>,
}

/// How the end goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    pub(crate) delay: Duration,
    pub(crate) grace: Duration,
}

/// The smallest buffer that heads are read into.
const LEAST_HEAD: Bytes = Bytes(8 << 10);

/// The smallest question, and some air.
const LEAST_BODY: Bytes = Bytes(256);

// === impl Limits ===

impl Limits {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        let limits = Self {
            connections: section.value(
                "connections",
                "Connections open at once on a listener; further ones evict the idlest, or wait if none is idle",
                Count(4096),
            ),
            connections_per_address: section.optional(
                "connections_per_address",
                "Connections of one peer address on a listener; by default half of all. The gateway has its own",
            ),
            exempt_peers: section
                .list::<Proxy>(
                    "exempt_peers",
                    "Peers without that bound, such as proxies that speak for many clients: networks or addresses",
                    Vec::new(),
                )
                .into_iter()
                .collect(),
            head_bytes: section.value(
                "head_bytes",
                "Bytes of an HTTP request's head, at least 8KiB",
                Bytes(64 << 10),
            ),
            body_bytes: section.value(
                "body_bytes",
                "Bytes of an HTTP request's body",
                Bytes(64 << 10),
            ),
            message_bytes: section.value(
                "message_bytes",
                "Bytes of a gRPC message; a larger question is denied",
                Bytes(4 << 20),
            ),
            head_timeout: section.value(
                "head_timeout",
                "How long a client may take over a head, the idle time before it included",
                Duration::from_mins(1),
            ),
            body_timeout: section.value(
                "body_timeout",
                "How long a client may take over a body",
                Duration::from_secs(10),
            ),
            write_timeout: section.value(
                "write_timeout",
                "How long a client may take nothing of an answer",
                Duration::from_secs(10),
            ),
            grpc: GrpcLimits::read(&mut section),
        };
        limits.refuse_too_little(&mut section);
        limits
    }
}

impl Limits {
    /// Refuses what no client could meet. What is set is what is done: nothing is raised in silence.
    fn refuse_too_little(&self, section: &mut Section<'_, '_>) {
        let timeouts = [
            ("head_timeout", self.head_timeout),
            ("body_timeout", self.body_timeout),
            ("write_timeout", self.write_timeout),
            ("idle_timeout", self.grpc.idle_timeout),
            ("keepalive_interval", self.grpc.keepalive_interval),
        ];
        for (name, timeout) in timeouts {
            if timeout.is_zero() {
                let message = format!("`{name}` of nothing lets nobody finish");
                section.fault(name, Code::BadValue, message, "write more than zero");
            }
        }
        let sizes = [
            ("head_bytes", self.head_bytes, LEAST_HEAD),
            ("body_bytes", self.body_bytes, LEAST_BODY),
        ];
        for (name, bytes, least) in sizes {
            if bytes.0 < least.0 {
                let message = format!("`{name}` of {bytes} lets nobody ask");
                let hint = format!("write at least {least}");
                section.fault(name, Code::BadValue, message, &hint);
            }
        }
    }
}

// === impl GrpcLimits ===

impl GrpcLimits {
    fn read(section: &mut Section<'_, '_>) -> Self {
        Self {
            idle_timeout: section.value(
                "idle_timeout",
                "How long a gRPC connection may stay without a call",
                Duration::from_hours(2),
            ),
            keepalive_interval: section.value(
                "keepalive_interval",
                "The time between two pings to a gRPC client; one that has not answered by the next is cut off",
                Duration::from_mins(1),
            ),
            grpc_memory: section.value(
                "grpc_memory",
                "Memory that gRPC calls of all connections hold while they wait for their clients",
                Bytes(256 << 20),
            ),
            connection_age: section.optional(
                "connection_age",
                "After how long a gRPC connection is asked to leave; never, if not set",
            ),
            connection_age_grace: section.value(
                "connection_age_grace",
                "How long the calls of a connection that is asked to leave may take",
                Duration::from_mins(1),
            ),
            concurrent_calls: section.value(
                "concurrent_calls",
                "Calls under way at once on a gRPC connection",
                Count(1024),
            ),
        }
    }
}

// === impl Drain ===

impl Drain {
    pub(super) fn read(mut section: Section<'_, '_>) -> Self {
        Self {
            delay: section.value(
                "delay",
                "How long health checks fail before no connection is taken any more",
                Duration::ZERO,
            ),
            grace: section.value(
                "grace",
                "How long requests under way may take to finish, and idle connections are kept open for one more",
                DrainConfig::GRACE,
            ),
        }
    }
}
