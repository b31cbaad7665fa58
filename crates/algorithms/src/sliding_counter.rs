//! Sliding counter of two buckets.
//!
//! Counts per epoch-aligned window and takes the window before it in proportion to how much of it
//! the sliding window still overlaps, as if its requests had been spread evenly.

use crate::window::{self, Fit, Room, Weight};
use crate::{Decision, RefundTo, Time};

/// Sliding counter of two buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    room: Room,
    weight: Weight,
}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which window since the epoch.
    pub window: u64,
    /// What was charged in the window before it.
    pub previous: u64,
    /// What was charged in it.
    pub current: u64,
}

// === impl SlidingCounter ===

impl SlidingCounter {
    pub(crate) const fn new(room: Room, weight: Weight) -> Self {
        Self { room, weight }
    }

    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`.
    ///
    /// A window ahead of `now`, since the clock stepped back, stands until time catches up, unless
    /// nothing is counted in it. An `extra` above the quota's own allowance is cut to it.
    #[inline]
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let mut state = self.settle(state, now);
        let weighed = self
            .weight
            .weighed(state.previous, self.overlap(state, now));
        let mut estimate = state.current.saturating_add(weighed);
        let outcome = match self.room.fit(estimate, cost, extra) {
            Fit::Fits(standing) => {
                // Both are at most the estimate plus the cost, which fits.
                state.current += cost;
                estimate += cost;
                window::allowed(standing)
            }
            Fit::Later { room } => {
                window::denied_for(window::until(self.falls_to(state, room), now))
            }
            Fit::Debited { cost, room } => {
                state.current = state.current.saturating_add(cost);
                estimate = estimate.saturating_add(cost);
                window::denied_for(window::until(self.falls_to(state, room), now))
            }
            Fit::Never => window::NEVER,
        };
        let limit = self.room.limit;
        let remaining = limit.saturating_sub(estimate);
        let reset_after = window::until(self.falls_to(state, 0), now);
        (
            Decision {
                outcome,
                limit,
                remaining,
                reset_after,
            },
            state,
        )
    }

    /// Refunds `cost`: to the current window, then to the one before; of a charge to its own window
    /// while that is one of both.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, to: RefundTo, now: Time) -> State {
        let State {
            window,
            previous,
            current,
        } = self.settle(state, now);
        let (to_current, to_previous) = match to {
            RefundTo::Current => (cost, cost.saturating_sub(current)),
            RefundTo::Charge(stamp) => {
                match window.checked_sub(stamp.at.nanos() / self.weight.span) {
                    Some(0) => (cost, 0),
                    Some(1) => (0, cost),
                    _ => (0, 0),
                }
            }
        };
        State {
            window,
            previous: previous.saturating_sub(to_previous),
            current: current.saturating_sub(to_current),
        }
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        Time::from_nanos(self.falls_to(state, 0))
    }

    /// The state as of `now`.
    #[inline]
    fn settle(&self, state: State, now: Time) -> State {
        let span = self.weight.span;
        let State {
            window,
            previous,
            current,
        } = state;
        let start = window.saturating_mul(span);
        // Most requests find the window they left: a product tells without a division. Before its
        // start the difference wraps and is no less than any window.
        let since_start = now.nanos().wrapping_sub(start);
        let is_ahead = now.nanos() < start && (previous > 0 || current > 0);
        if since_start < span || is_ahead {
            return state;
        }
        let is_next = now.nanos() >= start && since_start - span < span;
        let previous = if is_next { current } else { 0 };
        State {
            window: now.nanos() / span,
            previous,
            current: 0,
        }
    }

    /// How much of the window before is in sight; all of it while the state is ahead of `now`.
    #[inline]
    fn overlap(&self, state: State, now: Time) -> u64 {
        (self.end(state) - now.nanos()).min(self.weight.span)
    }

    /// The first instant from the state's window on, in nanoseconds since the epoch, at which the
    /// estimate is no more than `room`; 0 for a state without counts.
    fn falls_to(&self, state: State, room: u64) -> u64 {
        let State {
            previous, current, ..
        } = state;
        if previous == 0 && current == 0 {
            return 0;
        }
        let end = self.end(state);
        let now = room.checked_sub(current);
        if let Some(overlap) = now.and_then(|room| self.weight.widest_overlap(previous, room)) {
            return end - overlap;
        }
        // From the edge on the current window is the one before.
        let overlap = self.weight.widest_overlap(current, room).unwrap_or(0);
        end.saturating_add(self.weight.span - overlap)
    }

    /// When the state's window ends, in nanoseconds since the epoch.
    #[inline]
    fn end(&self, state: State) -> u64 {
        state
            .window
            .saturating_add(1)
            .saturating_mul(self.weight.span)
    }
}
