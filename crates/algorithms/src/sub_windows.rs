//! Sliding counter over N sub-windows.

use crate::{Decision, Time};

/// Sliding counter over N sub-windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubWindows {}

/// The counts of one caller: a ring of `N + 1` sub-windows that ends with the newest. Owned by the
/// store. All counts of a caller never seen are zero and its newest sub-window is 0.
pub trait Counts {
    /// Index since the epoch of the newest sub-window.
    fn newest(&self) -> u64;
    /// Sum of all `N + 1` counts.
    fn total(&self) -> u64;
    /// The count of the sub-window `age` before the newest; zero for an age above `N`.
    fn count(&self, age: u64) -> u64;
    /// Makes `sub_window`, not before the newest, the newest; what leaves the ring is forgotten.
    fn advance(&mut self, sub_window: u64);
    /// Adds to the newest count, saturating.
    fn add(&mut self, cost: u64);
    /// Takes up to `cost` from the count of that age; gives what it took.
    fn take(&mut self, age: u64, cost: u64) -> u64;
}

impl SubWindows {
    /// How many sub-windows the window is cut into.
    pub fn parts(&self) -> u64 {
        unimplemented!()
    }

    /// Brings the counts up to `now`. Changes no decision, so it may be done before one.
    pub fn advance(&self, counts: &mut impl Counts, now: Time) {
        let _ = (counts, now);
        unimplemented!()
    }

    /// Decides on counts that were brought up to `now`. The caller adds the cost if it charges.
    pub fn decide(&self, counts: &impl Counts, cost: u64, extra: u64, now: Time) -> Decision {
        let _ = (counts, cost, extra, now);
        unimplemented!()
    }

    /// Gives back `cost`, newest first.
    pub fn refund(&self, counts: &mut impl Counts, cost: u64, now: Time) {
        let _ = (counts, cost, now);
        unimplemented!()
    }

    /// The first instant at which the counts say no more than none do.
    pub fn expires_at(&self, counts: &impl Counts) -> Time {
        let _ = counts;
        unimplemented!()
    }
}
