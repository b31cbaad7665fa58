//! A connection to a target as bytes, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::gather::poll_write_gathered;

/// The bytes of one connection.
#[derive(Debug)]
pub(super) struct UpstreamStream {
    inner: InnerStream,
    read_mark: ReadMark,
}

/// Says that something was read since it was cleared. A response of which nothing was read was not begun.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadMark(Arc<AtomicBool>);

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
            read_mark: ReadMark::default(),
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            inner: InnerStream::Tls(Box::new(stream)),
            read_mark: ReadMark::default(),
        }
    }

    pub(super) fn read_mark(&self) -> ReadMark {
        self.read_mark.clone()
    }
}

impl AsyncRead for UpstreamStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        let polled = match &mut self.inner {
            InnerStream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            InnerStream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        };
        if buffer.filled().len() > n_before {
            self.read_mark.set();
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

// === impl ReadMark ===

impl ReadMark {
    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
