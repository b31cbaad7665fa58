//! Sockets that take connections.

mod place;
mod socket_file;

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tidegate_gateway::{AddressConnections, AddressPermit, Gateway};
use tidegate_identify::{self as identify, Proxies};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::task::unconstrained;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::connection::{Connection, Socket};
use crate::drain::Drain;
use crate::peer::Peer;
use crate::tls::Tls;
use crate::{Address, Front, ListenConfig};

pub(crate) use place::Place;
use place::Places;
use socket_file::SocketFile;

/// Takes the connections of one address, bounded in number.
#[derive(Debug)]
pub(crate) struct Listener {
    front: Front,
    address: Address,
    source: Source,
    places: Places,
    addresses: AddressBound,
    backlog: u32,
    tls: Option<Arc<Tls>>,
    /// Whether the last accept failed, so that a row of failures is told once.
    is_failing: bool,
}

/// A bound on the connections of one address.
#[derive(Debug)]
struct AddressBound {
    open: Arc<AddressConnections>,
    most: usize,
    exempt: ExemptPeers,
}

/// Peers that may have any number of connections.
#[derive(Debug)]
enum ExemptPeers {
    Listed(Proxies),
    /// The proxies that the gateway trusts by its settings, which a reload may change.
    Trusted(Arc<Gateway>),
}

#[derive(Debug)]
enum Source {
    Tcp(TcpListener),
    /// The file goes when the listener does.
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "held for its drop")] SocketFile,
    ),
}

/// How long to hold off after `accept` failed, unless a connection closes before. It fails when the
/// process is out of file descriptors, and without a pause the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time without a byte after which the kernel asks a peer if it is there. Proxies on the way forget
/// silent connections after some minutes.
const KEEPALIVE_TIME: Duration = Duration::from_mins(1);

/// The time between two such probes; after nine without an answer, Linux closes the connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

// === impl Listener ===

impl Listener {
    /// Listens where `config` says. Call it inside a runtime.
    pub(crate) fn bind(
        front: Front,
        config: &ListenConfig,
        tls: Option<Arc<Tls>>,
    ) -> io::Result<Self> {
        let source = match &config.address {
            Address::Tcp(address) => Source::Tcp(bind_tcp(*address, config.backlog)?),
            Address::Unix(path) => {
                let (listener, file) = socket_file::bind(path, config.socket_mode, config.backlog)?;
                Source::Unix(listener, file)
            }
        };
        let address = match &source {
            Source::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            Source::Unix(..) => config.address.clone(),
        };
        Ok(Self {
            front,
            address,
            source,
            places: Places::new(config.max_connections),
            addresses: AddressBound::of(config),
            backlog: config.backlog,
            tls,
            is_failing: false,
        })
    }

    /// Exempts the proxies that `gateway` trusts, in place of the peers of the listener's own settings.
    pub(crate) fn exempt_proxies_of(&mut self, gateway: Arc<Gateway>) {
        self.addresses.exempt = ExemptPeers::Trusted(gateway);
    }

    /// What it serves.
    pub(crate) const fn front(&self) -> Front {
        self.front
    }

    /// Where it listens; a port 0 has become a real one.
    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// Whether clients must speak TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    /// Hands over one connection after the other until it is to close, and then those that the kernel
    /// has accepted: their clients think that they are connected.
    pub(crate) async fn run(mut self, mut closing: Drain, mut hand_over: impl FnMut(Connection)) {
        tokio::select! {
            () = self.accept_for_ever(&mut hand_over) => {}
            () = closing.begun_and_caught_up() => {}
        }
        // No more than can lie there: clients that keep coming must not hold up the end.
        for _ in 0..self.backlog {
            match self.accept_now().await {
                Some(connection) => hand_over(connection),
                None => break,
            }
        }
    }

    async fn accept_for_ever(&mut self, hand_over: &mut impl FnMut(Connection)) {
        loop {
            match self.source.accept().await {
                Ok(accepted) => {
                    self.recovered();
                    // A connection that its address may not have is closed at once, and takes no place.
                    let Some(permit) = self.permit(accepted.1) else {
                        continue;
                    };
                    // Accepted first: nobody is evicted before there is somebody to take the place.
                    let place = self.place().await.of_address(permit);
                    hand_over(self.connection(accepted, place));
                }
                Err(error) => self.hold_off(&error).await,
            }
        }
    }

