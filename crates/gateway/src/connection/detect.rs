//! The protocol of a connection, by its first bytes.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::ClientProtocol;

/// The first bytes of every HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection whose protocol is known.
pub(super) struct Detected<I> {
    pub(super) io: I,
    /// The bytes that were read for it.
    pub(super) prefix: Prefix,
    pub(super) protocol: ClientProtocol,
}

/// Bytes that were read before their reader was known.
#[derive(Debug)]
pub(super) struct Prefix {
    bytes: [u8; PREFACE.len()],
    start: usize,
    end: usize,
}

/// Finds the protocol, reading as little as needed. `None` if the client closes or is silent for `most`.
pub(super) async fn detect<I>(
    mut io: I,
    known: Option<ClientProtocol>,
    most: Duration,
) -> Option<Detected<I>>
where
    I: AsyncRead + Unpin,
{
    let mut prefix = Prefix::empty();
    let protocol = match known {
        Some(protocol) => protocol,
        None => timeout(most, prefix.read(&mut io)).await.ok()??,
    };
    Some(Detected {
        io,
        prefix,
        protocol,
    })
}

// === impl Prefix ===

impl Prefix {
    const fn empty() -> Self {
        Self {
            bytes: [0; PREFACE.len()],
            start: 0,
            end: 0,
        }
    }

    /// Takes up to `most` of the bytes.
    pub(super) fn take(&mut self, most: usize) -> &[u8] {
        let start = self.start;
        self.start = self.end.min(start + most);
        &self.bytes[start..self.start]
    }

    async fn read(&mut self, io: &mut (impl AsyncRead + Unpin)) -> Option<ClientProtocol> {
        while self.end < PREFACE.len() {
            let n_bytes = io.read(&mut self.bytes[self.end..]).await.ok()?;
            if n_bytes == 0 {
                return None;
            }
            self.end += n_bytes;
            if self.bytes[..self.end] != PREFACE[..self.end] {
                return Some(ClientProtocol::Http1);
            }
        }
        Some(ClientProtocol::Http2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(pieces: &[&[u8]], expected: Option<ClientProtocol>) {
        let mut builder = tokio_test_io(pieces);
        let detected = detect(&mut builder, None, Duration::from_secs(1)).await;
        let found = detected.map(|mut detected| {
            let whole = pieces.concat();
            let taken = detected.prefix.take(99).to_vec();
            assert_eq!(taken, whole[..taken.len()]);
            detected.protocol
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
