//! `soft_for` as two times: the first soft admission and the last request above the limit.

use super::{HORIZON, Oracle, first};
use crate::{Allowance, Headroom};

/// The requests above a limit with `soft_for`, in whole microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// The first soft admission.
    first: u128,
    /// The last request above the limit; while the period is soft, in whole steps after the first.
    last: u128,
    /// True if a request above the limit came after its end.
    has_ended: bool,
}

// === impl Oracle ===

impl Oracle {
    /// `soft_for` in whole microseconds.
    fn soft_for(&self) -> Option<u128> {
        match self.allowance {
            Allowance::Soft { only_for, .. } => Some(only_for?.as_nanos().div_ceil(1_000)),
            _ => None,
        }
    }

    /// The end of `soft_for`, in nanoseconds.
    fn soft_until(&self) -> Option<u128> {
        Some((self.period?.first + self.soft_for()?) * 1_000)
    }

    /// The end of the window after the last request above the limit, in nanoseconds.
    fn over_at(&self) -> Option<u128> {
        Some(self.period?.last * 1_000 + self.window)
    }

    pub(super) fn is_hard(&self, at: u128) -> bool {
        let has_ended = self.period.is_some_and(|period| period.has_ended);
        has_ended || self.soft_until().is_some_and(|end| at >= end)
    }

    pub(super) fn is_over(&self, at: u128) -> bool {
        self.over_at().is_none_or(|over| at >= over)
    }

    /// A soft admission begins a period if there is none, and prolongs one that there is.
    pub(super) fn begin_period(&mut self, now: u128) {
        if !self.is_over(now) {
            self.extend_period(now);
        } else if self.soft_for().is_some() {
            let first = now.div_ceil(1_000);
            self.period = Some(Period {
                first,
                last: first,
                has_ended: false,
            });
        }
    }

    /// A request above the limit prolongs the period, if there is one.
    pub(super) fn extend_period(&mut self, now: u128) {
        let (Some(mut period), Some(soft_for)) = (self.period, self.soft_for()) else {
            return;
        };
        let micros = now.div_ceil(1_000);
        if self.is_hard(now) {
            period.last = if period.has_ended {
                period.last.max(micros)
            } else {
                micros
            };
            period.has_ended = true;
        } else {
            let step = soft_for.div_ceil(1_000).max(1);
            let since = micros.saturating_sub(period.first).next_multiple_of(step);
            period.last = period.last.max(period.first + since);
        }
        self.period = Some(period);
    }

    /// The first time from `now` on at which `cost` is admitted.
    pub(super) fn first_admitted(&self, cost: u128, headroom: Headroom, now: u128) -> Option<u128> {
        // The extra may end and come back, but between these times waiting only ever helps.
        let mut restart = self.over_at().unwrap_or(now);
        let end = self.soft_until().unwrap_or(now);
        // A postpaid limit says when a cost of 1 fits, whatever was charged.
        let cost = if self.is_postpaid() { 1 } else { cost };
        let becomes_hard = self.is_hard(now) || end < restart;
        let waits_for_log = self.log_refused && self.period.is_some() && becomes_hard;
        // What was denied is in the log, and the answer waits for all of it to leave.
        if waits_for_log {
            restart = restart.max(first(now, now + HORIZON, |at| self.model.is_unused(at)));
        }
        let admits = |at: u128| {
            if waits_for_log && self.is_hard(at) && at < restart {
                self.fits(cost, 0, at)
            } else {
                self.admits(cost, headroom, at)
            }
        };
        let mut times = [end, restart, now + HORIZON];
        times.sort_unstable();
        let mut from = now;
        for until in times {
            if until > from && admits(until - 1) {
                return Some(first(from, until - 1, admits));
            }
            from = from.max(until);
        }
        None
    }
}
