//! Leaky bucket: a FIFO queue with constant outflow.

use crate::{Decision, Time};

/// Leaky bucket: a FIFO queue with constant outflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When the next request may leave.
    pub next_departure: crate::Ticks,
}

impl LeakyBucket {
    /// Decides whether `cost` fits at `now` within the ordinary limit plus `extra`, and gives the
    /// state to keep if the request is charged. The state of a denied decision is the old one,
    /// brought up to `now`.
    pub fn decide(&self, state: State, cost: u64, extra: u64, now: Time) -> (Decision, State) {
        let _ = (state, cost, extra, now);
        unimplemented!()
    }

    /// Gives back `cost` that was charged before.
    #[must_use]
    pub fn refund(&self, state: State, cost: u64, now: Time) -> State {
        let _ = (state, cost, now);
        unimplemented!()
    }

    /// The first instant at which the state says no more than the default state does.
    pub fn expires_at(&self, state: State) -> Time {
        let _ = state;
        unimplemented!()
    }
}
