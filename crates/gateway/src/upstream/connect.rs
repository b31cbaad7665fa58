//! Opening a connection: the name, TCP, TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::addresses::Resolver;
use super::stream::UpstreamStream;
use super::target::TargetState;
use super::timer::now;
use super::tls::ClientTls;
use crate::config::UpstreamProtocol;

/// The way to the targets of one upstream.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) protocol: UpstreamProtocol,
    /// There if any target needs it.
    pub(super) tls: Option<ClientTls>,
}

/// An open connection without a request.
#[derive(Debug)]
pub(super) struct OpenedStream {
    pub(super) stream: UpstreamStream,
    pub(super) protocol: WireProtocol,
    pub(super) address: SocketAddr,
}

/// The protocol that is really spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireProtocol {
    Http1,
    Http2,
}

/// The protocol that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolNeed {
    /// Whatever the target prefers.
    Any,
    /// HTTP/1, if the settings leave the choice: upgrades exist nowhere else.
    Http1,
}

// === impl Connector ===

impl Connector {
    /// Opens a connection to one of the target's addresses, the `turn`-th first. An address that does not answer leaves time for
    /// the next ones.
    pub(super) async fn open(
        &self,
        target: &TargetState,
        need: ProtocolNeed,
        turn: usize,
        deadline: Instant,
    ) -> io::Result<OpenedStream> {
        let addresses = within(deadline, target.addresses.get(&*self.resolver)).await?;
        let n_addresses = addresses.len();
        let mut failure = io::Error::from(io::ErrorKind::TimedOut);
        for tried in 0..n_addresses {
            let address = addresses[turn.wrapping_add(tried) % n_addresses];
            let n_left = u32::try_from(n_addresses - tried).unwrap_or(u32::MAX);
            let started = now();
            let share = deadline.saturating_duration_since(started) / n_left;
            match within(started + share, self.open_address(target, need, address)).await {
                Ok(opened) => return Ok(opened),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn open_address(
        &self,
        target: &TargetState,
        need: ProtocolNeed,
        address: SocketAddr,
    ) -> io::Result<OpenedStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (stream, protocol) = if target.config.is_tls {
            let tls = self.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
            let name = tls.name_of(&target.config).map_err(io::Error::other)?;
            let stream = tls.connector(need).connect(name, stream).await?;
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            (UpstreamStream::tls(stream), self.wire_protocol(is_http2)?)
        } else {
            let is_http2 = self.protocol == UpstreamProtocol::Http2;
            let protocol = if is_http2 {
                WireProtocol::Http2
            } else {
                WireProtocol::Http1
            };
            (UpstreamStream::plain(stream), protocol)
        };
        Ok(OpenedStream {
            stream,
            protocol,
            address,
        })
    }

    fn wire_protocol(&self, chose_http2: bool) -> io::Result<WireProtocol> {
        match (chose_http2, self.protocol) {
            (true, _) => Ok(WireProtocol::Http2),
            (false, UpstreamProtocol::Http2) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the target does not speak HTTP/2",
            )),
            (false, _) => Ok(WireProtocol::Http1),
        }
    }
}

async fn within<T>(deadline: Instant, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout_at(deadline, work).await {
        Ok(done) => done,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
