//! The activity of one connection, as a listener sees it that is out of places.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use quanta::Instant;
use tokio::sync::Notify;

/// The requests under way on a connection, and since when there is none. A listener whose places are all taken evicts the connection
/// that has been idle for longest.
#[derive(Debug)]
pub struct ConnectionActivity {
    n_active: AtomicU32,
    /// Nanoseconds since the start of the process.
    idle_since: AtomicU64,
    is_evicted: AtomicBool,
    evicted: Notify,
}

/// The time from which idleness is counted.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

// === impl ConnectionActivity ===

impl Default for ConnectionActivity {
    fn default() -> Self {
        Self {
            n_active: AtomicU32::new(0),
            idle_since: AtomicU64::new(now()),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }
}

impl ConnectionActivity {
    /// Notes that a request has begun.
    pub fn begin(&self) {
        self.n_active.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a request has ended.
    pub fn end(&self) {
        self.touch();
        self.n_active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes a request that has begun and ended.
    pub fn touch(&self) {
        self.idle_since.store(now(), Ordering::Relaxed);
    }

    /// Requests under way.
    pub fn n_active(&self) -> u32 {
        self.n_active.load(Ordering::Relaxed)
    }

    /// True if no request is under way.
    pub fn is_idle(&self) -> bool {
        self.n_active() == 0
    }

    /// The time since which no request is under way, unless one is or the connection is evicted already.
    pub fn idle_since(&self) -> Option<Duration> {
        let is_evictable = self.is_idle() && !self.is_evicted.load(Ordering::Relaxed);
        is_evictable.then(|| Duration::from_nanos(self.idle_since.load(Ordering::Relaxed)))
    }

    /// True if the connection is told to close, and no request is under way.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed) && self.is_idle()
    }

    /// Tells the connection to close, unless a request is under way by then.
    pub fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.evicted.notify_one();
    }

    /// Ready once the connection is to close.
    pub async fn evicted(&self) {
        loop {
            self.evicted.notified().await;
            if self.is_idle() {
                return;
            }
            self.is_evicted.store(false, Ordering::Relaxed);
        }
    }
}

fn now() -> u64 {
    let start = *START;
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_request_is_not_evicted() {
        let activity = ConnectionActivity::default();
        activity.begin();
        assert_eq!(activity.idle_since(), None);
        activity.evict();
        let wait = Duration::from_secs(1);
        let evicted = tokio::time::timeout(wait, activity.evicted()).await;
        assert!(evicted.is_err());
        activity.end();
        assert!(activity.idle_since().is_some());
        activity.evict();
        assert_eq!(activity.idle_since(), None, "it is told once");
        activity.evicted().await;
    }
}
