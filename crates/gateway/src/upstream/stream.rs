//! A connection to a target as bytes, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::client::TlsStream;

use crate::gather::poll_write_gathered;

/// The bytes of one connection.
#[derive(Debug)]
pub(super) struct UpstreamStream {
    inner: InnerStream,
    reads: Arc<ReadState>,
    /// Wakes the one who polls the connection, once there is something to read.
    waker: Option<Waker>,
    /// Held until the connection is closed.
    permit: Option<OwnedSemaphorePermit>,
}

/// The reads of one connection, as its stream and those who use it know them. All of them are on one thread.
#[derive(Debug, Default)]
pub(super) struct ReadState {
    /// True if something was read since it was cleared. A response of which nothing was read was not begun.
    was_read: AtomicBool,
    /// True if the stream's own waker wakes the one who polls the connection.
    has_waker: AtomicBool,
    /// True if there is nothing to read before that waker is called. hyper asks five times for each response.
    waits: AtomicBool,
}

/// Ends the wait of a stream.
struct ReadWaker {
    reads: Arc<ReadState>,
    driver: Waker,
}

#[derive(Debug)]
enum InnerStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

// === impl UpstreamStream ===

impl UpstreamStream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self {
            inner: InnerStream::Plain(stream),
            reads: Arc::default(),
            waker: None,
            permit: None,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            inner: InnerStream::Tls(Box::new(stream)),
            reads: Arc::default(),
            waker: None,
            permit: None,
        }
    }

    /// Holds the permit of the connection until it is closed.
    pub(super) fn hold(&mut self, permit: Option<OwnedSemaphorePermit>) {
        self.permit = permit;
    }

    /// Gives the stream a waker for the one who polls the connection, until [`ReadState::leave_waker`].
    pub(super) fn wake_by(&mut self, driver: Waker) -> Arc<ReadState> {
        let reads = Arc::clone(&self.reads);
        self.waker = Some(Waker::from(Arc::new(ReadWaker { reads, driver })));
        self.reads.has_waker.store(true, Relaxed);
        Arc::clone(&self.reads)
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            inner,
            reads,
            waker,
            ..
        } = &mut *self;
        let n_before = buffer.filled().len();
        let polled = match waker {
            Some(waker) if reads.has_waker.load(Relaxed) => {
                if reads.waits.load(Relaxed) {
                    return Poll::Pending;
                }
                // Before the read, because the waker may be called meanwhile.
                reads.waits.store(true, Relaxed);
                let polled = inner.poll_read(&mut Context::from_waker(waker), buffer);
                if polled.is_ready() {
                    reads.waits.store(false, Relaxed);
                }
                polled
            }
            _ => inner.poll_read(context, buffer),
        };
        if buffer.filled().len() > n_before {
            reads.was_read.store(true, Relaxed);
        }
        polled
    }
}

impl AsyncWrite for UpstreamStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_flush(context),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.inner {
            InnerStream::Plain(stream) => stream.is_write_vectored(),
            InnerStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            InnerStream::Plain(stream) => poll_write_gathered(stream, context, slices),
            InnerStream::Tls(stream) => {
                Pin::new(stream.as_mut()).poll_write_vectored(context, slices)
            }
        }
    }
}

// === impl InnerStream ===

impl InnerStream {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

// === impl ReadState ===

impl ReadState {
    pub(super) fn was_read(&self) -> bool {
        self.was_read.load(Relaxed)
    }

    /// Marks the start of a request: nothing of its response was read yet.
    pub(super) fn begin(&self) {
        self.was_read.store(false, Relaxed);
    }

    /// Has the stream wake whoever polls it from now on.
    pub(super) fn leave_waker(&self) {
        self.has_waker.store(false, Relaxed);
        self.waits.store(false, Relaxed);
    }
}

// === impl ReadWaker ===

impl Wake for ReadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.reads.waits.store(false, Relaxed);
        self.driver.wake_by_ref();
    }
}
