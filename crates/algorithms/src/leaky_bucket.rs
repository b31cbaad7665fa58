//! Leaky bucket: a FIFO queue with constant outflow.
//!
//! Requests leave one emission interval apart, in the order in which they were admitted; each is
//! told the exact moment at which it may leave. The state is the moment at which the next one may.
//! A request of cost `n` takes `n` places.

use std::time::Duration;

use crate::gcra::{Gcra, Spans, Weighed};
use crate::window::Room;
use crate::{Decision, Outcome, QuotaError, RefundTo, Ticks, Time};

/// Leaky bucket: a FIFO queue with constant outflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    /// Of the queue's capacity plus the one that leaves at once.
    gcra: Gcra,
}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the next request may leave.
    pub next_departure: Ticks,
}

// === impl LeakyBucket ===

impl LeakyBucket {
    pub(crate) fn new(limit: u64, window_nanos: u64, room: Room) -> Result<Self, QuotaError> {
        Ok(Self {
            gcra: Gcra::new(limit, window_nanos, room)?,
        })
    }

    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`.
    ///
    /// The decision's limit is the queue's size plus one, for the request that leaves at once. A
    /// queue longer than any charge can have made it is clamped to a full one, as with the
    /// [token bucket](crate::token_bucket::TokenBucket::decide).
    #[inline]
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let mut weighed = self.gcra.weigh(state.next_departure, cost, extra, now);
        hold_back(&mut weighed, cost);
        (
            weighed.decision,
            State {
                next_departure: weighed.tat,
            },
        )
    }

    /// Decides as [`decide`](Self::decide) does on a state in whole nanoseconds, which is quicker;
    /// `None` for a bucket whose requests do not take whole nanoseconds.
    #[inline]
    pub fn decide_whole(
        &self,
        next_departure: u64,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> Option<(Decision, u64)> {
        let mut weighed = self.gcra.weigh_whole(next_departure, cost, extra, now)?;
        hold_back(&mut weighed, cost);
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

    /// Refunds `cost`: the next request to be allowed leaves that much earlier. Those already allowed
    /// keep their departure times, so that of a charge only the last ones of the queue are refunded.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, to: RefundTo, now: Time) -> State {
        let refund =
            |next_departure, cost| self.gcra.refund(next_departure, cost, Duration::ZERO, now);
        // A refund of nothing clamps, as a decision does.
        let next_departure = refund(state.next_departure, 0);
        let is_lapsed = match to {
            RefundTo::Current => false,
            RefundTo::Charge(stamp) => {
                let last = next_departure.ceil();
                // Departures beyond the end of time cannot be told apart.
                last != stamp.resets_at || last <= now || last == Time::MAX
            }
        };
        State {
            next_departure: refund(next_departure, if is_lapsed { 0 } else { cost }),
        }
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        state.next_departure.ceil()
    }
}

/// Has an admitted request wait for those before it.
#[inline]
fn hold_back<T>(weighed: &mut Weighed<T>, cost: u64) {
    if let Outcome::Allowed { delay, .. } = &mut weighed.decision.outcome
        && cost > 0
    {
        *delay = weighed.backlog;
    }
}
