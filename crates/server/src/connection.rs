//! One connection, from the listener that took it to the protocol that serves it.

use std::io;
use std::net;
use std::os::unix::net as unix;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_gateway::{ClientConnection, ConnectionActivity, ServerDrain};
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::admin::{self, Scope};
use crate::cores::Desk;
use crate::drain::Drain;
use crate::listen::Place;
use crate::peer::Peer;
use crate::tls::{self, Handshake, Tls};
use crate::write_timeout::WriteTimeoutStream;
use crate::{Front, grpc, http};

/// A connection that no runtime holds yet.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) front: Front,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) place: Place,
}

/// A socket that no runtime holds.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Of the network.
    Tcp(net::TcpStream),
    /// Of this machine.
    Unix(unix::UnixStream),
}

/// How the bytes of a connection are served.
struct Service<S> {
    peer: Peer,
    front: Front,
    tls: Option<Arc<Tls>>,
    activity: Arc<ConnectionActivity>,
    desk: Rc<Desk<S>>,
}

// === impl Drain ===

impl ServerDrain for Drain {
    async fn begun(&mut self) {
        self.begun_and_caught_up().await;
    }

    async fn closing(&mut self) {
        self.closing_and_caught_up().await;
    }
}

// === impl Connection ===

impl Connection {
    /// Serves it on this runtime until it closes, and gives back its place.
    pub(crate) async fn serve<S: Store + 'static>(self, desk: Rc<Desk<S>>) {
        let _open = desk.observatory.opened(self.front.into());
        let service = Service {
            peer: self.peer,
            front: self.front,
            tls: self.tls,
            activity: Arc::clone(self.place.activity()),
            desk,
        };
        let activity = Arc::clone(&service.activity);
        let serve = async {
            match self.socket {
                Socket::Tcp(stream) => service.open(TcpStream::from_std(stream)).await,
                Socket::Unix(stream) => service.open(UnixStream::from_std(stream)).await,
            }
        };
        tokio::select! {
            // A runtime that cannot take the socket is out of file descriptors; the client sees it close.
            _ = serve => {}
            () = activity.evicted() => {}
        }
        // Not before the socket is closed: who waits for the place may need its file descriptor.
        drop(self.place);
    }
}

// === impl Service ===

impl<S: Store + 'static> Service<S> {
    async fn open<I>(mut self, io: io::Result<I>) -> io::Result<()>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match self.tls.take() {
            None => self.serve(io?, None).await,
            // Boxed, so that a connection without TLS has no room for either, and one with TLS none for its handshake.
            Some(tls) => {
                if let Some(io) = Box::pin(self.shake_hands(io?, tls)).await {
                    let handshake = tls::handshake(&io);
                    Box::pin(self.serve(io, Some(handshake))).await;
                }
            }
        }
        Ok(())
    }

    /// The stream is boxed: the state of TLS is large, and a stream is moved from step to step.
    async fn shake_hands<I>(&self, io: I, tls: Arc<Tls>) -> Option<Box<TlsStream<I>>>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut drain = self.desk.drain.clone();
        tokio::select! {
            shaken = tls.accept(io) => shaken.map(Box::new),
            // The client of a connection that was taken may send its request, as those of idle connections may.
            () = drain.closing() => None,
        }
    }

    async fn serve<I>(self, io: I, shaken: Option<Handshake>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (peer, desk, activity) = (self.peer, self.desk, self.activity);
        let client = ClientConnection {
            peer: peer.into(),
            is_tls: shaken.is_some(),
            protocol: shaken.as_ref().map(|it| it.protocol),
            certificate: shaken.and_then(|it| it.certificate),
        };
        let (core, drain) = (Rc::clone(&desk.core), desk.drain.clone());
        match self.front {
            Front::Gateway => {
                if let Some(gateway) = desk.gateway.clone() {
                    let io =
                        WriteTimeoutStream::new(io, gateway.write_timeout(), Arc::clone(&activity));
                    tidegate_gateway::serve_connection(io, client, activity, gateway, drain).await;
                }
            }
            // The others are boxed: clients of the gateway are many and idle, and have no room for these.
            Front::Http => {
                Box::pin(http::serve_connection(
                    io, peer, core, desk.http, activity, drain,
                ))
                .await;
            }
            Front::Grpc => {
                let memory = Arc::clone(&desk.grpc_memory);
                Box::pin(grpc::serve_connection(
                    io, peer, core, desk.grpc, memory, activity, drain,
                ))
                .await;
            }
            Front::Admin | Front::Metrics => {
                let scope = match self.front {
                    Front::Metrics => Scope::Metrics,
                    _ => Scope::Everything,
                };
                if let Some(admin) = desk.admin.clone() {
                    Box::pin(admin::serve_connection(
                        io, peer, scope, admin, activity, drain,
                    ))
                    .await;
                }
            }
        }
    }
}
