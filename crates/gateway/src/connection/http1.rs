//! An HTTP/1 connection: hyper serves it while it is in use, and it is parked while it is idle.
//!
//! ```text
//!            first byte           Connection: close, upgrade, error
//!  parked ──────────────► served ───────────────────────────────────► over
//!    │ ▲                    │                                           ▲
//!    │ └───response sent────┘                                           │
//!    └────────── idle_timeout, end of the stream, end of the drain ─────┘
//! ```
//!
//! While the server drains, a connection is closed by the response to its next request, which says so. A connection without one
//! stays until the grace of the drain is over: its client may be sending a request, which would be lost.
//!
//! hyper holds two buffers of 8 KB for as long as it has a connection. Most connections are idle most of the time, so hyper leaves an
//! idle one, and comes back with the first byte of the next request. Bytes that hyper has read but not used go with the stream.
//!
//! That costs a few allocations. A client whose requests follow each other within [`BUSY_PAUSE`] does not pay for it: its connection
//! is parked after one to two such pauses. All others, and those of which only one request is known, are parked at once, so that a burst
//! of new connections takes no more memory than idle ones do.
//!
//! hyper leaves a connection by a graceful shutdown that does not reach the stream. Only one between two requests may be left so: the rest
//! of a body would be read as a request. After a request without a body, hyper is between two requests as soon as the response is sent.
//! After one with a body, hyper is given [`BUSY_PAUSE`] to find that the body is whole, or that nobody reads it, and then closes the
//! connection. If it reads from the stream even so, the shutdown is a real one.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep};

use super::state::ConnectionState;
use super::stream::BoundedStream;
use super::{ConnectionContext, ServerDrain, polled_when_woken, respond_when_decided};
use crate::GatewayBounds;
use crate::thread::GatewayThread;

/// The longest pause between two requests of a busy client. A connection that is parked and served again once a second costs
/// little beside its requests.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// The time between the last two requests of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPace {
    /// Long, or not known yet.
    Slow,
    /// At most the pause of a busy client.
    Busy,
}

/// The reason why hyper is polled no more.
enum ServingEnd {
    Over,
    Closing,
    Idle,
}

/// The state in which hyper leaves a connection.
enum ServedConnection<I> {
    Idle(BoundedStream<I>),
    /// Closed or upgraded.
    Over,
}

/// A timer that tells whether a busy connection has become idle.
struct IdleTimer {
    pace: ClientPace,
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The requests that were begun before the timer was set.
    n_requests: u64,
}

/// Serves a connection until it closes.
pub(super) async fn serve<S, I>(
    stream: BoundedStream<I>,
    context: Rc<ConnectionContext>,
    thread: Rc<GatewayThread<S>>,
    mut drain: impl ServerDrain,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let closing = polled_when_woken(drain.closing());
    serve_requests(stream, &context, &thread, closing).await;
    let tunnel = context.tunnel.take();
    if let Some(tunnel) = tunnel {
        Box::pin(tunnel.run(&thread, drain.begun())).await;
    }
}

/// Serves the requests of a connection until it closes or is upgraded.
async fn serve_requests<S, I>(
    mut stream: BoundedStream<I>,
    context: &Rc<ConnectionContext>,
    thread: &Rc<GatewayThread<S>>,
    closing: impl Future<Output = ()>,
) where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut closing = pin!(closing);
    let mut pace = ClientPace::Slow;
    // The idle timeout begins when the connection is parked.
    let pause = BUSY_PAUSE.min(thread.bounds.idle_timeout / 4);
    loop {
        if !stream.has_first() {
            let parked_at = Instant::now();
            let head = tokio::select! {
                biased;
                head = poll_fn(|context| stream.poll_head(context)) => head.is_ok(),
                () = closing.as_mut() => {
                    context.state.linger();
                    false
                }
            };
            if !head {
                // The client may be gone.
                let _ = stream.shutdown().await;
                return;
            }
            if context.state.n_requests() > 0 {
                let is_busy = parked_at.elapsed() <= pause;
                pace = if is_busy {
                    ClientPace::Busy
                } else {
                    ClientPace::Slow
                };
            }
        }
        // Boxed, so that a parked connection has no room for it.
        let idle_timer = IdleTimer::new(pace, pause);
        let served = serve_until_idle(stream, context, thread, closing.as_mut(), idle_timer);
        match Box::pin(served).await {
            ServedConnection::Idle(idle) => stream = idle,
            ServedConnection::Over => return,
        }
    }
}

