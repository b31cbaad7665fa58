//! How often the rules changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often rules were put in force, and how often they were refused.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// When rules were last put in force, in milliseconds since the epoch.
    last_millis: AtomicU64,
}

// === impl Reloads ===

impl Reloads {
    pub(crate) fn succeed(&self, now: Duration) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(millis, Ordering::Relaxed);
        self.succeeded.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn succeeded(&self) -> u64 {
        self.succeeded.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// When rules were last put in force, since the epoch.
    pub(crate) fn last(&self) -> Option<Duration> {
        let has_any = self.succeeded.load(Ordering::Acquire) > 0;
        has_any.then(|| Duration::from_millis(self.last_millis.load(Ordering::Relaxed)))
    }
}
