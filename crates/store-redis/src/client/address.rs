//! Where a server listens.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A place to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host by name or number, and a port.
    Tcp {
        /// Its name, or its IP address without brackets.
        host: Arc<str>,
        /// Its port.
        port: u16,
    },
    /// A unix socket.
    Unix(Arc<Path>),
}

// === impl Address ===

impl Address {
    /// A host and a port.
    pub fn tcp(host: &str, port: u16) -> Self {
        Self::Tcp {
            host: host.into(),
            port,
        }
    }

    /// A host as a server of a Cluster tells it; `None` if it does not know the name, and leaves it out or puts
    /// a question mark.
    pub(crate) fn named(host: &str) -> Option<&str> {
        Some(host).filter(|host| !host.is_empty() && *host != "?")
    }

    /// The host alone.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, .. } => Some(host),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
