//! The bytes of one direction between a read and a write.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes that were read and not yet written. Passed bytes go out together; a header that is not complete stays.
///
/// ```text
///  0        n_sent        n_passed        n_filled
///  │ written  │  to be written │ not scanned │ room
/// ```
#[derive(Debug)]
pub(super) struct FrameBuffer {
    bytes: Box<[u8]>,
    n_sent: usize,
    n_passed: usize,
    n_filled: usize,
}

/// The end of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadEnd {
    /// There are more bytes.
    Bytes,
    /// The sender has ended its stream.
    EndOfStream,
}

/// Bytes that are read at a time, as in a tunnel of any other protocol. The longest header has 14.
const BUFFER_BYTES: usize = 8 * 1024;

// === impl FrameBuffer ===

impl FrameBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES].into_boxed_slice(),
            n_sent: 0,
            n_passed: 0,
            n_filled: 0,
        }
    }

    /// Reads once. All passed bytes must be written, and no more than a header may be left.
    ///
    /// # Cancel safety
    ///
    /// A read that is dropped has read nothing.
    pub(super) async fn read(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<ReadEnd> {
        self.bytes.copy_within(self.n_sent..self.n_filled, 0);
        self.n_filled -= self.n_sent;
        self.n_passed -= self.n_sent;
        self.n_sent = 0;
        let n_bytes = from.read(&mut self.bytes[self.n_filled..]).await?;
        self.n_filled += n_bytes;
        Ok(if n_bytes == 0 {
            ReadEnd::EndOfStream
        } else {
            ReadEnd::Bytes
        })
    }

    /// The bytes that were not passed.
    pub(super) fn unscanned(&self) -> &[u8] {
        &self.bytes[self.n_passed..self.n_filled]
    }

    /// Marks the next `n_bytes` as passed.
    pub(super) fn pass(&mut self, n_bytes: usize) {
        self.n_passed = self.n_filled.min(self.n_passed + n_bytes);
    }

    /// Writes the bytes that were passed.
    pub(super) async fn write(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if self.n_sent < self.n_passed {
            to.write_all(&self.bytes[self.n_sent..self.n_passed])
                .await?;
            self.n_sent = self.n_passed;
            // TLS keeps bytes that the socket did not take.
            to.flush().await?;
        }
        Ok(())
    }
}
