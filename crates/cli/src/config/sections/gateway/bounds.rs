//! Bounds on what clients of the gateway send.

use std::time::Duration;

use tidegate_gateway::GatewayBounds;
use tidegate_rules::document::Code;

use crate::config::reader::Section;
use crate::config::value::{Bytes, Count};

/// The smallest buffer that heads are read into.
const LEAST_HEAD: Bytes = Bytes(8 << 10);

pub(super) fn read(mut section: Section<'_, '_>) -> GatewayBounds {
    let default = GatewayBounds::default();
    let count = |count: usize| Count(u32::try_from(count).unwrap_or(u32::MAX));
    let max_headers: Count<1> = section.value(
        "max_headers",
        "Header lines of a request",
        count(default.max_headers),
    );
    let max_head = section.value(
        "max_head",
        "Bytes of a request's head, at least 8KiB",
        Bytes(default.max_head_bytes),
    );
    if max_head.0 < LEAST_HEAD.0 {
        let message = format!("`max_head` of {max_head} is too small");
        let hint = format!("write at least {LEAST_HEAD}");
        section.fault("max_head", Code::BadValue, message, &hint);
    }
    let max_body = section.value(
        "max_body",
        "Bytes of a request's body, where its route sets no bound of its own",
        Bytes(usize::try_from(default.max_body_bytes).unwrap_or(usize::MAX)),
    );
    let max_requests: Count<1> = section.value(
        "max_requests",
        "Requests on one connection before it is closed",
        Count(u32::try_from(default.max_requests).unwrap_or(u32::MAX)),
    );
    let max_streams: Count<1> = section.value(
        "max_streams",
        "Streams open at once on one HTTP/2 connection",
        Count(default.max_streams),
    );
    let http2_memory = section.value(
        "http2_memory",
        "Memory that HTTP/2 requests of all clients hold, beside one request of each connection",
        Bytes(default.http2_memory_bytes),
    );
    let max_connections: Count<1> = section.value(
        "max_connections",
        "Connections of all clients; further ones evict the idlest, or wait if none is idle",
        count(default.max_connections),
    );
    let max_per_address: Option<Count<1>> = section.optional(
        "max_connections_per_address",
        "Connections of one client address; by default half of all. Trusted proxies are exempt",
    );
    GatewayBounds {
        max_headers: max_headers.get(),
        max_head_bytes: max_head.0,
        max_body_bytes: bytes(max_body),
        max_requests: max_requests.0.into(),
        max_streams: max_streams.0,
        http2_memory_bytes: http2_memory.0,
        max_connections: max_connections.get(),
        max_connections_per_address: max_per_address.map(Count::get),
        ..timeouts(&mut section, &default)
    }
}

fn timeouts(section: &mut Section<'_, '_>, default: &GatewayBounds) -> GatewayBounds {
    GatewayBounds {
        head_timeout: longer_than_zero(
            section,
            "head_timeout",
            "Time from the first byte of a head to its end",
            default.head_timeout,
        ),
        body_timeout: longer_than_zero(
            section,
            "body_timeout",
            "Time between two pieces of a request's body",
            default.body_timeout,
        ),
        idle_timeout: longer_than_zero(
            section,
            "idle_timeout",
            "Time a connection may stay open without a request",
            default.idle_timeout,
        ),
        write_timeout: longer_than_zero(
            section,
            "write_timeout",
            "Time a client may take nothing of an answer that waits for it",
            default.write_timeout,
        ),
        keepalive_interval: longer_than_zero(
            section,
            "keepalive_interval",
            "Time without a frame after which an HTTP/2 client is pinged, and time that it has for the answer",
            default.keepalive_interval,
        ),
        ..default.clone()
    }
}

/// A duration that must not be zero.
pub(super) fn longer_than_zero(
    section: &mut Section<'_, '_>,
    name: &str,
    about: &'static str,
    default: Duration,
) -> Duration {
    let duration = section.value(name, about, default);
    if duration.is_zero() {
        let message = format!("`{name}` must be greater than zero");
        section.fault(
            name,
            Code::BadValue,
            message,
            "write a duration such as 10s",
        );
    }
    duration
}

/// An amount of memory as bodies are counted.
pub(super) fn bytes(Bytes(bytes): Bytes) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
