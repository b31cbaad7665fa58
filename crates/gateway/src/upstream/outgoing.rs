//! The body of a request while it is sent, which may be taken back for another attempt.
//!
//! hyper keeps the body that it is given. So it is given a handle, and the body itself stays in a [`BodyLink`] that the attempt keeps too.
//! Empty bodies need neither.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::timer::now;
use crate::body::{BodyFault, RequestBody};

/// The body as one attempt sends it.
#[derive(Debug)]
pub(super) enum OutgoingBody {
    /// No body.
    Empty,
    /// A handle of a body.
    Linked {
        /// The body.
        link: Rc<BodyLink>,
        /// The attempt that this handle belongs to; those of earlier attempts yield nothing.
        attempt: u32,
        /// Kept bytes that this attempt has sent, the first time or again.
        n_replayed: usize,
    },
}

/// A body that is being sent.
#[derive(Debug)]
pub(super) struct BodyLink {
    body: RefCell<RequestBody>,
    attempt: Cell<u32>,
    kept: RefCell<KeptBytes>,
    state: Cell<LinkState>,
    /// The time of the last piece, or of the beginning.
    progress_at: Cell<Instant>,
    /// Of the task that sends, so that it notices the end of the exchange.
    waker: RefCell<Option<Waker>>,
}

/// A copy of all bytes that were sent, as long as they may have to be sent again. A piece itself is not kept, because it is a part of a
/// larger buffer: a client that sends single bytes would have some KiB held for each.
#[derive(Debug, Default)]
struct KeptBytes {
    bytes: Vec<u8>,
    is_complete: bool,
}

/// The state of a body that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The target has to take the next piece.
    Sending,
    /// The client has to send the next piece.
    WaitingForClient,
    /// All is sent.
    Ended,
    /// The client's body failed.
    Failed(BodyFault),
    /// The exchange ended before the body did.
    Stopped,
}

/// The bytes of a body that are kept for a second attempt. Most gRPC messages and most bodies of PUT are smaller.
const MAX_KEPT_BYTES: usize = 64 * 1024;

// === impl OutgoingBody ===

impl OutgoingBody {
    pub(super) fn new(body: RequestBody) -> Self {
        if body.is_end_stream() {
            return Self::Empty;
        }
        Self::Linked {
            link: Rc::new(BodyLink {
                body: RefCell::new(body),
                attempt: Cell::new(0),
                kept: RefCell::new(KeptBytes {
                    bytes: Vec::new(),
                    is_complete: true,
                }),
                state: Cell::new(LinkState::Sending),
                progress_at: Cell::new(now()),
                waker: RefCell::new(None),
            }),
            attempt: 0,
            n_replayed: 0,
        }
    }

    pub(super) fn link(&self) -> Option<&Rc<BodyLink>> {
        match self {
            Self::Empty => None,
            Self::Linked { link, .. } => Some(link),
        }
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Linked {
                link,
                attempt,
                n_replayed,
            } => {
                if link.attempt.get() != *attempt || link.state.get() == LinkState::Stopped {
                    return Poll::Ready(Some(Err(BodyFault::Incomplete)));
                }
                if let rest @ [_, ..] = link.kept.borrow().after(*n_replayed) {
                    *n_replayed += rest.len();
                    let again = Bytes::copy_from_slice(rest);
                    return Poll::Ready(Some(Ok(Frame::data(again))));
                }
                let polled = ready!(link.poll(context));
                // Whatever it kept just now, this attempt has sent.
                *n_replayed = link.kept.borrow().bytes.len();
                Poll::Ready(polled)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Linked {
                link, n_replayed, ..
            } => {
                link.kept.borrow().after(*n_replayed).is_empty()
                    && link.body.borrow().is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Linked {
                link, n_replayed, ..
            } => {
                let hint = link.body.borrow().size_hint();
                let n_again = link.kept.borrow().after(*n_replayed).len();
                hint.exact().map_or_else(SizeHint::default, |n_bytes| {
                    SizeHint::with_exact(n_bytes + n_again as u64)
                })
            }
        }
    }
}

// === impl BodyLink ===

impl BodyLink {
    pub(super) fn state(&self) -> LinkState {
        self.state.get()
    }

    /// True if the client's next piece is missing, or will never come.
    pub(super) fn is_held_up_by_client(&self) -> bool {
        matches!(
            self.state(),
            LinkState::WaitingForClient | LinkState::Failed(_)
        )
    }

    pub(super) fn progress_at(&self) -> Instant {
        self.progress_at.get()
    }

