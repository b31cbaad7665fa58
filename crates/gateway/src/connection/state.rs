//! The state of a connection, shared between its stream and its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

use super::{ConnectionActivity, HeldMemory};

/// Requests in progress on one connection, and how many there ever were.
///
/// Stream and requests run on one thread; atomics are only there because hyper wants streams that can be sent.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    activity: Arc<ConnectionActivity>,
    n_requests: AtomicU64,
    /// True if the last request had a body.
    had_body: AtomicBool,
    /// True if bytes of the next head have arrived.
    has_head: AtomicBool,
    /// True if all that was written is sent. Not so once the connection is shut down.
    is_flushed: AtomicBool,
    /// True if hyper leaves the stream, which stays open.
    is_parking: AtomicBool,
    /// True if the stream lingers when it is shut down.
    lingers: AtomicBool,
    exhausted: Notify,
}

/// A request in progress, until dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    state: Arc<ConnectionState>,
    /// True if it is the last one that the connection may carry.
    pub(crate) is_last: bool,
    /// Its memory, if the client speaks HTTP/2.
    pub(crate) memory: Option<HeldMemory>,
}

// === impl ConnectionState ===

impl ConnectionState {
    /// The state of a new connection, whose requests its listener sees too.
    pub(crate) fn new(activity: Arc<ConnectionActivity>) -> Self {
        Self {
            activity,
            n_requests: AtomicU64::new(0),
            had_body: AtomicBool::new(false),
            has_head: AtomicBool::new(false),
            is_flushed: AtomicBool::new(false),
            is_parking: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            exhausted: Notify::new(),
        }
    }

    /// Begins a request on a connection that may carry `max_requests`.
    pub(crate) fn begin(self: &Arc<Self>, max_requests: u64, has_body: bool) -> RequestGuard {
        self.activity.begin();
        self.had_body.store(has_body, Ordering::Relaxed);
        self.has_head.store(false, Ordering::Relaxed);
        let n_before = self.n_requests.fetch_add(1, Ordering::Relaxed);
        let is_last = n_before + 1 >= max_requests;
        if is_last {
            self.exhausted.notify_one();
        }
        RequestGuard {
            state: Arc::clone(self),
            is_last,
            memory: None,
        }
    }

    /// Keeps the connection in use after the request that is in progress.
    pub(crate) fn again(self: &Arc<Self>) -> RequestGuard {
        self.activity.begin();
        RequestGuard {
            state: Arc::clone(self),
            is_last: true,
            memory: None,
        }
    }

    /// True if no request is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.activity.is_idle()
    }

    /// True if the last request had a body.
    pub(super) fn had_body(&self) -> bool {
        self.had_body.load(Ordering::Relaxed)
    }

    /// Notes bytes that arrived: those of a head, unless a request is in progress.
    pub(super) fn received(&self) {
        if self.is_idle() {
            self.has_head.store(true, Ordering::Relaxed);
        }
    }

    /// True if bytes of the next head have arrived.
    pub(super) fn has_head(&self) -> bool {
        self.has_head.load(Ordering::Relaxed)
    }

    /// Notes if all that was written is sent.
    pub(super) fn set_flushed(&self, is_flushed: bool) {
        self.is_flushed.store(is_flushed, Ordering::Relaxed);
    }

    /// True if the last response is sent and nothing of the next request has arrived.
    pub(super) fn is_parkable(&self) -> bool {
        self.is_idle() && !self.has_head() && self.is_flushed.load(Ordering::Relaxed)
    }

    /// Notes if hyper leaves the stream.
    pub(super) fn set_parking(&self, is_parking: bool) {
        self.is_parking.store(is_parking, Ordering::Relaxed);
    }

    /// True if hyper leaves the stream.
    pub(super) fn is_parking(&self) -> bool {
        self.is_parking.load(Ordering::Relaxed)
    }

    /// The same, and from now on it does not.
    pub(super) fn take_parking(&self) -> bool {
        self.is_parking.swap(false, Ordering::Relaxed)
    }

    /// Has the stream linger when it is shut down, because the server drains.
    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    /// True if the stream lingers when it is shut down.
    pub(super) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    /// The number of requests that were begun.
    pub(crate) fn n_requests(&self) -> u64 {
        self.n_requests.load(Ordering::Relaxed)
    }

    /// Ready once the connection has carried as many requests as it may.
    pub(super) async fn exhausted(&self) {
        self.exhausted.notified().await;
    }
}

// === impl RequestGuard ===

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.state.activity.end();
    }
}
