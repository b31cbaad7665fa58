//! What this node knows of the store's time: what replies said, and how long ago that was by a clock
//! that only measures spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tidegate_algorithms::Time;
use tidegate_store::Clock;

/// The store's time as this node can tell it between two replies: a clock of its own, set by what the store
/// says. For what people are shown, and for what this node decides by itself; what it decides for others goes
/// by the reply it follows from, see [`Heard`]. A clone is the same clock.
#[derive(Debug)]
pub(crate) struct StoreClock<C>(Arc<Inner<C>>);

/// One reply of the store, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What the store said the time is.
    pub(crate) now: Time,
    /// When it was asked, by this node's clock: the store cannot have answered before.
    pub(crate) asked: Time,
    /// When the answer was here: the store cannot have answered after.
    pub(crate) answered: Time,
}

#[derive(Debug)]
struct Inner<C> {
    /// Measures spans.
    own: C,
    /// What to add to its nanoseconds to get the store's, wrapping.
    offset: AtomicU64,
    is_set: AtomicBool,
}

// === impl StoreClock ===

impl<C: Clock> StoreClock<C> {
    /// Measures spans by `own`, and goes by the machine's date, `wall`, until the store has spoken.
    pub(crate) fn new(own: C, wall: Time) -> Self {
        let offset = wall.nanos().wrapping_sub(own.now().nanos());
        Self(Arc::new(Inner {
            own,
            offset: AtomicU64::new(offset),
            is_set: AtomicBool::new(false),
        }))
    }

    /// The node's own time, which never steps.
    #[inline]
    pub(crate) fn own(&self) -> Time {
        self.0.own.now()
    }

    /// Sets the clock by a reply that came in just now. It is then behind the store's by at most the
    /// reply's way back: a window is entered late, never early.
    pub(crate) fn set(&self, now: Time) {
        // Relaxed: the word is a whole truth, and whoever sees the old one is a moment behind.
        let offset = now.nanos().wrapping_sub(self.own().nanos());
        self.0.offset.store(offset, Ordering::Relaxed);
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the store has said what time it is.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    #[inline]
    fn now(&self) -> Time {
        let offset = self.0.offset.load(Ordering::Relaxed);
        Time::from_nanos(self.own().nanos().wrapping_add(offset))
    }
}

// By hand: what it measures with need not be cloned.
impl<C> Clone for StoreClock<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
