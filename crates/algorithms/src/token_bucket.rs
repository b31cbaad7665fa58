//! Continuous token bucket (GCRA).
//!
//! A bucket holds up to its capacity in tokens and gains `limit` of them evenly over each window. A
//! request takes as many as it costs. The whole state is one instant, at which the bucket is full
//! again.
//!
//! The time per token is rounded up: to a nanosecond where that slows the rate by at most one in a
//! million, else to 2^-32 ns. Never faster than configured.

use std::time::Duration;

use crate::gcra::{Gcra, Spans};
use crate::window::Room;
use crate::{Decision, QuotaError, RefundTo, Ticks, Time};

/// Continuous token bucket (GCRA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    gcra: Gcra,
}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The theoretical arrival time: the bucket is full again at this instant.
    pub tat: Ticks,
}

// === impl TokenBucket ===

impl TokenBucket {
    pub(crate) fn new(limit: u64, window_nanos: u64, room: Room) -> Result<Self, QuotaError> {
        Ok(Self {
            gcra: Gcra::new(limit, window_nanos, room)?,
        })
    }

    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`.
    ///
    /// A bucket may be in debt up to the quota's own allowance (an `extra` above that is cut to it).
    /// One that is further ahead, since the limit was lowered or the clock stepped back, is clamped
    /// to an empty one; keep the state of a denied decision too where it differs, or the clamp
    /// begins anew at each request and `retry` is early.
    #[inline]
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let weighed = self.gcra.weigh(state.tat, cost, extra, now);
        (weighed.decision, State { tat: weighed.tat })
    }

    /// Decides as [`decide`](Self::decide) does on a state in whole nanoseconds, which is quicker;
    /// `None` for a bucket whose requests do not take whole nanoseconds.
    #[inline]
    pub fn decide_whole(
        &self,
        tat: u64,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> Option<(Decision, u64)> {
        let weighed = self.gcra.weigh_whole(tat, cost, extra, now)?;
        Some((weighed.decision, weighed.tat))
    }

    /// Whether a request takes a whole number of nanoseconds, so that every state of a counter that
    /// knew no other numbers is a whole one too.
    #[inline]
    pub const fn has_whole_nanos(&self) -> bool {
        self.gcra.has_whole_nanos()
    }

    /// The spans of time it works with.
    pub fn spans(&self) -> Spans {
        self.gcra.spans()
    }

    /// Refunds `cost`; of a charge less all that dripped in since.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, to: RefundTo, now: Time) -> State {
        // Without the charge the bucket may have been full ever since, and have lost that much.
        let lost = match to {
            RefundTo::Current => Duration::ZERO,
            RefundTo::Charge(stamp) => now.since(stamp.at),
        };
        State {
            tat: self.gcra.refund(state.tat, cost, lost, now),
        }
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        state.tat.ceil()
    }
}