/// Has hyper serve a connection until it is idle, closed or upgraded.
async fn serve_until_idle<S, I>(
    stream: BoundedStream<I>,
    context: &Rc<ConnectionContext>,
    thread: &Rc<GatewayThread<S>>,
    mut closing: Pin<&mut impl Future<Output = ()>>,
    mut idle_timer: IdleTimer,
) -> ServedConnection<I>
where
    S: Store + 'static,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // hyper keeps room for the future of a request as long as it serves the connection, so it is boxed.
    let service = service_fn(|request| respond_when_decided(request, thread, context));
    let mut connection = builder(&thread.bounds)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let state = &*context.state;
    let end = poll_fn(|context| {
        if Pin::new(&mut connection).poll(context).is_ready() {
            return Poll::Ready(ServingEnd::Over);
        }
        if closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(ServingEnd::Closing);
        }
        idle_timer.poll(state, context).map(|()| ServingEnd::Idle)
    });
    match end.await {
        // hyper has answered a client that speaks no HTTP; a client that breaks off is not an error of ours.
        ServingEnd::Over => return ServedConnection::Over,
        ServingEnd::Closing => {
            state.linger();
            Pin::new(&mut connection).graceful_shutdown();
            let _ = connection.await;
            return ServedConnection::Over;
        }
        ServingEnd::Idle => {}
    }
    state.set_parking(true);
    Pin::new(&mut connection).graceful_shutdown();
    let ended = poll_fn(|context| Poll::Ready(Pin::new(&mut connection).poll(context)));
    let has_ended = ended.await.is_ready();
    if !state.take_parking() || !has_ended {
        if !has_ended {
            let _ = connection.await;
        }
        return ServedConnection::Over;
    }
    match connection.into_parts() {
        Some(parts) => {
            let mut stream = parts.io.into_inner();
            stream.unread(&parts.read_buf);
            ServedConnection::Idle(stream)
        }
        None => ServedConnection::Over,
    }
}

fn builder(bounds: &GatewayBounds) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_header_size(bounds.max_head_bytes);
    // hyper has room for its default on the stack and allocates for every other number.
    if bounds.max_headers != GatewayBounds::DEFAULT_MAX_HEADERS {
        builder.max_headers(bounds.max_headers);
    }
    builder
}

// === impl IdleTimer ===

impl IdleTimer {
    const fn new(pace: ClientPace, pause: Duration) -> Self {
        Self {
            pace,
            pause,
            sleep: None,
            n_requests: 0,
        }
    }

    /// Ready once the connection can be parked. The timer is set once for all requests that come before it fires.
    fn poll(&mut self, state: &ConnectionState, context: &mut Context<'_>) -> Poll<()> {
        if !state.is_parkable() {
            return Poll::Pending;
        }
        if self.pace == ClientPace::Slow && !state.had_body() {
            return Poll::Ready(());
        }
        match &self.sleep {
            // Polled once, it wakes this task, which stays the same.
            Some(sleep) if !sleep.is_elapsed() => return Poll::Pending,
            Some(_) if self.n_requests == state.n_requests() => return Poll::Ready(()),
            _ => {}
        }
        self.n_requests = state.n_requests();
        let sleep = self.sleep.insert(Box::pin(sleep(self.pause)));
        // Without a budget, because a poll beyond that of this task would not set it.
        pin!(unconstrained(sleep.as_mut())).poll(context)
    }
}
