//! The memory that HTTP/2 requests hold: one budget for all connections.
//!
//! A request is charged for its head and its task, and for the window of its stream until its body was read, because a client fills the
//! window of a body that no upstream reads. A response is charged for the pieces that its client has not taken.
//!
//! ```text
//!  budget left: a request begins, a response asks its upstream for the next piece
//!  none left:   a request is answered with 503, and a response waits until its client has taken a piece of this connection
//! ```
//!
//! A connection always has room for one request and one piece, so that clients that hold much cannot shut out others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use http::{HeaderName, HeaderValue, Request};
use tidegate_observe::LogSampler;
use tracing::warn;

use super::STREAM_WINDOW;

/// The memory that HTTP/2 requests of all connections hold.
#[derive(Debug, Default)]
pub(crate) struct StreamMemory {
    n_bytes: AtomicUsize,
    /// The log lines of requests without room.
    full_log: LogSampler,
}

/// The memory that the requests of one HTTP/2 connection hold.
#[derive(Debug)]
pub(crate) struct ConnectionMemory {
    all: Arc<StreamMemory>,
    /// The most that all connections hold.
    max_bytes: usize,
    request_bytes: AtomicUsize,
    unsent_bytes: AtomicUsize,
    /// Responses that wait until their client has taken a piece.
    waiting: Mutex<Vec<Waker>>,
}

/// The memory of one request or of its window, released when dropped.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    connection: Arc<ConnectionMemory>,
    n_bytes: usize,
}

/// The memory of a request.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    /// Held until the response has ended.
    pub(crate) head: HeldMemory,
    /// Held until the body has ended.
    pub(crate) window: Option<HeldMemory>,
}

/// HTTP/2 requests hold all the memory that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway is out of memory for requests")]
pub(crate) struct OutOfMemory;

/// The memory of a piece of a response, released when dropped.
#[derive(Debug)]
pub(crate) struct PieceCharge {
    connection: Arc<ConnectionMemory>,
    n_bytes: usize,
}

/// The task and the stream of a request, as large as those of a gRPC call that waits.
const REQUEST_BYTES: usize = 8 * 1024;
/// The bytes of a header besides its name and its value, as HTTP/2 counts them.
const HEADER_BYTES: usize = 32;

// === impl ConnectionMemory ===

