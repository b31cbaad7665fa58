//! Writes of several pieces.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use arrayvec::ArrayVec;
use tokio::io::AsyncWrite;

/// The largest sum of pieces that is copied: most responses of an API, head included.
const MAX_COPIED_BYTES: usize = 2 * 1024;

/// Writes several pieces in one call. A gathering call costs the kernel more than a plain one does, so small pieces are copied together
/// first.
pub(crate) fn poll_write_gathered<W: AsyncWrite + Unpin>(
    io: &mut W,
    context: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let io = Pin::new(io);
    if let [piece] = pieces {
        return io.poll_write(context, piece);
    }
    let mut copied = ArrayVec::<u8, MAX_COPIED_BYTES>::new();
    for piece in pieces {
        if copied.try_extend_from_slice(piece).is_err() {
            return io.poll_write_vectored(context, pieces);
        }
    }
    io.poll_write(context, &copied)
}
