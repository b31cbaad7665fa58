//! Token bucket refilled in whole portions at fixed times.
//!
//! At each epoch-aligned edge of the window `limit` tokens drop in, up to the capacity, as the
//! textbook's refiller does.

use crate::window::{self, Fit, Room};
use crate::{Decision, QuotaError, RefundTo, Time};

/// Token bucket refilled in whole portions at fixed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBucket {
    /// Of the capacity.
    room: Room,
    /// Tokens that drop in at an edge. 0 refills nothing, and then there is no capacity either.
    portion: u64,
    period_nanos: u64,
}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which refill period since the epoch.
    pub period: u64,
    /// How many tokens are missing from a full bucket.
    pub missing: u64,
}

// === impl IntervalBucket ===

impl IntervalBucket {
    pub(crate) fn new(portion: u64, period_nanos: u64, room: Room) -> Result<Self, QuotaError> {
        if portion == 0 {
            let room = Room {
                limit: 0,
                most_extra: 0,
                ..room
            };
            return Ok(Self {
                room,
                portion,
                period_nanos,
            });
        }
        let most = room.limit.checked_add(room.most_extra);
        let to_fill = most.and_then(|most| most.div_ceil(portion).checked_mul(period_nanos));
        match to_fill {
            Some(nanos) if nanos <= Time::MAX.nanos() => Ok(Self {
                room,
                portion,
                period_nanos,
            }),
            _ => Err(QuotaError::CapacityTooLarge),
        }
    }

    /// How many tokens a full bucket holds.
    pub const fn capacity(&self) -> u64 {
        self.room.limit
    }

    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`.
    ///
    /// A period ahead of `now`, since the clock stepped back, stands until time catches up, unless
    /// the bucket is full. One that misses more than any charge can have taken, since the limit was
    /// lowered, counts as one that was just empty in its period. An `extra` above the quota's own
    /// allowance is cut to it.
    #[inline]
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let mut state = self.settle(state, now);
        let outcome = match self.room.fit(state.missing, cost, extra) {
            Fit::Fits(standing) => {
                state.missing += cost;
                window::allowed(standing)
            }
            Fit::Later { room } => {
                window::denied_for(window::until(self.refilled_at(state, room), now))
            }
            Fit::Debited { cost, room } => {
                state.missing = state.missing.saturating_add(cost);
                window::denied_for(window::until(self.refilled_at(state, room), now))
            }
            Fit::Never => window::NEVER,
        };
        let limit = self.room.limit;
        let remaining = limit.saturating_sub(state.missing);
        let reset_after = window::until(self.refilled_at(state, 0), now);
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

    /// Refunds `cost`; of a charge less the portions that dropped in since, and less the debt that may have been
    /// forgotten.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, to: RefundTo, now: Time) -> State {
        let State { period, missing } = self.settle(state, now);
        let refilled = match to {
            RefundTo::Current => 0,
            RefundTo::Charge(stamp) => {
                let edges = period.saturating_sub(stamp.at.nanos() / self.period_nanos);
                let forgotten = if edges > 0 { self.debt() } else { 0 };
                edges.saturating_mul(self.portion).saturating_add(forgotten)
            }
        };
        State {
            period,
            missing: missing.saturating_sub(cost.saturating_sub(refilled)),
        }
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        let missing = self.clamp(state.missing);
        Time::from_nanos(self.refilled_at(State { missing, ..state }, 0))
    }

    /// The state as of `now`.
    #[inline]
    fn settle(&self, state: State, now: Time) -> State {
        let missing = self.clamp(state.missing);
        let start = state.period.saturating_mul(self.period_nanos);
        // Most requests find the period they left: a product tells without a division. Before its
        // start the difference wraps and is no less than any period.
        let is_same = now.nanos().wrapping_sub(start) < self.period_nanos;
        let is_ahead = now.nanos() < start && missing > 0;
        if is_same || is_ahead {
            return State { missing, ..state };
        }
        let period = now.nanos() / self.period_nanos;
        let refilled = period
            .saturating_sub(state.period)
            .saturating_mul(self.portion);
        State {
            period,
            missing: self.without_debt(missing).saturating_sub(refilled),
        }
    }

    /// The tokens that are missing once the debt of a postpaid bucket is forgotten, at an edge.
    #[inline]
    fn without_debt(&self, missing: u64) -> u64 {
        if self.room.is_postpaid {
            missing.min(self.room.limit)
        } else {
            missing
        }
    }

    /// The most that is forgotten at an edge.
    const fn debt(&self) -> u64 {
        if self.room.is_postpaid {
            self.room.most_extra
        } else {
            0
        }
    }

    #[inline]
    fn clamp(&self, missing: u64) -> u64 {
        let Room {
            limit, most_extra, ..
        } = self.room;
        if missing > limit.saturating_add(most_extra) {
            limit
        } else {
            missing
        }
    }

    /// When no more than `room` will be missing, in nanoseconds since the epoch; 0 if that is so
    /// already.
    fn refilled_at(&self, state: State, room: u64) -> u64 {
        let excess = self.without_debt(state.missing).saturating_sub(room);
        if excess == 0 {
            return 0;
        }
        // Nothing can be missing without a portion: there is no capacity then.
        let portions = excess.div_ceil(self.portion.max(1));
        state
            .period
            .saturating_add(portions)
            .saturating_mul(self.period_nanos)
    }
}