impl ConnectionMemory {
    /// The memory of a connection, of which all together hold at most `max_bytes`.
    pub(super) fn new(all: Arc<StreamMemory>, max_bytes: usize) -> Self {
        Self {
            all,
            max_bytes,
            request_bytes: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Takes the memory of a request, unless none is left and another one of this connection is under way.
    pub(super) fn begin<B>(
        self: &Arc<Self>,
        request: &Request<B>,
        has_body: bool,
    ) -> Result<RequestMemory, OutOfMemory> {
        let of_header = |(name, value): (&HeaderName, &HeaderValue)| {
            name.as_str().len() + value.len() + HEADER_BYTES
        };
        let path = request.uri().path_and_query();
        let path_bytes = path.map_or(0, |path| path.as_str().len());
        let header_bytes = request.headers().iter().map(of_header).sum::<usize>();
        let head_bytes = REQUEST_BYTES + path_bytes + header_bytes;
        let window_bytes = if has_body { STREAM_WINDOW as usize } else { 0 };
        let n_bytes = head_bytes + window_bytes;
        let before = self.all.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        let is_first = self.request_bytes.load(Ordering::Relaxed) == 0;
        if before + n_bytes > self.max_bytes && !is_first {
            self.all.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
            if let Some(n_requests) = self.all.full_log.count() {
                warn!(
                    n_requests,
                    max_bytes = self.max_bytes,
                    "HTTP/2 requests hold all the memory that they may; further ones get 503"
                );
            }
            return Err(OutOfMemory);
        }
        self.request_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        let held = |n_bytes| HeldMemory {
            connection: Arc::clone(self),
            n_bytes,
        };
        Ok(RequestMemory {
            head: held(head_bytes),
            window: has_body.then(|| held(window_bytes)),
        })
    }

    fn has_room_for_piece(&self) -> bool {
        self.unsent_bytes.load(Ordering::Acquire) == 0
            || self.all.n_bytes.load(Ordering::Relaxed) < self.max_bytes
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl HeldMemory ===

impl HeldMemory {
    /// Ready while the connection may hold another piece of a response.
    pub(crate) fn poll_piece(&self, context: &Context<'_>) -> Poll<()> {
        if self.connection.has_room_for_piece() {
            return Poll::Ready(());
        }
        let mut waiting = self.connection.waiting();
        if !waiting.iter().any(|it| it.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        drop(waiting);
        // A piece may have been taken before the waker was there.
        if self.connection.has_room_for_piece() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Charges a piece, until the client has taken it or the stream is reset.
    pub(crate) fn charge_piece(&self, n_bytes: usize) -> PieceCharge {
        let connection = Arc::clone(&self.connection);
        connection.unsent_bytes.fetch_add(n_bytes, Ordering::AcqRel);
        connection.all.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        PieceCharge {
            connection,
            n_bytes,
        }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let (memory, n_bytes) = (&self.connection, self.n_bytes);
        memory.request_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        memory.all.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

// === impl PieceCharge ===

impl Drop for PieceCharge {
    fn drop(&mut self) {
        let (memory, n_bytes) = (&self.connection, self.n_bytes);
        memory.all.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        memory.unsent_bytes.fetch_sub(n_bytes, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *memory.waiting());
        for waker in waiting {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn connections(max_bytes: usize) -> (Arc<StreamMemory>, [Arc<ConnectionMemory>; 2]) {
        let all = Arc::<StreamMemory>::default();
        let connection = || Arc::new(ConnectionMemory::new(Arc::clone(&all), max_bytes));
        let connections = [connection(), connection()];
        (all, connections)
    }

    fn held(all: &StreamMemory) -> usize {
        all.n_bytes.load(Ordering::Relaxed)
    }

    #[test]
    fn a_connection_always_has_room_for_one_request() {
        let (all, [one, other]) = connections(2 * STREAM_WINDOW as usize);
        let request = Request::new(());
        let first = one.begin(&request, true).unwrap();
        let second = one.begin(&request, false).unwrap();
        assert_eq!(one.begin(&request, true).unwrap_err(), OutOfMemory);
        let others = other.begin(&request, true).unwrap();
        assert_eq!(other.begin(&request, false).unwrap_err(), OutOfMemory);
        // Its body was read.
        drop(first.window);
        drop(other.begin(&request, false).unwrap());
        drop((first.head, second, others));
        assert_eq!(held(&all), 0);
    }

    #[test]
    fn long_heads_count() {
        let (_, [one, _]) = connections(3 * REQUEST_BYTES);
        let mut request = Request::new(());
        let _first = one.begin(&request, false).unwrap();
        let value = "x".repeat(2 * REQUEST_BYTES);
        let header = value.parse().unwrap();
        request.headers_mut().insert("a", header);
        assert_eq!(one.begin(&request, false).unwrap_err(), OutOfMemory);
        request.headers_mut().clear();
        *request.uri_mut() = format!("/{value}").parse().unwrap();
        assert_eq!(one.begin(&request, false).unwrap_err(), OutOfMemory);
    }

    #[test]
    fn a_response_waits_until_its_client_has_taken_a_piece() {
        let (all, [one, other]) = connections(0);
        let request = Request::new(());
        let one = one.begin(&request, false).unwrap();
        let other = other.begin(&request, false).unwrap();
        let flag = Arc::<WakeFlag>::default();
        let was_woken = || flag.0.load(Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&flag));
        let is_ready = |memory: &RequestMemory| {
            let polled = memory.head.poll_piece(&Context::from_waker(&waker));
            polled.is_ready()
        };
        assert!(is_ready(&one));
        let piece = one.head.charge_piece(5);
        assert!(!is_ready(&one));
        assert!(is_ready(&other), "it has sent none");
        assert!(!was_woken(), "the piece is there");
        drop(piece);
        assert!(was_woken());
        assert!(is_ready(&one));
        drop((one, other));
        assert_eq!(held(&all), 0);
    }
}
