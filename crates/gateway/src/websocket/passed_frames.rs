//! Frames that are passed on without being charged.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::buffer::{FrameBuffer, ReadEnd};
use super::close::CloseReason;
use super::frame::{FrameKind, FramePart, FrameScanner, FrameSender};
use super::{Closing, reason};
use crate::upgrade::Activity;

/// The frames of one side.
pub(super) struct PassedFrames<'a> {
    pub(super) sender: FrameSender,
    pub(super) malformed: MalformedFrames,
    pub(super) closing: Closing,
    pub(super) activity: &'a Activity,
}

/// The treatment of bytes that are not frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MalformedFrames {
    /// They end the connection.
    Cut,
    /// They are passed unread, with all that follows. No boundary is found among them.
    Pass,
}

// === impl PassedFrames ===

impl PassedFrames<'_> {
    /// Passes frames until the sender ends its stream or, once the connection is being closed, until the next boundary. Gives the
    /// reason that the receiver is still to be told.
    pub(super) async fn pass_to_boundary(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<Option<CloseReason>> {
        let mut scanner = Some(FrameScanner::new(self.sender));
        let mut buffer = FrameBuffer::new();
        let mut is_close_passed = false;
        loop {
            let is_at_boundary = scanner.as_ref().is_some_and(FrameScanner::is_at_boundary);
            tokio::select! {
                biased;
                reason = reason(&mut self.closing), if is_at_boundary => {
                    return Ok(Some(reason).filter(|_| !is_close_passed));
                }
                read = buffer.read(from) => if read? == ReadEnd::EndOfStream {
                    return Ok(None);
                }
            }
            while let Some(frames) = &mut scanner
                && !(frames.is_at_boundary() && self.closing.borrow().is_some())
            {
                match (frames.scan(buffer.unscanned()), self.malformed) {
                    (Ok(FramePart::Header { kind, n_bytes }), _) => {
                        is_close_passed |= kind == FrameKind::Close;
                        buffer.pass(n_bytes);
                    }
                    (Ok(FramePart::Payload { n_bytes }), _) => buffer.pass(n_bytes),
                    (Ok(FramePart::Incomplete), _) => break,
                    (Err(fault), MalformedFrames::Cut) => {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
                    }
                    (Err(_), MalformedFrames::Pass) => scanner = None,
                }
            }
            if scanner.is_none() {
                buffer.pass(buffer.unscanned().len());
            }
            buffer.write(to).await?;
            self.activity.note();
        }
    }
}
