//! Fixed, epoch-aligned windows.
//!
//! Counts per window; a new window starts from zero. Up to twice the limit may pass within one
//! window's length that lies across an edge.

use crate::window::{self, Fit, Room};
use crate::{Decision, RefundTo, Time};

/// Fixed, epoch-aligned windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    room: Room,
    window_nanos: u64,
}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which window since the epoch.
    pub window: u64,
    /// What was charged in it.
    pub count: u64,
}

// === impl FixedWindow ===

impl FixedWindow {
    pub(crate) const fn new(room: Room, window_nanos: u64) -> Self {
        Self { room, window_nanos }
    }

    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`, and of a postpaid limit with its cost.
    ///
    /// A window ahead of `now`, since the clock stepped back, stands until time catches up, unless
    /// nothing is counted in it. An `extra` above the quota's own allowance is cut to it.
    #[inline]
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let mut state = self.settle(state, now);
        let reset_after = window::until(self.end(state), now);
        let outcome = match self.room.fit(state.count, cost, extra) {
            Fit::Fits(standing) => {
                state.count += cost;
                window::allowed(standing)
            }
            Fit::Later { .. } => window::denied_for(reset_after),
            Fit::Debited { cost, .. } => {
                state.count = state.count.saturating_add(cost);
                window::denied_for(reset_after)
            }
            Fit::Never => window::NEVER,
        };
        let limit = self.room.limit;
        let remaining = limit.saturating_sub(state.count);
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

    /// Counts `cost` although it was refused, as `charging: every_match` asks.
    #[must_use]
    pub fn count_refused(&self, state: State, cost: u64, now: Time) -> State {
        let State { window, count } = self.settle(state, now);
        State {
            window,
            count: count.saturating_add(cost),
        }
    }

    /// Refunds `cost`; of a charge only while its window is the one that counts.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, to: RefundTo, now: Time) -> State {
        let State { window, count } = self.settle(state, now);
        let is_over = match to {
            RefundTo::Current => false,
            RefundTo::Charge(stamp) => stamp.at.nanos() / self.window_nanos != window,
        };
        State {
            window,
            count: count.saturating_sub(if is_over { 0 } else { cost }),
        }
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        if state.count == 0 {
            Time::ZERO
        } else {
            Time::from_nanos(self.end(state))
        }
    }

    /// The state as of `now`.
    #[inline]
    fn settle(&self, state: State, now: Time) -> State {
        let start = state.window.saturating_mul(self.window_nanos);
        // Most requests find the window they left: a product tells without a division. Before its
        // start the difference wraps and is no less than any window.
        let is_same = now.nanos().wrapping_sub(start) < self.window_nanos;
        let is_ahead = now.nanos() < start && state.count > 0;
        if is_same || is_ahead {
            return state;
        }
        State {
            window: now.nanos() / self.window_nanos,
            count: 0,
        }
    }

    /// When the state's window ends, in nanoseconds since the epoch.
    #[inline]
    fn end(&self, state: State) -> u64 {
        state
            .window
            .saturating_add(1)
            .saturating_mul(self.window_nanos)
    }
}
