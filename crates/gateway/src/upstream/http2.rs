//! One HTTP/2 connection, shared by many requests.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::connect::OpenedStream;
use super::local::LocalTarget;
use super::outgoing::OutgoingBody;
use super::stream::UpstreamStream;
use super::timer::now;

/// One HTTP/2 connection. It closes when neither the pool nor a request holds it.
#[derive(Debug)]
pub(super) struct Http2Connection {
    /// Later connections of the same target have greater numbers.
    pub(super) serial: u64,
    sender: RefCell<SendRequest<OutgoingBody>>,
    n_streams: Cell<usize>,
    /// The most streams that the target allows at present.
    peer_max: Rc<Cell<usize>>,
    is_draining: Cell<bool>,
    /// True if a request has used it. A new one is kept for the request that waits for it.
    was_used: Cell<bool>,
    pub(super) idle_since: Cell<Instant>,
    pub(super) address: SocketAddr,
    pub(super) list_version: Cell<u64>,
    /// Whose place it gives back at its end.
    target: Weak<LocalTarget>,
}

/// Spawns on this thread.
#[derive(Clone, Copy, Debug)]
struct LocalExecutor;

/// A stream that reports each read, so that the first settings of the target are noticed.
#[derive(Debug)]
struct NoticedStream {
    stream: TokioIo<UpstreamStream>,
    notice: Rc<Notify>,
}

/// Bytes that one stream may send before a client has taken them.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The most that HTTP/2 can say.
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// Bytes of a response's head.
const MAX_HEAD_BYTES: u32 = 64 * 1024;
/// Time of silence with requests in progress after which the target is pinged, and time for it to answer.
const PING_AFTER: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of streams that stands for "not yet known". Nothing is sent before the target's settings, because what
/// it allows less than we send at first would be refused.
const UNKNOWN: usize = 0;

// === impl Http2Connection ===

impl Http2Connection {
    pub(super) async fn start(
        opened: OpenedStream,
        list_version: u64,
        serial: u64,
        max_streams: usize,
        target: Weak<LocalTarget>,
    ) -> io::Result<Self> {
        let notice = Rc::new(Notify::new());
        let stream = NoticedStream {
            stream: TokioIo::new(opened.stream),
            notice: Rc::clone(&notice),
        };
        // A client that reads nothing holds up its own stream, never the others.
        let max_streams = u32::try_from(max_streams).unwrap_or(MAX_WINDOW);
        let connection_window = STREAM_WINDOW.saturating_mul(max_streams).min(MAX_WINDOW);
        let (sender, mut connection) = Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(connection_window)
            .initial_max_send_streams(UNKNOWN)
            .max_header_list_size(MAX_HEAD_BYTES)
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        while connection.current_max_send_streams() == UNKNOWN {
            tokio::select! {
                closed = &mut connection => {
                    closed.map_err(io::Error::other)?;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                () = notice.notified() => {}
            }
        }
        let peer_max = Rc::new(Cell::new(connection.current_max_send_streams()));
        let known_max = Rc::clone(&peer_max);
        spawn_local(poll_fn(move |context| {
            let polled = Pin::new(&mut connection).poll(context);
            known_max.set(connection.current_max_send_streams());
            polled
        }));
        Ok(Self {
            serial,
            sender: RefCell::new(sender),
            n_streams: Cell::new(0),
            peer_max,
            is_draining: Cell::new(false),
            was_used: Cell::new(false),
            idle_since: Cell::new(now()),
            address: opened.address,
            list_version: Cell::new(list_version),
            target,
        })
    }

    /// Sends a request. On failure, one of which nothing was written comes back.
    pub(super) fn send(
        &self,
        request: Request<OutgoingBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<OutgoingBody>>>> + use<>
    {
        self.sender.borrow_mut().try_send_request(request)
    }

    /// True if another stream may be opened.
    pub(super) fn has_room(&self, max_streams: usize) -> bool {
        !self.is_over() && self.n_streams.get() < max_streams.min(self.peer_max.get())
    }

    /// True if no stream will be opened any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_draining.get() || self.sender.borrow().is_closed()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.n_streams.get() == 0
    }

    /// Takes no new streams; those that are open go on.
    pub(super) fn drain(&self) {
        self.is_draining.set(true);
    }

    /// Notes that a request uses it.
    pub(super) fn note_use(&self) {
        self.was_used.set(true);
    }

    pub(super) fn was_used(&self) -> bool {
        self.was_used.get()
    }

    pub(super) fn begin_stream(&self) {
        self.n_streams.set(self.n_streams.get() + 1);
    }

    pub(super) fn end_stream(&self) {
        self.n_streams.set(self.n_streams.get().saturating_sub(1));
        if self.is_idle() {
            self.idle_since.set(now());
        }
    }
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        if let Some(target) = self.target.upgrade() {
            target.release_place();
        }
    }
}

// === impl LocalExecutor ===

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        spawn_local(future);
    }
}

// === impl NoticedStream ===

impl Read for NoticedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.notice.notify_one();
        }
        polled
    }
}

impl Write for NoticedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
