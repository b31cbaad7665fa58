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

/// The longest name that DNS knows has 253 bytes; an IPv6 address with a zone has fewer.
const MAX_HOST_BYTES: usize = 255;

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
    /// a question mark, and for a text that cannot be a host.
    pub(crate) fn named(host: &str) -> Option<&str> {
        let is_host = |byte: u8| byte.is_ascii_graphic();
        let is_name = |host: &&str| host.len() <= MAX_HOST_BYTES && host.bytes().all(is_host);
        Some(host)
            .filter(|host| !host.is_empty() && *host != "?")
            .filter(is_name)
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
            // A server of a Cluster may send any text as a host: none of it may forge a line of the log.
            Self::Tcp { host, port } if host.contains(':') => {
                write!(f, "[{}]:{port}", host.escape_debug())
            }
            Self::Tcp { host, port } => write!(f, "{}:{port}", host.escape_debug()),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_forges_a_line_of_the_log_is_none_and_is_not_shown() {
        let forged = "x\nFORGED \u{1b}[31m";
        assert_eq!(Address::named(forged), None);
        assert_eq!(Address::named(&"x".repeat(256)), None);
        assert_eq!(Address::named("redis-1.internal"), Some("redis-1.internal"));
        let shown = Address::tcp(forged, 1).to_string();
        assert_eq!(shown, "x\\nFORGED \\u{1b}[31m:1");
    }
}
