//! How many connections are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Envoy's service.
    Grpc,
    /// The HTTP front doors.
    Http,
    /// The reverse proxy.
    Gateway,
    /// The admin listener.
    Admin,
}

/// A connection, open until this is dropped.
#[derive(Debug)]
#[must_use = "the connection counts as closed once this is dropped"]
pub struct OpenConnection {
    connections: Arc<Connections>,
    protocol: Protocol,
}

/// The connections of all cores. They come and go seldom enough to be counted in one place.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    opened: [AtomicU64; Protocol::ALL.len()],
    closed: [AtomicU64; Protocol::ALL.len()],
}

// === impl Protocol ===

impl Protocol {
    pub(crate) const ALL: [Self; 4] = [Self::Grpc, Self::Http, Self::Gateway, Self::Admin];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Http => "http",
            Self::Gateway => "gateway",
            Self::Admin => "admin",
        }
    }
}

// === impl OpenConnection ===

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.closed[self.protocol as usize].fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Connections ===

impl Connections {
    pub(crate) fn open(self: &Arc<Self>, protocol: Protocol) -> OpenConnection {
        self.opened[protocol as usize].fetch_add(1, Ordering::Relaxed);
        OpenConnection {
            connections: Arc::clone(self),
            protocol,
        }
    }

    /// How many were ever opened.
    pub(crate) fn total(&self, protocol: Protocol) -> u64 {
        self.opened[protocol as usize].load(Ordering::Relaxed)
    }

    /// How many are open.
    pub(crate) fn open_now(&self, protocol: Protocol) -> u64 {
        // Closed first: whoever opens and closes between the two readings is never counted below zero.
        let closed = self.closed[protocol as usize].load(Ordering::Relaxed);
        self.total(protocol).saturating_sub(closed)
    }
}
