//! The HTTP listener: connections in, bounded in number and in time.

mod authorize;
mod route;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tidegate_limiter::{Limiter, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub use authorize::{AuthorizeConfig, AuthorizeDomain, RequestHeaders};

use crate::patience::Patient;

/// What one listener puts up with.
#[derive(Clone, Copy, Debug)]
pub struct HttpConfig {
    /// Connections open at once; further ones wait in the kernel's backlog.
    pub max_connections: usize,
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
    /// How long requests under way may take to finish once the listener shuts down.
    pub drain_timeout: Duration,
}

/// hyper reads heads into a buffer that is no smaller.
const LEAST_HEAD_BYTES: usize = 8 * 1024;

/// How long to hold off after `accept` failed, unless a connection closes before. It fails when the
/// process is out of file descriptors, and without a pause the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the decision endpoint on `listener` until `shutdown` is ready, then lets requests under way
/// finish.
pub async fn serve<S: Store + 'static>(
    listener: TcpListener,
    limiter: Arc<Limiter<S>>,
    config: HttpConfig,
    shutdown: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    tokio::select! {
        () = accept(&listener, &limiter, config, &graceful) => {}
        () = shutdown => {}
    }
    // Nobody new is let in while the others finish.
    drop(listener);
    // What is not done by then is cut off when the runtime ends.
    let _ = timeout(config.drain_timeout, graceful.shutdown()).await;
}

// === impl HttpConfig ===

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            // At most 320 MiB with every head and body as large as can be.
            max_connections: 4_096,
            max_head_bytes: 16 * 1024,
            // A request of 32 descriptors with a few short entries each takes about 8 KiB.
            max_body_bytes: 64 * 1024,
            head_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

async fn accept<S: Store + 'static>(
    listener: &TcpListener,
    limiter: &Arc<Limiter<S>>,
    config: HttpConfig,
    graceful: &GracefulShutdown,
) {
    let places = Arc::new(Semaphore::new(config.max_connections));
    let closed = Arc::new(Notify::new());
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = Connection {
                    place,
                    closed: Arc::clone(&closed),
                    watcher: graceful.watcher(),
                };
                tokio::spawn(connection.run(stream, Arc::clone(limiter), config));
            }
            Err(_) => {
                let _ = timeout(ACCEPT_PAUSE, closed.notified()).await;
            }
        }
    }
}

/// What an open connection holds, and gives back when it closes.
struct Connection {
    place: OwnedSemaphorePermit,
    closed: Arc<Notify>,
    watcher: Watcher,
}

// === impl Connection ===

impl Connection {
    async fn run<S: Store + 'static>(
        self,
        stream: TcpStream,
        limiter: Arc<Limiter<S>>,
        config: HttpConfig,
    ) {
        // Answers are small; without this they would wait for the client's next acknowledgement. A
        // socket that refuses the option is about to fail anyway.
        let _ = stream.set_nodelay(true);
        let stream = Patient::new(stream, config.write_timeout);
        let service = service_fn(|request| {
            let limiter = Arc::clone(&limiter);
            async move { Ok::<_, Infallible>(route::respond(request, &limiter, config).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(config.head_timeout)
            .max_buf_size(config.max_head_bytes.max(LEAST_HEAD_BYTES))
            .serve_connection(TokioIo::new(stream), service);
        // A client that breaks off or speaks no HTTP is its own affair; hyper has answered it.
        let _ = self.watcher.watch(connection).await;
        drop(self.place);
        self.closed.notify_one();
    }
}
