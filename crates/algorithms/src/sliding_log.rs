//! Sliding log: remembers each request, exact to its grain.

use crate::{Decision, Time};

/// Sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {}

/// The requests of one caller, oldest first, in whole grains since the epoch, never decreasing.
/// Owned by the store.
pub trait Log {
    /// How many are remembered.
    fn len(&self) -> u64;
    /// Whether none is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The `n`th oldest, from 0; `None` beyond the end.
    fn nth_oldest(&self, n: u64) -> Option<u64>;
}

/// A log that can be written.
pub trait LogMut: Log {
    /// Forgets the `n` oldest.
    fn drop_oldest(&mut self, n: u64);
    /// Forgets the `n` newest.
    fn drop_newest(&mut self, n: u64);
    /// Remembers `n` at `stamp`, which is not before the newest. The caller made sure there is room.
    fn push(&mut self, stamp: u64, n: u64);
}

/// What to write to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time, in whole grains since the epoch.
    pub stamp: u64,
    /// How many requests at it.
    pub n: u64,
    /// How many of the oldest to forget first so that the log stays within the limit.
    pub forget: u64,
}

impl SlidingLog {
    /// Nanoseconds in a grain: 1 for windows up to 4 s, 1,000 up to 70 min, 1,000,000 up to 49 days,
    /// else 1,000,000,000. A window is at most 2^32 - 1 grains, so a stamp fits 32 bits.
    pub fn grain(&self) -> u64 {
        unimplemented!()
    }

    /// The most entries the log can hold: the limit and its extra.
    pub fn capacity(&self) -> u64 {
        unimplemented!()
    }

    /// How many of the oldest entries have left the window at `now`. Forgetting them changes no
    /// decision.
    pub fn expired(&self, log: &impl Log, now: Time) -> u64 {
        let _ = (log, now);
        unimplemented!()
    }

    /// Decides on a log without expired entries. Gives also what to write: when the request is
    /// charged, or, with `log_refused`, when it is denied; `None` if nothing.
    pub fn decide(
        &self,
        log: &impl Log,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, Option<Entry>) {
        let _ = (log, cost, extra, now);
        unimplemented!()
    }

    /// The first instant at which a log whose newest entry is `newest` says no more than an empty one.
    pub fn expires_at(&self, newest: u64) -> Time {
        let _ = newest;
        unimplemented!()
    }
}
