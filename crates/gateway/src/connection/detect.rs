//! The protocol of a connection, by its first bytes.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::timeout;

use super::ClientProtocol;

/// The first bytes of every HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes that are read at first; most heads are shorter.
pub(super) const FIRST_BYTES: usize = 2 * 1024;

/// Finds the protocol, and returns the bytes that were read for it. `None` if the client closes or is silent for `most`.
pub(super) async fn detect<I>(
    io: &mut I,
    known: Option<ClientProtocol>,
    most: Duration,
) -> Option<(ClientProtocol, Bytes)>
where
    I: AsyncRead + Unpin,
{
    match known {
        Some(protocol) => Some((protocol, Bytes::new())),
        None => timeout(most, read_protocol(io)).await.ok()?,
    }
}

async fn read_protocol(io: &mut (impl AsyncRead + Unpin)) -> Option<(ClientProtocol, Bytes)> {
    let mut first = BytesMut::new();
    loop {
        let bytes = poll_fn(|context| poll_first_bytes(io, context)).await;
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
        first.extend_from_slice(&bytes);
        let n_bytes = first.len().min(PREFACE.len());
        if first[..n_bytes] != PREFACE[..n_bytes] {
            return Some((ClientProtocol::Http1, first.freeze()));
        }
        if n_bytes == PREFACE.len() {
            return Some((ClientProtocol::Http2, first.freeze()));
        }
    }
}

/// Reads the bytes that have arrived; none at the end. A client that is silent takes no memory for them.
pub(super) fn poll_first_bytes(
    io: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    let mut room = [MaybeUninit::uninit(); FIRST_BYTES];
    let mut buffer = ReadBuf::uninit(&mut room);
    ready!(Pin::new(io).poll_read(context, &mut buffer))?;
    Poll::Ready(Ok(Bytes::copy_from_slice(buffer.filled())))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn check(pieces: &[&[u8]], expected: Option<ClientProtocol>) {
        let mut io = tokio_test_io(pieces);
        let detected = detect(&mut io, None, Duration::from_secs(1)).await;
        let found = detected.map(|(protocol, first)| {
            assert_eq!(first, pieces.concat()[..first.len()]);
            protocol
        });
        assert_eq!(found, expected);
    }

    /// A stream that gives one piece for each read.
    fn tokio_test_io(pieces: &[&[u8]]) -> impl AsyncRead + Unpin + use<> {
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let chain: Box<dyn AsyncRead + Unpin> = pieces
            .into_iter()
            .fold(Box::new(tokio::io::empty()), |chain, piece| {
                Box::new(chain.chain(std::io::Cursor::new(piece)))
            });
        chain
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_different_byte_decides() {
        check(&[b"GET / HTTP/1.1\r\n"], Some(ClientProtocol::Http1)).await;
        check(&[b"P", b"OST / HTTP/1.1\r\n"], Some(ClientProtocol::Http1)).await;
        check(
            &[b"PRI * HT", b"TP/2.0\r\n\r\nSM\r\n\r\nmore"],
            Some(ClientProtocol::Http2),
        )
        .await;
        check(&[b"PRI"], None).await;
        check(&[], None).await;
    }
}
