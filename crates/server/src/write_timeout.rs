//! A stream with a timeout for writes.
//!
//! hyper and h2 bound the data that may arrive, but not the time that a response takes to leave: a client that never reads would keep
//! its place among the connections for ever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_gateway::ConnectionActivity;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Interval, interval};

/// A stream whose writes fail if the peer reads nothing for the length of a timeout.
#[derive(Debug)]
pub(crate) struct WriteTimeoutStream<S> {
    stream: S,
    timeout: Interval,
    /// True while a write waits for the peer.
    is_stuck: bool,
    /// True if several pieces may be offered for one write.
    is_vectored: bool,
    /// A write that waits keeps the connection from being evicted.
    activity: Arc<ConnectionActivity>,
}

// === impl WriteTimeoutStream ===

impl<S> WriteTimeoutStream<S> {
    /// `timeout` is not zero.
    pub(crate) fn new(stream: S, timeout: Duration, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            stream,
            timeout: interval(timeout),
            is_stuck: false,
            is_vectored: true,
            activity,
        }
    }

    /// The same stream, which says that it takes one piece at a time.
    ///
    /// To a vectored stream h2 writes every message from 256 bytes on by itself, and no further message goes
    /// into that write. To any other it copies messages up to 1 KiB into one buffer, which holds the answers
    /// of many calls: `bench/RESULTS.md` has a row for denied calls.
    pub(crate) fn unvectored(self) -> Self {
        Self {
            is_vectored: false,
            ..self
        }
    }

    /// Turns a write that has waited too long into an error.
    fn bound<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.is_stuck {
                self.is_stuck = false;
                self.activity.end();
            }
            return written;
        }
        if !self.is_stuck {
            self.is_stuck = true;
            self.activity.begin();
            self.timeout.reset();
        }
        ready!(self.timeout.poll_tick(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
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
        self.is_vectored && self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Where TLS keeps a write back, it is the flush that waits.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.bound(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.bound(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    /// Takes every write, as TLS does, and brings none of it over the line.
    struct KeptBack;

    impl AsyncWrite for KeptBack {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, _theirs) = duplex(4);
        let mut stream = WriteTimeoutStream::new(ours, TIMEOUT, Arc::default());
        let started = Instant::now();
        let error = stream.write_all(b"more than four").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_was_taken_and_kept_back_is_given_up_too() {
        let mut stream = WriteTimeoutStream::new(KeptBack, TIMEOUT, Arc::default());
        for _ in 0..2 {
            let started = Instant::now();
            stream.write_all(b"kept").await.unwrap();
            let error = stream.flush().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(started.elapsed(), TIMEOUT);
        }
        let error = stream.shutdown().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_is_waited_for() {
        let (ours, mut theirs) = duplex(1);
        let mut stream = WriteTimeoutStream::new(ours, TIMEOUT, Arc::default());
        let writing = tokio::spawn(async move { stream.write_all(b"slow").await });
        for byte in *b"slow" {
            tokio::time::advance(TIMEOUT / 2).await;
            assert_eq!(theirs.read_u8().await.unwrap(), byte);
        }
        writing.await.unwrap().unwrap();
    }
}
