//! Fixed, epoch-aligned windows.

use crate::{Decision, Time};

/// Fixed, epoch-aligned windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {}

/// What the algorithm remembers of one caller. The default is a caller never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which window since the epoch.
    pub window: u64,
    /// What was charged in it.
    pub count: u64,
}

impl FixedWindow {
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

impl FixedWindow {
    /// Counts `cost` although it was refused, as `charging: every_match` asks.
    #[must_use]
    pub fn count_refused(&self, state: State, cost: u64, now: Time) -> State {
        let _ = (state, cost, now);
        unimplemented!()
    }
}
