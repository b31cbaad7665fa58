//! A stream that gives up on a peer who does not read.
//!
//! hyper and h2 bound what may arrive, but not how long an answer may take to leave: who asks and never
//! reads would keep its place among the connections for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Interval, interval};

/// A stream whose writes fail once the peer has taken nothing for so long.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    patience: Interval,
    /// Whether a write waits for the peer.
    is_stuck: bool,
}

// === impl Patient ===

impl<S> Patient<S> {
    /// `patience` is not zero.
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience: interval(patience),
            is_stuck: false,
        }
    }

    /// Turns a write that has waited too long into an error.
    fn bound<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_stuck = false;
            return written;
        }
        if !self.is_stuck {
            self.is_stuck = true;
            self.patience.reset();
        }
        ready!(self.patience.poll_tick(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.bound(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
