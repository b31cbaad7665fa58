//! Logs and counts of which only so much is known as a decision looks at.

use smallvec::SmallVec;
use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::sub_windows::Counts;

/// A log without its expired entries, of which a few are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SparseLog {
    pub(super) len: u64,
    pub(super) newest: u64,
    /// The place from the oldest on, and the time, in the core's grains.
    pub(super) known: Known,
}

/// Counts brought up to now, of which a few are known. The others are zero, or nobody asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SparseCounts {
    pub(super) newest: u64,
    pub(super) total: u64,
    /// The index of the sub-window, and the count.
    pub(super) known: Known,
}

pub(super) type Known = SmallVec<[(u64, u64); 4]>;

// === impl SparseLog ===

impl Log for SparseLog {
    fn len(&self) -> u64 {
        self.len
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        if n >= self.len {
            return None;
        }
        let known = find(&self.known, n);
        // Only the entries that the core looks at are told, and the newest by itself.
        Some(known.unwrap_or(self.newest))
    }
}

// === impl SparseCounts ===

impl Counts for SparseCounts {
    fn newest(&self) -> u64 {
        self.newest
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn count(&self, age: u64) -> u64 {
        let index = self.newest.checked_sub(age);
        index
            .and_then(|index| find(&self.known, index))
            .unwrap_or(0)
    }

    // What is told is up to now, and is written elsewhere.

    fn advance(&mut self, _sub_window: u64) {}

    fn add(&mut self, _cost: u64) {}

    fn take(&mut self, _age: u64, _cost: u64) -> u64 {
        0
    }
}

fn find(known: &Known, place: u64) -> Option<u64> {
    let found = known.iter().find(|(at, _)| *at == place);
    found.map(|(_, value)| *value)
}
