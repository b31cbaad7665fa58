//! Frames of a WebSocket connection (RFC 6455, section 5.2), by their headers alone.
//!
//! ```text
//!  header (2-14 bytes) ──complete──► payload ──all of it passed──► header
//! ```
//!
//! Payloads are skipped, never read: nothing is unmasked, decompressed or kept. Any bytes are a sequence of frames, so a boundary
//! between two frames can be found in whatever a server sends.

/// Finds frames in a stream of bytes, however the stream is cut into reads.
#[derive(Debug)]
pub(crate) struct FrameScanner {
    sender: FrameSender,
    /// Bytes of the payload that are still to come.
    payload_left: u64,
    /// True if a message has begun whose last frame is still to come.
    is_in_message: bool,
}

/// The side that sends the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSender {
    /// A client. Its frames are validated.
    Client,
    /// A server. Its frames are only told apart, because it is the client that judges them.
    Server,
}

/// The part of a frame that bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramePart {
    /// The header of a frame.
    Header {
        /// The kind of the frame.
        kind: FrameKind,
        /// Bytes of the header.
        n_bytes: usize,
    },
    /// A piece of the payload.
    Payload {
        /// Bytes of the piece.
        n_bytes: usize,
    },
    /// A header that is not all there, or nothing.
    Incomplete,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Text or binary: a message begins.
    Message,
    /// A message goes on.
    Continuation,
    /// A ping, a pong, or a control frame of a server that RFC 6455 does not know.
    Control,
    /// The last frame of its sender.
    Close,
}

/// A frame that a client must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameFault {
    #[error("reserved opcode {0:#x}")]
    ReservedOpcode(u8),
    #[error("frame of a client without a mask")]
    Unmasked,
    #[error("fragmented control frame")]
    FragmentedControl,
    #[error("control frame of more than 125 bytes")]
    LongControl,
    #[error("continuation of no message")]
    UnexpectedContinuation,
    #[error("new message before the end of the last one")]
    UnfinishedMessage,
    #[error("payload of 2^63 bytes or more")]
    LengthOutOfRange,
}

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
/// Bytes of a mask.
const MASK_BYTES: usize = 4;
/// The length that says that two bytes of length follow; control frames have a smaller one.
const LENGTH_16: u8 = 126;
/// The length that says that eight bytes of length follow.
const LENGTH_64: u8 = 127;

// === impl FrameScanner ===

impl FrameScanner {
    /// A scanner at the beginning of a stream.
    pub(crate) const fn new(sender: FrameSender) -> Self {
        Self {
            sender,
            payload_left: 0,
            is_in_message: false,
        }
    }

    /// Finds the part of a frame that `bytes` begin with, and takes it as passed. After [`FramePart::Incomplete`] the same bytes are
    /// to be given again with more behind them; after a fault, none.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Result<FramePart, FrameFault> {
        if self.payload_left == 0 {
            return self.scan_header(bytes);
        }
        if bytes.is_empty() {
            return Ok(FramePart::Incomplete);
        }
        let n_bytes =
            usize::try_from(self.payload_left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.payload_left = self.payload_left.saturating_sub(n_bytes as u64);
        Ok(FramePart::Payload { n_bytes })
    }

    /// Returns true if no frame is under way: another one may be put here.
    pub(crate) const fn is_at_boundary(&self) -> bool {
        self.payload_left == 0
    }

    fn scan_header(&mut self, bytes: &[u8]) -> Result<FramePart, FrameFault> {
        let [first, second, rest @ ..] = bytes else {
            return Ok(FramePart::Incomplete);
        };
        let (opcode, is_last) = (first & 0xf, first & FIN != 0);
        let (length, is_masked) = (second & !MASKED, second & MASKED != 0);
        // Faults are found in the first two bytes, before the rest of the header is waited for.
        if self.sender == FrameSender::Client {
            self.validate(opcode, is_last, is_masked, length)?;
        }
        let (n_length_bytes, payload) = match length {
            LENGTH_16 => (
                2,
                rest.first_chunk()
                    .map(|length| u16::from_be_bytes(*length).into()),
            ),
            LENGTH_64 => (
                8,
                rest.first_chunk().map(|length| u64::from_be_bytes(*length)),
            ),
            length => (0, Some(length.into())),
        };
        let n_bytes = 2 + n_length_bytes + if is_masked { MASK_BYTES } else { 0 };
        let (Some(payload), true) = (payload, bytes.len() >= n_bytes) else {
            return Ok(FramePart::Incomplete);
        };
        if self.sender == FrameSender::Client && payload >> 63 != 0 {
            return Err(FrameFault::LengthOutOfRange);
        }
        let kind = FrameKind::of(opcode);
        if matches!(kind, FrameKind::Message | FrameKind::Continuation) {
            self.is_in_message = !is_last;
        }
        self.payload_left = payload;
        Ok(FramePart::Header { kind, n_bytes })
    }

    fn validate(
        &self,
        opcode: u8,
        is_last: bool,
        is_masked: bool,
        length: u8,
    ) -> Result<(), FrameFault> {
        if matches!(opcode, 0x3..=0x7 | 0xb..=0xf) {
            return Err(FrameFault::ReservedOpcode(opcode));
        }
        if !is_masked {
            return Err(FrameFault::Unmasked);
        }
        match FrameKind::of(opcode) {
            FrameKind::Control | FrameKind::Close => {
                if !is_last {
                    return Err(FrameFault::FragmentedControl);
                }
                if length >= LENGTH_16 {
                    return Err(FrameFault::LongControl);
                }
            }
            // A server that is careless about these would take each of them for a message, which would not be counted.
            FrameKind::Continuation if !self.is_in_message => {
                return Err(FrameFault::UnexpectedContinuation);
            }
            FrameKind::Message if self.is_in_message => return Err(FrameFault::UnfinishedMessage),
            FrameKind::Continuation | FrameKind::Message => {}
        }
        Ok(())
    }
}

// === impl FrameKind ===

impl FrameKind {
    const fn of(opcode: u8) -> Self {
        match opcode {
            0x0 => Self::Continuation,
            0x1..0x8 => Self::Message,
            0x8 => Self::Close,
            _ => Self::Control,
        }
    }
}

#[cfg(test)]
mod tests;
