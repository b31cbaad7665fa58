//! The other end of a connection.

use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A program at an address.
    Tcp(SocketAddr),
    /// A program on this machine.
    Unix,
}
