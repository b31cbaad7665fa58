//! Connections to one target that are fewer than threads.
//!
//! Elsewhere each thread has a part of `max_connections` to itself. If there are fewer than threads, each connection needs a permit that
//! all threads share, and no thread keeps a connection while another one waits: an HTTP/1 connection closes after its response, and an
//! HTTP/2 connection takes no further streams then, and closes with its last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The permits of connections to one target, for all threads.
#[derive(Debug)]
pub(super) struct ScarceConnections {
    permits: Arc<Semaphore>,
    n_waiting: AtomicUsize,
}

/// A wait for a permit, until dropped.
struct WaitGuard<'a>(&'a AtomicUsize);

// === impl ScarceConnections ===

impl ScarceConnections {
    pub(super) fn new(max_connections: usize) -> Arc<Self> {
        let most = max_connections.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(most)),
            n_waiting: AtomicUsize::new(0),
        })
    }

    /// A permit for a connection, or `None` if there is none in time.
    pub(super) async fn take(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitGuard(&self.n_waiting);
        let permit = Arc::clone(&self.permits).acquire_owned();
        timeout_at(deadline, permit).await.ok()?.ok()
    }

    /// True if somebody waits for a permit.
    pub(super) fn is_wanted(&self) -> bool {
        self.n_waiting.load(Ordering::Relaxed) > 0
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
