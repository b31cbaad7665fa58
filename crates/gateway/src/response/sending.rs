//! The end of a response over HTTP/2.
//!
//! hyper hands a piece over to its stream once the client has granted a window of one byte, and ends the task of the stream with the last
//! piece. Nobody could reset the stream then, and a client that takes nothing more would hold the piece for as long as its connection.
//! So a response ends only once the client has granted the window for all of its bytes:
//!
//! ```text
//!  the end is known with the last piece:  piece without its last byte ──► last byte and end
//!  the end comes later:                   piece ──► all pieces are taken ──► end
//! ```
//!
//! To know the end, the frame after a piece is read with it, if it is there and there is memory for it.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Buf as _;
use http::HeaderMap;
use hyper::body::Frame;

use super::{BodySource, GatewayBodyError};
use crate::executor::StreamProgress;
use crate::piece::Piece;

/// The part of an HTTP/2 response that its stream has not got.
#[derive(Debug)]
pub(super) struct StreamSending {
    progress: Rc<StreamProgress>,
    /// Read already, but not handed over.
    next: Option<NextPart>,
    /// The last byte, if all before it is handed over.
    last_byte: Option<Piece>,
    /// True if the client has granted the window for all bytes.
    may_end: bool,
}

/// One part of a body.
#[derive(Debug)]
enum NextPart {
    Piece(Piece),
    /// The end, with trailers if there are some.
    End(Option<HeaderMap>),
    Fault(GatewayBodyError),
}

// === impl StreamSending ===

impl StreamSending {
    pub(super) const fn new(progress: Rc<StreamProgress>) -> Self {
        Self {
            progress,
            next: None,
            last_byte: None,
            may_end: false,
        }
    }

    pub(super) fn poll(
        &mut self,
        source: &mut BodySource,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, GatewayBodyError>>> {
        if let Some(last_byte) = self.last_byte.take() {
            self.may_end = true;
            return Poll::Ready(Some(Ok(Frame::data(last_byte))));
        }
        let next = match self.next.take() {
            Some(next) => next,
            None => ready!(self.read(source, context)),
        };
        Poll::Ready(match next {
            NextPart::Piece(piece) => Some(Ok(Frame::data(self.hand_over(piece, source, context)))),
            NextPart::Fault(fault) => Some(Err(fault)),
            NextPart::End(trailers) => {
                if !self.may_end && self.progress.poll_sent(context).is_pending() {
                    self.next = Some(NextPart::End(trailers));
                    return Poll::Pending;
                }
                trailers.map(Frame::trailers).map(Ok)
            }
        })
    }

    /// True if it is known that nothing more comes.
    pub(super) fn is_at_end(&self, source: &BodySource) -> bool {
        match &self.next {
            _ if self.last_byte.is_some() => false,
            Some(next) => matches!(next, NextPart::End(None)),
            None => source.is_at_end(),
        }
    }

    /// The piece, or all of it but the last byte of the body.
    fn hand_over(
        &mut self,
        mut piece: Piece,
        source: &mut BodySource,
        context: &mut Context<'_>,
    ) -> Piece {
        let is_last = source.is_at_end() || {
            if let Poll::Ready(next) = self.read(source, context) {
                self.next = Some(next);
            }
            matches!(self.next, Some(NextPart::End(_)))
        };
        if !is_last {
            return piece;
        }
        if piece.remaining() == 1 {
            self.may_end = true;
            return piece;
        }
        let front = piece.split_off_front();
        self.last_byte = Some(piece);
        front
    }

    fn read(&self, source: &mut BodySource, context: &mut Context<'_>) -> Poll<NextPart> {
        loop {
            if let Some(memory) = &source.guard.memory {
                ready!(memory.poll_piece(context));
            }
            let frame = match ready!(source.poll(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(fault)) => return Poll::Ready(NextPart::Fault(fault)),
                None => return Poll::Ready(NextPart::End(None)),
            };
            match frame.into_data() {
                // It says nothing, and could be the last one.
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    let memory = source.guard.memory.as_ref();
                    let charge = memory.map(|memory| memory.charge_piece(bytes.len()));
                    let piece = Piece::http2(bytes, &self.progress, charge);
                    return Poll::Ready(NextPart::Piece(piece));
                }
                Err(frame) => return Poll::Ready(NextPart::End(frame.into_trailers().ok())),
            }
        }
    }
}
