//! Who is answered at a listener.

use std::fmt;

use tidegate_observe::Protocol;

/// A front door: what is spoken there, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Front {
    /// Clients of the reverse proxy.
    Gateway,
    /// Gateways, over HTTP.
    Http,
    /// Envoy, over gRPC.
    Grpc,
    /// Operators.
    Admin,
    /// Who scrapes metrics and probes health, and does no more.
    Metrics,
}

// === impl Front ===

impl Front {
    /// Every front door.
    pub const ALL: [Self; 5] = [
        Self::Gateway,
        Self::Http,
        Self::Grpc,
        Self::Admin,
        Self::Metrics,
    ];

    /// Its name in a config file, in flags and in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }
}

impl From<Front> for Protocol {
    fn from(front: Front) -> Self {
        match front {
            Front::Gateway => Self::Gateway,
            Front::Http => Self::Http,
            Front::Grpc => Self::Grpc,
            Front::Admin | Front::Metrics => Self::Admin,
        }
    }
}

impl fmt::Display for Front {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
