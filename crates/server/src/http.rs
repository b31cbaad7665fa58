//! HTTP connections, bounded in bytes and in time.

mod authorize;
mod check;
mod route;
mod visit;

use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use authorize::BadParameter;
pub use authorize::{AuthorizeConfig, AuthorizeDomain, RequestHeaders};

use crate::door::{Peer, SharedDoor};
use crate::drain::Drain;
use crate::patience::Patient;
use visit::Visit;

/// What one HTTP connection is allowed.
#[derive(Clone, Copy, Debug)]
pub struct HttpConfig {
    /// Bytes of a request's head, at least 8 KiB; more is answered with 431.
    pub max_head_bytes: usize,
    /// Bytes of a request's body; more is answered with 413.
    pub max_body_bytes: usize,
    /// How long a client may take over the head of a request, the idle time before it included.
    pub head_timeout: Duration,
    /// How long a client may take over the body of a request.
    pub body_timeout: Duration,
    /// How long a client may take nothing of an answer that waits for it, more than zero.
    pub write_timeout: Duration,
}

/// hyper reads heads into a buffer that is no smaller.
const LEAST_HEAD_BYTES: usize = 8 * 1024;

/// Serves one connection until it closes, or until the drain has begun and its request is answered.
pub(crate) async fn serve_connection<S, I>(
    io: I,
    peer: Peer,
    door: SharedDoor<S>,
    config: HttpConfig,
    mut drain: Drain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let visit = Rc::new(Visit {
        door,
        peer,
        config,
        drain: drain.clone(),
    });
    let service = service_fn(|request| {
        let visit = Rc::clone(&visit);
        async move { Ok::<_, Infallible>(route::respond(request, &visit).await) }
    });
    let io = TokioIo::new(Patient::new(io, config.write_timeout));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_buf_size(config.max_head_bytes.max(LEAST_HEAD_BYTES))
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    // A client that breaks off or speaks no HTTP is its own affair; hyper has answered it.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drain.begun_and_caught_up() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

// === impl HttpConfig ===

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            max_head_bytes: 16 * 1024,
            // A request of 32 descriptors with a few short entries each takes about 8 KiB.
            max_body_bytes: 64 * 1024,
            head_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
        }
    }
}
