//! What this node knows of the store's time: what replies said, and how long ago that was by a clock
//! that only measures spans.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_algorithms::Time;

/// Reckons the store's time from its last reply. For what people are shown; what is decided goes by the
/// reply it follows from, see [`Heard`].
#[derive(Debug)]
pub(crate) struct Reckoning {
    /// What to add to this node's nanoseconds to get the store's, wrapping.
    offset: AtomicU64,
}

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

// === impl Reckoning ===

impl Reckoning {
    /// Begins with the wall clock of this machine, until the store has spoken.
    pub(crate) fn new(wall: Time, own: Time) -> Self {
        let reckoning = Self {
            offset: AtomicU64::new(0),
        };
        reckoning.set(wall, own);
        reckoning
    }

    /// Learns from a reply.
    pub(crate) fn learn(&self, heard: Heard) {
        self.set(heard.now, heard.answered);
    }

    /// The store's time at `own`, as far as known.
    #[inline]
    pub(crate) fn at(&self, own: Time) -> Time {
        let offset = self.offset.load(Ordering::Relaxed);
        Time::from_nanos(own.nanos().wrapping_add(offset))
    }

    fn set(&self, theirs: Time, own: Time) {
        // Relaxed: the word is a whole truth, and whoever sees the old one is a moment behind.
        let offset = theirs.nanos().wrapping_sub(own.nanos());
        self.offset.store(offset, Ordering::Relaxed);
    }
}
