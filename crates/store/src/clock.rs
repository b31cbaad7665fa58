//! The one clock that decides. Nothing else in the workspace may read one for a decision; a tidy
//! test and `clippy.toml` hold that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_algorithms::Time;

/// Where a store gets its time from.
pub trait Clock: Send + Sync {
    /// The time now. Called once per charge, while the charge holds all its counters.
    fn now(&self) -> Time;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that moves only when told to; for tests and replays.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

// === impl SystemClock ===

impl Clock for SystemClock {
    fn now(&self) -> Time {
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that stands at `time`.
    pub fn at(time: Time) -> Self {
        Self(AtomicU64::new(time.nanos()))
    }

    /// Moves to `time`, forwards or backwards.
    pub fn set(&self, time: Time) {
        self.0.store(time.nanos(), Ordering::Relaxed);
    }

    /// Moves forwards.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
