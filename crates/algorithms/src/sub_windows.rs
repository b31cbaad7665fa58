//! Sliding counter over N sub-windows.
//!
//! The window is cut into N parts of equal length, rounded up to a nanosecond: the window in effect
//! is up to N - 1 ns longer than configured, never shorter. The N newest counts are taken whole and
//! the one before them in proportion to how much of it the sliding window still overlaps, so the
//! estimate is wrong by at most what arrived in one sub-window.

use std::time::Duration;

use crate::window::{self, Fit, Room, Weight};
use crate::{Decision, RefundTo, Time};

/// Sliding counter over N sub-windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubWindows {
    room: Room,
    parts: u64,
    /// Of one sub-window.
    weight: Weight,
}

/// The counts of one caller: a ring of `N + 1` sub-windows that ends with the newest. Owned by the
/// store. All counts of a caller never seen are zero and its newest sub-window is 0.
pub trait Counts {
    /// Index since the epoch of the newest sub-window.
    fn newest(&self) -> u64;
    /// Sum of all `N + 1` counts.
    fn total(&self) -> u64;
    /// The count of the sub-window `age` before the newest; zero for an age above `N`.
    fn count(&self, age: u64) -> u64;
    /// Makes `sub_window` the newest; what leaves the ring is forgotten. It is not before the newest
    /// unless all counts are zero.
    fn advance(&mut self, sub_window: u64);
    /// Adds to the newest count, saturating.
    fn add(&mut self, cost: u64);
    /// Takes up to `cost` from the count of that age; gives what it took.
    fn take(&mut self, age: u64, cost: u64) -> u64;
}

// === impl SubWindows ===

impl SubWindows {
    /// `weight` spans one sub-window.
    pub(crate) const fn new(room: Room, parts: u64, weight: Weight) -> Self {
        Self {
            room,
            parts,
            weight,
        }
    }

    /// How many sub-windows the window is cut into.
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// The length of a sub-window.
    pub const fn sub_window(&self) -> Duration {
        Duration::from_nanos(self.weight.span)
    }

    /// Brings the counts up to `now`. Changes no decision, so it may be done before one.
    ///
    /// A sub-window ahead of `now`, since the clock stepped back, stands until time catches up,
    /// unless nothing is counted.
    #[inline]
    pub fn advance(&self, counts: &mut impl Counts, now: Time) {
        let start = counts.newest().saturating_mul(self.weight.span);
        // Most requests find the sub-window they left: a product tells without a division. Before
        // its start the difference wraps and is no less than any sub-window.
        let is_same = now.nanos().wrapping_sub(start) < self.weight.span;
        let is_ahead = now.nanos() < start && counts.total() > 0;
        if !is_same && !is_ahead {
            counts.advance(now.nanos() / self.weight.span);
        }
    }

    /// Decides on counts that were brought up to `now`. Returns also what the caller adds if it charges the
    /// request: 0 if it is denied, but for a postpaid limit.
    ///
    /// An admitted request of cost above 0 takes constant time; a refusal, or a look at counts
    /// whose newest is 0, may walk them all. An `extra` above the quota's own allowance is cut to it.
    pub fn decide(
        &self,
        counts: &impl Counts,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, u64) {
        let newest = match counts.total() {
            // Nothing to bring up to now.
            0 => now.nanos() / self.weight.span,
            _ => counts.newest(),
        };
        let overlap = self
            .end(newest)
            .saturating_sub(now.nanos())
            .min(self.weight.span);
        let oldest = counts.count(self.parts);
        let whole = counts.total().saturating_sub(oldest);
        let estimate = whole.saturating_add(self.weight.weighed(oldest, overlap));

        let (outcome, charged) = match self.room.fit(estimate, cost, extra) {
            Fit::Fits(standing) => (window::allowed(standing), cost),
            Fit::Later { room } => (
                window::denied_for(window::until(self.falls_to(counts, newest, room, 0), now)),
                0,
            ),
            Fit::Debited { cost, room } => {
                let falls_at = self.falls_to(counts, newest, room, cost);
                (window::denied_for(window::until(falls_at, now)), cost)
            }
            Fit::Never => (window::NEVER, 0),
        };
        let decision = Decision {
            outcome,
            limit: self.room.limit,
            remaining: self
                .room
                .limit
                .saturating_sub(estimate)
                .saturating_sub(charged),
            reset_after: window::until(self.empties_at(counts, newest, charged), now),
        };
        (decision, charged)
    }

    /// Refunds `cost`, newest first; of a charge to its own sub-window while that is counted.
    pub fn refund(&self, counts: &mut impl Counts, cost: u64, to: RefundTo, now: Time) {
        self.advance(counts, now);
        let ages = match to {
            RefundTo::Current => 0..=self.parts,
            RefundTo::Charge(stamp) => {
                let charged = stamp.at.nanos() / self.weight.span;
                match counts.newest().checked_sub(charged) {
                    Some(age) if age <= self.parts => age..=age,
                    _ => return,
                }
            }
        };
        let mut left = cost;
        for age in ages {
            if left == 0 {
                return;
            }
            left -= counts.take(age, left).min(left);
        }
    }

    /// The first instant at which the counts say no more than none do.
    pub fn expires_at(&self, counts: &impl Counts) -> Time {
        Time::from_nanos(self.empties_at(counts, counts.newest(), 0))
    }

    /// When the estimate will be 0 if `charged` is added to the `newest` count, in nanoseconds since
    /// the epoch; 0 for no counts.
    fn empties_at(&self, counts: &impl Counts, newest: u64, charged: u64) -> u64 {
        // While any count is seen whole the estimate is not 0: the newest that is not empty decides.
        let (age, count) = match counts.count(0).saturating_add(charged) {
            0 if counts.total() == 0 => return 0,
            0 => (1..=self.parts)
                .map(|age| (age, counts.count(age)))
                .find(|(_, count)| *count > 0)
                .unwrap_or_default(),
            count => (0, count),
        };
        let overlap = self.weight.widest_overlap(count, 0).unwrap_or(0);
        self.leaves_at(newest, age).saturating_sub(overlap)
    }

    /// The first instant from the newest sub-window on, in nanoseconds since the epoch, at which the
    /// estimate is no more than `room`, if `charged` is added to the `newest` count.
    fn falls_to(&self, counts: &impl Counts, newest: u64, room: u64, charged: u64) -> u64 {
        let mut whole = counts.total().saturating_add(charged);
        // Each step lets one sub-window more leave, the oldest first.
        for age in (0..=self.parts).rev() {
            let charged = if age == 0 { charged } else { 0 };
            let fading = counts.count(age).saturating_add(charged);
            whole = whole.saturating_sub(fading);
            let left = room.checked_sub(whole);
            if let Some(overlap) = left.and_then(|left| self.weight.widest_overlap(fading, left)) {
                return self.leaves_at(newest, age).saturating_sub(overlap);
            }
        }
        self.leaves_at(newest, 0)
    }

    /// When the sub-window `age` before the `newest` is out of sight.
    fn leaves_at(&self, newest: u64, age: u64) -> u64 {
        self.end(newest.saturating_add(self.parts.saturating_sub(age)))
    }

    /// When a sub-window ends, in nanoseconds since the epoch.
    #[inline]
    fn end(&self, sub_window: u64) -> u64 {
        sub_window
            .saturating_add(1)
            .saturating_mul(self.weight.span)
    }
}
