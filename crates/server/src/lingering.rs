//! A stream that lingers when the server closes it during the drain.
//!
//! A socket that is closed while bytes of its peer are unread, or on their way, is reset, and the reset may overtake the last
//! answer. So the write half is shut down first, and what the peer still sends is read and thrown away until it closes too.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Interval, interval};

use crate::drain::{Drain, Health};

/// A stream whose shutdown waits for its peer during the drain.
pub(crate) struct Lingering<I> {
    io: I,
    drain: Drain,
    /// The end of the wait, once the write half is shut down.
    linger: Option<Interval>,
}

/// The longest time that bytes of a peer are thrown away: several round trips of a bad line.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes that are thrown away at a time.
const DISCARDED_BYTES: usize = 1024;

// === impl Lingering ===

impl<I> Lingering<I> {
    pub(crate) fn new(io: I, drain: Drain) -> Self {
        Self {
            io,
            drain,
            linger: None,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Lingering<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let linger = if let Some(linger) = &mut this.linger {
            linger
        } else {
            ready!(Pin::new(&mut this.io).poll_shutdown(context))?;
            if this.drain.health() == Health::Serving {
                return Poll::Ready(Ok(()));
            }
            let linger = this.linger.insert(interval(LINGER_TIMEOUT));
            // It is ready at once otherwise.
            linger.reset();
            linger
        };
        if linger.poll_tick(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; DISCARDED_BYTES];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.io).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
