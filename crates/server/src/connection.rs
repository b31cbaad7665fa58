//! One connection, from the listener that took it to the protocol that serves it.

use std::io;
use std::net;
use std::os::unix::net as unix;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::admin::{self, Scope};
use crate::cores::Desk;
use crate::door::Peer;
use crate::listen::Place;
use crate::tls::Tls;
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
    desk: Rc<Desk<S>>,
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
            desk,
        };
        // A runtime that cannot take the socket is out of file descriptors; the client sees it close.
        let _: io::Result<()> = match self.socket {
            Socket::Tcp(stream) => service.open(TcpStream::from_std(stream)).await,
            Socket::Unix(stream) => service.open(UnixStream::from_std(stream)).await,
        };
        // Not before the socket is closed: who waits for the place may need its file descriptor.
        drop(self.place);
    }
}

// === impl Service ===

impl<S: Store + 'static> Service<S> {
    async fn open<I>(mut self, io: io::Result<I>) -> io::Result<()>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        match self.tls.take() {
            None => self.serve(io?).await,
            Some(tls) => {
                let mut drain = self.desk.drain.clone();
                let shaken = tokio::select! {
                    shaken = tls.accept(io?) => shaken,
                    // Nothing is under way before the handshake is done.
                    () = drain.begun() => None,
                };
                if let Some(io) = shaken {
                    self.serve(io).await;
                }
            }
        }
        Ok(())
    }

    async fn serve<I>(self, io: I)
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (peer, desk) = (self.peer, self.desk);
        let (door, drain) = (Rc::clone(&desk.door), desk.drain.clone());
        match self.front {
            Front::Http => http::serve_connection(io, peer, door, desk.http, drain).await,
            Front::Grpc => grpc::serve_connection(io, peer, door, desk.grpc, drain).await,
            Front::Admin | Front::Metrics => {
                let scope = match self.front {
                    Front::Metrics => Scope::Metrics,
                    _ => Scope::Everything,
                };
                if let Some(admin) = desk.admin.clone() {
                    admin::serve_connection(io, peer, scope, admin, drain).await;
                }
            }
        }
    }
}
