//! The time of a simulated world, and clocks that tell it wrongly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_algorithms::Time;
use tidegate_store::Clock;

/// The true time, which is the common store's. Clones tell the same.
#[derive(Clone, Debug)]
pub(crate) struct TrueTime(Arc<AtomicU64>);

/// The clock of a node: set wrong, and running too fast or too slowly.
#[derive(Clone, Debug)]
pub(crate) struct NodeClock {
    truth: TrueTime,
    pub(crate) ahead_nanos: u64,
    /// Millionths by which it runs too fast.
    pub(crate) drift_ppm: i64,
}

// === impl TrueTime ===

impl TrueTime {
    pub(crate) fn at(time: Time) -> Self {
        Self(Arc::new(AtomicU64::new(time.nanos())))
    }

    pub(crate) fn set(&self, time: Time) {
        self.0.store(time.nanos(), Ordering::Relaxed);
    }
}

impl Clock for TrueTime {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

// === impl NodeClock ===

impl NodeClock {
    pub(crate) fn new(truth: &TrueTime, ahead_nanos: u64, drift_ppm: i64) -> Self {
        Self {
            truth: truth.clone(),
            ahead_nanos,
            drift_ppm,
        }
    }
}

impl Clock for NodeClock {
    fn now(&self) -> Time {
        let nanos = i128::from(self.truth.now().nanos());
        let shown =
            nanos + nanos * i128::from(self.drift_ppm) / 1_000_000 + i128::from(self.ahead_nanos);
        Time::from_nanos(u64::try_from(shown).expect("a time after the epoch"))
    }
}
