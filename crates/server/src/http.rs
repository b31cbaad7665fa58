//! HTTP connections, bounded in bytes and in time.

mod authorize;
mod check;
mod route;
mod visit;

use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_gateway::ConnectionActivity;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use authorize::BadParameter;
pub use authorize::{AuthorizeConfig, AuthorizeDomain, HeaderForm, RequestHeaders};

use crate::activity::ActiveRequest;
use crate::core_context::SharedCoreContext;
use crate::drain::Drain;
use crate::lingering::Lingering;
use crate::peer::Peer;
use crate::write_timeout::WriteTimeoutStream;
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

/// Lines of a request's head; more is answered with 431. A proxy hands on the lines of its client: nginx takes a thousand.
const MAX_HEADER_LINES: usize = 1_024;

/// Serves one connection until it closes. Once the drain has begun, that is after the next answer, or when the drain's grace is over.
pub(crate) async fn serve_connection<S, I>(
    io: I,
    peer: Peer,
    core: SharedCoreContext<S>,
    config: HttpConfig,
    activity: Arc<ConnectionActivity>,
    mut drain: Drain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let visit = Rc::new(Visit {
        core,
        peer,
        config,
        drain: drain.clone(),
    });
    let service = service_fn(|request| {
        let (visit, active) = (Rc::clone(&visit), ActiveRequest::begin(&activity));
        async move {
            let mut answer = route::respond(request, &visit).await;
            visit.drain.mark(&mut answer);
            drop(active);
            Ok::<_, Infallible>(answer)
        }
    });
    let io = WriteTimeoutStream::new(io, config.write_timeout, Arc::clone(&activity));
    let io = Lingering::new(io, drain.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_headers(MAX_HEADER_LINES)
        .max_buf_size(config.max_head_bytes.max(LEAST_HEAD_BYTES))
        // The buffer grows in steps, past its bound.
        .max_header_size(config.max_head_bytes.max(LEAST_HEAD_BYTES))
        .serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    // A client that breaks off or speaks no HTTP is its own affair; hyper has answered it.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = drain.closing_and_caught_up() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

// === impl HttpConfig ===

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            // A proxy hands on the head of its client: Envoy takes 60 KiB of it, nginx 33 KiB.
            max_head_bytes: 64 * 1024,
            // A request of 32 descriptors with a few short entries each takes about 8 KiB.
            max_body_bytes: 64 * 1024,
            head_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
        }
    }
}
