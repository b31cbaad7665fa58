//! How often the rules changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often rules were put in force, and how often they were refused.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// When rules were last put in force, in milliseconds since the epoch.
    last_millis: AtomicU64,
    /// The version of the rules in force, if they have numbers.
    version: Mutex<Option<u64>>,
}

// === impl Reloads ===

impl Reloads {
    pub(crate) fn succeed(&self, now: Duration, version: Option<u64>) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = version;
        self.last_millis.store(millis, Ordering::Relaxed);
        self.succeeded.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The version of the rules in force, if they have numbers.
    pub(crate) fn version(&self) -> Option<u64> {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
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
