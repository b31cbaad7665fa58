//! Pieces of responses on their way to clients.

use std::rc::Rc;

use bytes::{Buf, Bytes};

use crate::connection::PieceCharge;
use crate::executor::{StreamProgress, UnsentGuard};

/// A piece of a response on its way to a client.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    /// The stream that sends it, over HTTP/2.
    stream: Option<PieceStream>,
}

#[derive(Debug)]
struct PieceStream {
    unsent: UnsentGuard,
    #[expect(dead_code, reason = "held for its drop")]
    charge: Option<PieceCharge>,
}

// === impl Piece ===

impl Piece {
    /// A piece for a client that speaks HTTP/1.
    pub(crate) const fn http1(bytes: Bytes) -> Self {
        Self {
            bytes,
            stream: None,
        }
    }

    /// A piece for an HTTP/2 stream, which notes its progress. `charge` is held until the client has taken the piece.
    pub(crate) fn http2(
        bytes: Bytes,
        progress: &Rc<StreamProgress>,
        charge: Option<PieceCharge>,
    ) -> Self {
        let unsent = progress.begin_piece();
        Self {
            bytes,
            stream: Some(PieceStream { unsent, charge }),
        }
    }

    /// Takes all but the last byte off its front. The charge stays with the last byte, because both are one allocation.
    pub(crate) fn split_off_front(&mut self) -> Self {
        let n_front = self.bytes.len().saturating_sub(1);
        Self {
            bytes: self.bytes.split_to(n_front),
            stream: self.stream.as_ref().map(|stream| PieceStream {
                unsent: stream.unsent.another(),
                charge: None,
            }),
        }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, n_bytes: usize) {
        self.bytes.advance(n_bytes);
        if let Some(stream) = &self.stream {
            stream.unsent.note_progress();
        }
    }
}
