//! Sliding log: remembers each request, exact to its grain.
//!
//! Times are remembered in whole grains, rounded up, and a request leaves the window when the
//! remembered time is a whole window ago: never more than the limit in any window, however it lies.
//!
//! With `log_refused` refused requests are remembered as well, as the textbook does. Only the
//! newest are kept, as many as the log may hold: while that many are in the window, no request fits,
//! whether or not there are older ones, and of those that are forgotten none outlives those kept.

use std::time::Duration;

use crate::window::{self, Fit, Room};
use crate::{Decision, RefundTo, Time};

/// Sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    room: Room,
    window_nanos: u64,
    grain: u64,
    refused: Refused,
}

/// What becomes of refused requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// They are forgotten.
    Forgotten,
    /// They are remembered like admitted ones.
    Logged,
}

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
    /// Forgets `n` from the `first` oldest on, counted from 0; there are as many.
    fn remove(&mut self, first: u64, n: u64);
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

/// A log as it is, or as it will be once an entry is written.
struct View<'a, L> {
    log: &'a L,
    /// How many of the oldest to pass over.
    skip: u64,
    entry: Option<Entry>,
}

// === impl SlidingLog ===

impl SlidingLog {
    pub(crate) const fn new(room: Room, window_nanos: u64, refused: Refused) -> Self {
        Self {
            room,
            window_nanos,
            grain: grain(window_nanos),
            refused,
        }
    }

    /// Nanoseconds in a grain: 1 for windows up to 4 s, 1,000 up to 70 min, 1,000,000 up to 49 days,
    /// else 1,000,000,000. A window is at most 2^32 - 1 grains, so a stamp fits 32 bits.
    pub const fn grain(&self) -> u64 {
        self.grain
    }

    /// The most entries the log can hold: the limit and its extra.
    pub const fn capacity(&self) -> u64 {
        self.room.limit.saturating_add(self.room.most_extra)
    }

    /// Whether the entry of a denied decision is a charge.
    pub const fn is_postpaid(&self) -> bool {
        self.room.is_postpaid
    }

    /// Whether refused requests are remembered as well.
    pub const fn logs_refused(&self) -> bool {
        matches!(self.refused, Refused::Logged)
    }

    /// How many of the oldest entries have left the window at `now`. Forgetting them changes no
    /// decision.
    pub fn expired(&self, log: &impl Log, now: Time) -> u64 {
        count_while(log, |stamp| self.leaves_at(stamp) <= now.nanos())
    }

    /// Decides on a log; expired entries, if there are any left, do not count. Gives also what to
    /// write: when the request is charged, or, with `log_refused`, when it is denied; `None` if
    /// nothing.
    ///
    /// A refusal that will be remembered is already in `remaining`, `reset_after` and `retry`. After
    /// a clock stepped back new entries get the time of the newest. An `extra` above the quota's own
    /// allowance is cut to it.
    pub fn decide(
        &self,
        log: &impl Log,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, Option<Entry>) {
        let skip = self.expired(log, now);
        let used = log.len().saturating_sub(skip);
        let fit = self.room.fit(used, cost, extra);
        let entry = match (&fit, self.refused) {
            (Fit::Fits(_) | Fit::Debited { .. }, _) | (_, Refused::Logged) => {
                self.entry(log, skip, cost, now)
            }
            (_, Refused::Forgotten) => None,
        };
        let view = View {
            log,
            skip: entry.map_or(skip, |entry| entry.forget),
            entry,
        };
        let outcome = match fit {
            Fit::Fits(standing) => window::allowed(standing),
            Fit::Later { room } | Fit::Debited { room, .. } => {
                // Not empty: what does not fit now but may later finds somebody in its way.
                let last_to_leave = view.len().saturating_sub(room).saturating_sub(1);
                window::denied_for(self.left_in(view.nth_oldest(last_to_leave), now))
            }
            Fit::Never => window::NEVER,
        };
        let newest = view.len().checked_sub(1).and_then(|n| view.nth_oldest(n));
        let decision = Decision {
            outcome,
            limit: self.room.limit,
            remaining: self.room.limit.saturating_sub(view.len()),
            reset_after: self.left_in(newest, now),
        };
        (decision, entry)
    }

