//! Bodies on their way through: bounded in bytes and in time, never buffered.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

use crate::connection::{HeldMemory, OutOfMemory};
use crate::forward::headers::strip_trailers;

/// The body of a client's request, which nobody has read yet.
#[derive(Debug)]
pub(crate) struct ClientBody {
    pub(crate) incoming: Incoming,
    /// The memory of its HTTP/2 window, or that there is no room for the request.
    pub(crate) window: Result<Option<HeldMemory>, OutOfMemory>,
}

/// The body of a request on its way to an upstream.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// No body.
    Empty,
    /// A body as the client sends it.
    Stream(Box<StreamedBody>),
}

/// The body of a client's request, which may still be arriving.
#[derive(Debug)]
pub(crate) struct StreamedBody {
    incoming: Incoming,
    /// Bytes that may still come.
    bytes_left: u64,
    /// Time between two pieces.
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Holds the body back until the upstream asks for it.
    gate: Option<ContinueGate>,
    progress: Rc<BodyProgress>,
    #[expect(dead_code, reason = "held for its drop")]
    window: Option<HeldMemory>,
}

/// The state of a request's body, for the side that answers.
#[derive(Debug, Default)]
pub(crate) struct BodyProgress {
    was_polled: Cell<bool>,
    /// Whether the upstream has begun to answer. From then on its own timeout bounds the exchange: the client of a stream may only listen.
    is_answered: Cell<bool>,
    fault: Cell<Option<BodyFault>>,
}

/// The fault of a client's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    /// It is larger than the route allows.
    #[error("request body too large")]
    TooLarge,
    /// The next piece took too long.
    #[error("request body timed out")]
    TimedOut,
    /// The connection broke.
    #[error("request body incomplete")]
    Incomplete,
}

/// A gate for the body of a request with `Expect: 100-continue`: it opens when the upstream sends 100, or after a second, because
/// some servers never do (RFC 9110, section 10.1.1).
#[derive(Clone, Debug)]
pub(crate) struct ContinueGate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    is_open: AtomicBool,
    waker: std::sync::Mutex<Option<Waker>>,
}

/// The time after which a body is sent though the upstream has not asked for it.
pub(crate) const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pieces of an unwanted body that are read before the response; a piece is what hyper has read at once.
const MAX_UNWANTED_PIECES: usize = 4;

// === impl RequestBody ===

impl RequestBody {
    /// Sends it without waiting until the upstream asks for it.
    pub(crate) fn skip_continue(&mut self) {
        if let Self::Stream(body) = self
            && body.gate.take().is_some()
        {
            body.timer = None;
        }
    }

    /// Whether it can be sent again: it is empty, or nobody has begun to read it.
    pub(crate) fn is_replayable(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(body) => !body.progress.was_polled.get(),
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Stream(body) => {
                let mut polled = body.poll(context);
                if let Poll::Ready(Some(Ok(frame))) = &mut polled
                    && let Some(trailers) = frame.trailers_mut()
                {
                    strip_trailers(trailers);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Stream(body) => body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Stream(body) => body.incoming.size_hint(),
        }
    }
}

// === impl StreamedBody ===

impl StreamedBody {
    /// A body of at most `max_bytes`, with at most `timeout` between two pieces.
    pub(crate) fn new(
        body: ClientBody,
        max_bytes: u64,
        timeout: Duration,
        gate: Option<ContinueGate>,
    ) -> (Self, Rc<BodyProgress>) {
        let progress = Rc::new(BodyProgress::default());
        let body = Self {
            incoming: body.incoming,
            bytes_left: max_bytes,
            timeout,
            timer: None,
            gate,
            progress: Rc::clone(&progress),
            window: body.window.ok().flatten(),
        };
        (body, progress)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if let Some(gate) = &self.gate {
            if !gate.is_open(context) && self.poll_timer(context, CONTINUE_TIMEOUT).is_pending() {
                return Poll::Pending;
            }
            self.gate = None;
            self.timer = None;
        }
        self.progress.was_polled.set(true);
        let polled = match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(polled) => {
                // Armed anew at the next wait.
                self.timer = None;
                polled
            }
            Poll::Pending => {
                let is_answered = self.progress.is_answered.get();
                if is_answered || self.poll_timer(context, self.timeout).is_pending() {
                    return Poll::Pending;
                }
                return Poll::Ready(Some(Err(self.fail(BodyFault::TimedOut))));
            }
        };
        Poll::Ready(match polled {
            None => None,
            Some(Err(_)) => Some(Err(self.fail(BodyFault::Incomplete))),
            Some(Ok(frame)) => Some(self.count(frame)),
        })
    }

    fn count(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyFault> {
        let n_bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.bytes_left.checked_sub(n_bytes) {
            Some(left) => self.bytes_left = left,
            None => return Err(self.fail(BodyFault::TooLarge)),
        }
        Ok(frame)
    }

    fn fail(&self, fault: BodyFault) -> BodyFault {
        self.progress.fault.set(Some(fault));
        fault
    }

    fn poll_timer(&mut self, context: &mut Context<'_>, after: Duration) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(after)));
        timer.as_mut().poll(context)
    }
}

// === impl BodyProgress ===

impl BodyProgress {
    /// Notes that the upstream has begun to answer.
    pub(crate) fn answered(&self) {
        self.is_answered.set(true);
    }

    /// The fault of the client's body, if it had one.
    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get()
    }
}

// === impl ContinueGate ===

impl ContinueGate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Opens it, for ever.
    pub(crate) fn open(&self) {
        self.0.is_open.store(true, Ordering::Release);
        let waker = self.0.waker.lock().ok().and_then(|mut waker| waker.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_open(&self, context: &Context<'_>) -> bool {
        if let Ok(mut waker) = self.0.waker.lock() {
            *waker = Some(context.waker().clone());
        }
        self.0.is_open.load(Ordering::Acquire)
    }
}

/// Reads what has arrived of a body that nobody wants. True if more is to come: hyper then closes the connection after the response, and
/// the client has to know.
pub(crate) async fn has_more(body: Option<ClientBody>) -> bool {
    let Some(ClientBody {
        incoming: mut body, ..
    }) = body
    else {
        return true;
    };
    let mut without_waker = Context::from_waker(Waker::noop());
    for _ in 0..MAX_UNWANTED_PIECES {
        match Pin::new(&mut body).poll_frame(&mut without_waker) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(None) => return false,
            Poll::Ready(Some(Err(_))) => return true,
            // hyper reads a body once it was asked for, and needs a turn for it.
            Poll::Pending => yield_now().await,
        }
        if body.is_end_stream() {
            return false;
        }
    }
    true
}
