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
    /// When it was set, by its nanoseconds.
    set_at: AtomicU64,
    is_set: AtomicBool,
}

/// For how many nanoseconds a quick reply goes before slower ones: clocks part by no more than some
/// microseconds meanwhile.
const HOLDS: u64 = 1_000_000_000;

// === impl StoreClock ===

impl<C: Clock> StoreClock<C> {
    /// Measures spans by `own`, and goes by the machine's date, `wall`, until the store has spoken.
    pub(crate) fn new(own: C, wall: Time) -> Self {
        let offset = wall.nanos().wrapping_sub(own.now().nanos());
        Self(Arc::new(Inner {
            own,
            offset: AtomicU64::new(offset),
            set_at: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
        }))
    }

    /// The node's own time, which never steps.
    #[inline]
    pub(crate) fn own(&self) -> Time {
        self.0.own.now()
    }

    /// Sets the clock by a reply that came in just now. Every reply is late by its way back, so of those of
    /// a second the one counts that says the latest time, which was the quickest: a window is entered late
    /// by no more than that one's way, and never early. A store whose own clock was set back is believed
    /// after that second.
    pub(crate) fn set(&self, now: Time) {
        let own = self.own().nanos();
        let offset = now.nanos().wrapping_sub(own);
        // Relaxed: each word is a whole truth, and whoever sees an old one is a moment behind.
        let known = self.0.offset.load(Ordering::Relaxed);
        let is_later = offset.wrapping_sub(known).cast_signed() > 0;
        let is_stale = own.saturating_sub(self.0.set_at.load(Ordering::Relaxed)) >= HOLDS;
        if is_later || is_stale || !self.is_set() {
            self.0.offset.store(offset, Ordering::Relaxed);
            self.0.set_at.store(own, Ordering::Relaxed);
            self.0.is_set.store(true, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_store::ManualClock;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    #[test]
    fn a_slow_reply_does_not_make_it_late() {
        let own = Arc::new(ManualClock::at(at(5_000)));
        let clock = StoreClock::new(Arc::clone(&own), at(77));
        clock.set(at(1_000));
        own.advance(40 * MILLI);
        assert_eq!(clock.now(), at(1_040));
        // Was on its way for 30 ms.
        clock.set(at(1_010));
        assert_eq!(clock.now(), at(1_040));
        // Quicker than the first.
        clock.set(at(1_045));
        assert_eq!(clock.now(), at(1_045));
    }

    #[test]
    fn a_store_that_was_set_back_is_believed_after_a_second() {
        let own = Arc::new(ManualClock::at(at(5_000)));
        let clock = StoreClock::new(Arc::clone(&own), at(9_000_000));
        clock.set(at(60_000));
        own.advance(999 * MILLI);
        clock.set(at(2_000));
        assert_eq!(clock.now(), at(60_999));
        own.advance(MILLI);
        clock.set(at(2_001));
        assert_eq!(clock.now(), at(2_001));
    }

    #[test]
    fn the_first_reply_counts_whatever_the_machine_thought() {
        let own = ManualClock::at(at(0));
        let clock = StoreClock::new(own, at(9_000_000));
        assert!(!clock.is_set());
        clock.set(at(12));
        assert_eq!(clock.now(), at(12));
        assert!(clock.is_set());
    }
}