    /// Writes what a decision said.
    pub fn write(&self, log: &mut impl LogMut, entry: Entry) {
        log.drop_oldest(entry.forget);
        log.push(entry.stamp, entry.n);
    }

    /// Refunds `cost`, newest first; of a charge the first entries that are not before it, of which
    /// none leaves later than its own.
    pub fn refund(&self, log: &mut impl LogMut, cost: u64, to: RefundTo, now: Time) {
        log.drop_oldest(self.expired(log, now));
        match to {
            RefundTo::Current => log.drop_newest(cost.min(log.len())),
            RefundTo::Charge(stamp) => {
                let stamp = stamp.at.nanos().div_ceil(self.grain);
                if self.leaves_at(stamp) > now.nanos() {
                    let first = count_while(log, |entry| entry < stamp);
                    log.remove(first, cost.min(log.len().saturating_sub(first)));
                }
            }
        }
    }

    /// The first instant at which a log whose newest entry is `newest` says no more than an empty one.
    pub fn expires_at(&self, newest: u64) -> Time {
        Time::from_nanos(self.leaves_at(newest))
    }

    /// What remembers `cost` at `now`, the first `skip` of the log having expired.
    fn entry(&self, log: &impl Log, skip: u64, cost: u64, now: Time) -> Option<Entry> {
        let n = cost.min(self.capacity());
        if n == 0 {
            return None;
        }
        let newest = log.len().checked_sub(1).and_then(|n| log.nth_oldest(n));
        let stamp = now.nanos().div_ceil(self.grain).max(newest.unwrap_or(0));
        let overflow = log.len().saturating_add(n).saturating_sub(self.capacity());
        Some(Entry {
            stamp,
            n,
            forget: overflow.max(skip).min(log.len()),
        })
    }

    /// When an entry leaves the window, in nanoseconds since the epoch.
    fn leaves_at(&self, stamp: u64) -> u64 {
        stamp
            .saturating_mul(self.grain)
            .saturating_add(self.window_nanos)
    }

    /// How long until an entry leaves; zero for none.
    fn left_in(&self, stamp: Option<u64>, now: Time) -> Duration {
        stamp.map_or(Duration::ZERO, |stamp| {
            window::until(self.leaves_at(stamp), now)
        })
    }
}

// === impl View ===

impl<L: Log> View<'_, L> {
    fn kept(&self) -> u64 {
        self.log.len().saturating_sub(self.skip)
    }

    fn len(&self) -> u64 {
        self.kept()
            .saturating_add(self.entry.map_or(0, |entry| entry.n))
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        if n < self.kept() {
            self.log.nth_oldest(self.skip.saturating_add(n))
        } else {
            self.entry.map(|entry| entry.stamp)
        }
    }
}

/// The number of the oldest entries that are `old`; the stamps never decrease.
fn count_while(log: &impl Log, is_old: impl Fn(u64) -> bool) -> u64 {
    let is_old = |n| log.nth_oldest(n).is_some_and(&is_old);
    // Most calls find nothing that is.
    if !is_old(0) {
        return 0;
    }
    // `low` is old and `high` is not.
    let (mut low, mut high) = (0, log.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_old(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The finest grain of which a window has fewer than 2^32, with a margin that makes round numbers.
const fn grain(window_nanos: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    const MINUTE: u64 = 60 * SECOND;
    const DAY: u64 = 24 * 60 * MINUTE;
    if window_nanos <= 4 * SECOND {
        1
    } else if window_nanos <= 70 * MINUTE {
        1_000
    } else if window_nanos <= 49 * DAY {
        1_000_000
    } else {
        1_000_000_000
    }
}