    /// True if nobody has begun to read it.
    pub(super) fn is_untouched(&self) -> bool {
        self.body.borrow().is_replayable() && self.kept.borrow().bytes.is_empty()
    }

    /// True if all that was read of it is kept.
    pub(super) fn is_replayable(&self) -> bool {
        let is_sound = !matches!(self.state(), LinkState::Failed(_) | LinkState::Stopped);
        is_sound && (self.is_untouched() || self.kept.borrow().is_complete)
    }

    /// Keeps no more bytes: there will be no other attempt.
    pub(super) fn forget_bytes(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.is_complete = false;
        // A later attempt may not have sent all of them.
        if self.attempt.get() == 0 {
            *kept = KeptBytes::default();
        }
    }

    /// Sends the body without waiting until the target asks for it.
    pub(super) fn skip_continue(&self) {
        self.body.borrow_mut().skip_continue();
    }

    /// A handle for another attempt. Earlier handles yield nothing more.
    pub(super) fn begin_again(self: &Rc<Self>) -> OutgoingBody {
        let attempt = self.attempt.get().wrapping_add(1);
        self.attempt.set(attempt);
        self.progress_at.set(now());
        if self.state() == LinkState::WaitingForClient {
            self.state.set(LinkState::Sending);
        }
        OutgoingBody::Linked {
            link: Rc::clone(self),
            attempt,
            n_replayed: 0,
        }
    }

    /// Ends the body with a fault, so that its stream is reset, unless it has ended by itself.
    pub(super) fn stop(&self) {
        if matches!(
            self.state(),
            LinkState::Sending | LinkState::WaitingForClient
        ) {
            self.state.set(LinkState::Stopped);
            if let Some(waker) = self.waker.borrow_mut().take() {
                waker.wake();
            }
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let mut body = self.body.borrow_mut();
        let Poll::Ready(polled) = Pin::new(&mut *body).poll_frame(context) else {
            self.state.set(LinkState::WaitingForClient);
            *self.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        };
        self.progress_at.set(now());
        self.state.set(match &polled {
            Some(Err(fault)) => LinkState::Failed(*fault),
            None => LinkState::Ended,
            Some(Ok(_)) if body.is_end_stream() => LinkState::Ended,
            Some(Ok(_)) => LinkState::Sending,
        });
        if let Some(Ok(frame)) = &polled {
            self.kept.borrow_mut().keep(frame);
        }
        Poll::Ready(polled)
    }
}

// === impl KeptBytes ===

impl KeptBytes {
    /// The bytes after the first `n_replayed`.
    fn after(&self, n_replayed: usize) -> &[u8] {
        self.bytes.get(n_replayed..).unwrap_or_default()
    }

    fn keep(&mut self, frame: &Frame<Bytes>) {
        if !self.is_complete {
            return;
        }
        let data = frame.data_ref();
        let n_bytes = data.map(|data| self.bytes.len() + data.len());
        match (data, n_bytes) {
            (Some(data), Some(n_bytes @ ..=MAX_KEPT_BYTES)) => {
                if n_bytes > self.bytes.capacity() {
                    let capacity = (2 * self.bytes.capacity()).clamp(n_bytes, MAX_KEPT_BYTES);
                    self.bytes.reserve_exact(capacity - self.bytes.len());
                }
                self.bytes.extend_from_slice(data);
            }
            // Too much, or trailers.
            _ => *self = Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use super::*;

    /// The buffer of a connection, as a piece of it refers to it.
    struct ReadBuffer(Arc<[u8; 8192]>);

    impl AsRef<[u8]> for ReadBuffer {
        fn as_ref(&self) -> &[u8] {
            &*self.0
        }
    }

    /// A client that sends its body byte by byte has each byte read into a buffer of its own.
    #[test]
    fn a_body_of_single_bytes_holds_no_read_buffers() {
        let mut kept = KeptBytes {
            is_complete: true,
            ..KeptBytes::default()
        };
        let mut buffers: Vec<Weak<_>> = Vec::new();
        for byte in 0..100 {
            let buffer = Arc::new([byte; 8192]);
            buffers.push(Arc::downgrade(&buffer));
            let piece = Bytes::from_owner(ReadBuffer(buffer)).slice(..1);
            kept.keep(&Frame::data(piece));
        }
        assert!(kept.after(0).iter().copied().eq(0..100));
        let n_held = buffers.iter().filter(|it| it.strong_count() > 0).count();
        assert_eq!(n_held, 0);
    }
}
