//! Where to listen, as it is written.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on: `IP:PORT`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address of the network; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write IP:PORT, such as 127.0.0.1:8080 or [::]:8080, or unix:PATH")]
pub struct NotAnAddress;

// === impl Address ===

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NotAnAddress),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| NotAnAddress),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, NotAnAddress};

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/tidegate.sock"] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "localhost", "127.0.0.1", "unix:", "/run/socket"] {
            assert_eq!(text.parse::<Address>(), Err(NotAnAddress), "{text:?}");
        }
    }
}
