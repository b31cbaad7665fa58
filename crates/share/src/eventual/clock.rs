//! The store's time as this node can tell it between two replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_algorithms::Time;
use tidegate_store::{Clock, SystemClock};

use crate::reckoning::{Heard, Reckoning};

/// A clock of the node's own, set by what the store says in its replies. Before the first reply it
/// goes by the machine's date. A clone is the same clock.
#[derive(Debug)]
pub(super) struct StoreClock<C>(Arc<Inner<C>>);

#[derive(Debug)]
struct Inner<C> {
    /// Measures spans.
    own: C,
    reckoning: Reckoning,
    is_set: AtomicBool,
}

// === impl StoreClock ===

impl<C: Clock> StoreClock<C> {
    pub(super) fn new(own: C) -> Self {
        let reckoning = Reckoning::new(SystemClock::new().now(), own.now());
        Self(Arc::new(Inner {
            own,
            reckoning,
            is_set: AtomicBool::new(false),
        }))
    }

    /// The node's own time, which never steps.
    pub(super) fn own(&self) -> Time {
        self.0.own.now()
    }

    /// Sets the clock by a reply that came in just now. It is then behind the store's by at most the
    /// reply's way back: a window is entered late, never early.
    pub(super) fn set(&self, now: Time, asked: Time) {
        self.0.reckoning.learn(Heard {
            now,
            asked,
            answered: self.own(),
        });
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the store has said what time it is.
    pub(super) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    fn now(&self) -> Time {
        self.0.reckoning.at(self.own())
    }
}

// By hand: what it measures with need not be cloned.
impl<C> Clone for StoreClock<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
