//! A client's stream with bounds on waiting for a head.
//!
//! ```text
//!  idle ──first byte──► head ──request begins──► busy ──request ends──► idle
//!   │ idle_timeout       │ head_timeout           (no bound here: bodies have their own)
//!   ▼                    ▼
//!  closed               closed
//! ```
//!
//! A client whose body is not read to its end, because it was denied or the upstream has answered already, still sends while the
//! connection is closed. Its bytes are discarded for a while: a connection that is closed with bytes unread is reset, and the reset
//! would overtake the response. Connections that the drain closes linger likewise.
//!
//! The timer is armed once and looks at the true deadline when it fires, because requests come far more often than it does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::detect::poll_first_bytes;
use super::state::ConnectionState;
use crate::gather::poll_write_gathered;

/// A client's stream whose reads fail once a head takes too long.
pub(super) struct BoundedStream<I> {
    io: I,
    /// Bytes that were read before hyper was there to read them.
    first: Bytes,
    state: Arc<ConnectionState>,
    idle_timeout: Duration,
    head_timeout: Duration,
    /// The wait that `deadline` bounds.
    wait: Wait,
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    is_shut_down: bool,
}

/// The longest time that bytes of a body are discarded after the response to it.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time that a request is discarded which was on its way when the drain closed the connection.
const DRAIN_LINGER_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes that are discarded at a time.
const DISCARDED_BYTES: usize = 4 * 1024;

/// A wait for a head. The number is that of the requests that were begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    None,
    Idle(u64),
    Head(u64),
}

// === impl BoundedStream ===

impl<I> BoundedStream<I> {
    pub(super) fn new(
        io: I,
        first: Bytes,
        state: Arc<ConnectionState>,
        idle_timeout: Duration,
        head_timeout: Duration,
    ) -> Self {
        Self {
            io,
            first,
            state,
            idle_timeout,
            head_timeout,
            wait: Wait::None,
            deadline: Instant::now(),
            timer: None,
            is_shut_down: false,
        }
    }

    /// True if there are bytes that hyper has not read.
    pub(super) fn has_first(&self) -> bool {
        !self.first.is_empty()
    }

    /// Gives back bytes that hyper has read but not used.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.first = [bytes, &self.first].concat().into();
        }
    }

    /// Turns a wait for a head that is too long into an error.
    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.state.is_idle() {
            return Poll::Pending;
        }
        let n_requests = self.state.n_requests();
        let (wait, most) = if self.state.has_head() {
            (Wait::Head(n_requests), self.head_timeout)
        } else {
            (Wait::Idle(n_requests), self.idle_timeout)
        };
        if self.wait != wait {
            self.wait = wait;
            self.deadline = Instant::now() + most;
        }
        let deadline = self.deadline;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        // A timer that fires too late must not be waited for; one that fires too early is set again.
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            timer.as_mut().reset(deadline);
        }
    }

    /// Notes bytes that arrived. Those of a body that hyper discards after the response are not of a head.
    fn note_received(&self) {
        if !self.has_unread_body() {
            self.state.received();
        }
    }

    /// True if the client may still be sending a body. After a body that was read, the next head was waited for.
    fn has_unread_body(&self) -> bool {
        self.state.had_body() && self.wait != Wait::Idle(self.state.n_requests())
    }
}

impl<I: AsyncRead + Unpin> BoundedStream<I> {
    /// Waits for the next head without hyper. An error if the client closes, or is silent for too long.
    pub(super) fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match poll_first_bytes(&mut self.io, context)? {
            Poll::Pending => self.poll_wait(context),
            Poll::Ready(bytes) if bytes.is_empty() => {
                Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            Poll::Ready(bytes) => {
                self.first = bytes;
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Discards what the client sends until it closes, and not longer than until the deadline.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; DISCARDED_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.io).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        match &mut self.timer {
            Some(timer) => timer.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for BoundedStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // hyper is not between two requests.
        this.state.set_parking(false);
        if !this.first.is_empty() {
            let n_bytes = this.first.len().min(buffer.remaining());
            buffer.put_slice(&this.first.split_to(n_bytes));
            this.note_received();
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut this.io).poll_read(context, buffer) {
            Poll::Pending => this.poll_wait(context),
            ready @ Poll::Ready(_) => {
                this.note_received();
                ready
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BoundedStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.state.set_flushed(false);
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.state.set_flushed(false);
        poll_write_gathered(&mut self.io, context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.state
            .set_flushed(matches!(flushed, Poll::Ready(Ok(()))));
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.state.is_parking() {
            return Poll::Ready(Ok(()));
        }
        this.state.set_flushed(false);
        if !this.is_shut_down {
            ready!(Pin::new(&mut this.io).poll_shutdown(context))?;
            this.is_shut_down = true;
            let timeout = match (this.has_unread_body(), this.state.lingers()) {
                (true, _) => LINGER_TIMEOUT,
                (false, true) => DRAIN_LINGER_TIMEOUT,
                (false, false) => return Poll::Ready(Ok(())),
            };
            this.timer = Some(Box::pin(sleep_until(Instant::now() + timeout)));
        }
        this.poll_linger(context).map(Ok)
    }
}