    /// A connection, if there is one and a place for it.
    async fn accept_now(&self) -> Option<Connection> {
        let place = self.places.take_now()?;
        let mut accept = pin!(unconstrained(self.source.accept()));
        let polled = poll_fn(|context| Poll::Ready(accept.as_mut().poll(context)));
        match polled.await {
            Poll::Ready(Ok(accepted)) => {
                let permit = self.permit(accepted.1).flatten();
                Some(self.connection(accepted, place.of_address(permit)))
            }
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    fn connection(&self, (socket, peer): (Socket, Peer), place: Place) -> Connection {
        Connection {
            socket,
            peer,
            front: self.front,
            tls: self.tls.clone(),
            place,
        }
    }

    /// Waits for a place if there is none, and says so once.
    async fn place(&mut self) -> Place {
        if let Some(place) = self.places.take_now() {
            if self.places.has_relaxed() {
                info!(front = %self.front, address = %self.address, "there is room for connections again");
            }
            return place;
        }
        if self.places.has_filled() {
            warn!(
                front = %self.front,
                address = %self.address,
                max_connections = self.places.most(),
                "connection limit reached; new connections evict the idlest, or wait if none is idle"
            );
        }
        self.places.take().await
    }

    /// A permit for a connection of `peer`, or `None` if its address has as many as it may.
    #[expect(clippy::option_option, reason = "no permit is needed, or none is left")]
    fn permit(&self, peer: Peer) -> Option<Option<AddressPermit>> {
        match peer {
            Peer::Tcp(address) => self.addresses.take(address.ip()),
            Peer::Unix => Some(None),
        }
    }

    async fn hold_off(&mut self, error: &io::Error) {
        if is_of_one_connection(error) {
            return;
        }
        if !self.is_failing {
            self.is_failing = true;
            warn!(front = %self.front, address = %self.address, %error, "cannot accept connections");
        }
        let _ = timeout(ACCEPT_PAUSE, self.places.one_closed()).await;
    }

    fn recovered(&mut self) {
        if self.is_failing {
            self.is_failing = false;
            info!(front = %self.front, address = %self.address, "accepts connections again");
        }
    }
}

// === impl AddressBound ===

impl AddressBound {
    fn of(config: &ListenConfig) -> Self {
        let half = config.max_connections.div_ceil(2);
        Self {
            open: Arc::default(),
            most: config.max_connections_per_address.unwrap_or(half).max(1),
            exempt: ExemptPeers::Listed(config.exempt_peers.clone()),
        }
    }

    #[expect(clippy::option_option, reason = "no permit is needed, or none is left")]
    fn take(&self, address: IpAddr) -> Option<Option<AddressPermit>> {
        if self.exempt.hold(address) {
            return Some(None);
        }
        self.open.take(address, self.most).map(Some)
    }
}

// === impl ExemptPeers ===

impl ExemptPeers {
    fn hold(&self, address: IpAddr) -> bool {
        match self {
            Self::Listed(peers) => peers.hold(address),
            Self::Trusted(gateway) => gateway.trusts(identify::Peer::Address(address)),
        }
    }
}

// === impl Source ===

impl Source {
    /// The next connection, free of this runtime.
    async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small; without this they would wait for the client's next
                // acknowledgement. A socket that refuses the option is about to fail anyway.
                let _ = stream.set_nodelay(true);
                Ok((Socket::Tcp(stream.into_std()?), Peer::Tcp(peer)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream.into_std()?), Peer::Unix))
            }
        }
    }
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that comes back at once must not wait for the sockets of the one before.
    socket.set_reuseaddr(true)?;
    // Connections inherit it. A peer that has lost power would keep its place for ever.
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(&socket).set_tcp_keepalive(&keepalive)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Whether the fault is of a connection that broke off before it was taken, not of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}
