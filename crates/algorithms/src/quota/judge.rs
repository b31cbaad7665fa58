//! Allowances over a limit, soft and elastic: the extra that is available, and when.

use std::time::Duration;

use super::{Algorithm, Allowance, Headroom, Quota, SoftPeriod};
use crate::{Decision, Outcome, Retry, Standing, Time};

/// The reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inquiry {
    /// A request, which is remembered if it is above the limit.
    Request,
    /// A look, which is not.
    Look,
}

impl Inquiry {
    /// The inquiry of a charge: a cost of 0 looks.
    #[inline]
    pub const fn of(cost: u64) -> Self {
        if cost == 0 { Self::Look } else { Self::Request }
    }
}

impl Quota {
    /// Returns true if a counter of this quota must remember a [`SoftPeriod`].
    #[inline]
    pub const fn tracks_soft_period(&self) -> bool {
        self.soft_for().is_some()
    }

    /// Returns how much over the limit is available at `now` to a counter with this `period`.
    #[inline]
    pub fn extra(&self, period: Option<SoftPeriod>, now: Time, headroom: Headroom) -> u64 {
        let available = match (self.allowance, headroom) {
            (Allowance::Hard | Allowance::Postpaid { .. }, _)
            | (Allowance::Elastic { .. }, Headroom::Absent) => false,
            (Allowance::Soft { only_for: None, .. }, _)
            | (Allowance::Elastic { .. }, Headroom::Available) => true,
            (
                Allowance::Soft {
                    only_for: Some(only_for),
                    ..
                },
                _,
            ) => self
                .current(period, now)
                .is_none_or(|period| period.is_soft(only_for, now)),
        };
        if available { self.extra } else { 0 }
    }

    /// Decides with the extra that is available: the one way for every store. `decide` gets the
    /// extra and gives the decision with whatever there is to keep of it, which depends on the extra
    /// only through whether the request is allowed; it is called again where the time of a retry
    /// depends on when the extra ends.
    ///
    /// The retry of an elastic limit is true if the headroom stays as it is.
    #[inline]
    pub fn judge<S>(
        &self,
        period: Option<SoftPeriod>,
        headroom: Headroom,
        now: Time,
        inquiry: Inquiry,
        mut decide: impl FnMut(u64) -> (Decision, S),
    ) -> (Decision, S) {
        if self.tracks_soft_period() {
            return self.judge_soft(period, now, inquiry, decide);
        }
        decide(self.extra(None, now, headroom))
    }

    /// The same for a quota with `soft_for`. Apart, because few quotas have one.
    #[inline(never)]
    fn judge_soft<S>(
        &self,
        period: Option<SoftPeriod>,
        now: Time,
        inquiry: Inquiry,
        mut decide: impl FnMut(u64) -> (Decision, S),
    ) -> (Decision, S) {
        let mut judged = decide(self.extra(period, now, Headroom::Absent));
        if let Some(only_for) = self.soft_for()
            && !judged.0.is_allowed()
            && let Some(period) = self.current(period, now)
        {
            let period = match inquiry {
                Inquiry::Request => period.with_request(only_for, now),
                Inquiry::Look => period,
            };
            let retry = self.retry_across((period, only_for), &judged.0, now, &mut decide);
            judged.0.outcome = Outcome::Denied { retry };
        }
        judged
    }

    /// Returns the period of a counter after a request: one begins with a soft admission and lasts until a
    /// whole window has passed without a request above the limit. For requests, not for looks at cost 0.
    #[inline]
    pub fn next_soft_period(
        &self,
        old: Option<SoftPeriod>,
        decision: &Decision,
        now: Time,
    ) -> Option<SoftPeriod> {
        let only_for = self.soft_for()?;
        let old = self.current(old, now);
        match (decision.outcome, old) {
            (
                Outcome::Allowed {
                    standing: Standing::Within,
                    ..
                },
                old,
            ) => old,
            (Outcome::Allowed { .. } | Outcome::Denied { .. }, Some(old)) => {
                Some(old.with_request(only_for, now))
            }
            (Outcome::Allowed { .. }, None) => Some(SoftPeriod::begin(now)),
            (Outcome::Denied { .. }, None) => None,
        }
    }

    /// Returns the time at which a counter with this `period` is as if it had none.
    pub fn soft_period_expires_at(&self, period: Option<SoftPeriod>) -> Time {
        match (period, self.soft_for()) {
            (Some(period), Some(only_for)) => period.restarts_at(only_for, self.window),
            _ => Time::ZERO,
        }
    }

    /// The `soft_for` of the quota.
    #[inline]
    const fn soft_for(&self) -> Option<Duration> {
        match self.allowance {
            Allowance::Soft { only_for, .. } => only_for,
            _ => None,
        }
    }

    /// The period, if it is not over at `now`.
    #[inline]
    fn current(&self, period: Option<SoftPeriod>, now: Time) -> Option<SoftPeriod> {
        period.filter(|_| now < self.soft_period_expires_at(period))
    }

    /// Returns when a `denied` request is allowed: with the extra until that ends, without it until the period is
    /// over, or with the extra from then on.
    #[cold]
    fn retry_across<S>(
        &self,
        (period, only_for): (SoftPeriod, Duration),
        denied: &Decision,
        now: Time,
        decide: &mut impl FnMut(u64) -> (Decision, S),
    ) -> Retry {
        let mut wait = |extra| match decide(extra).0.outcome {
            Outcome::Denied {
                retry: Retry::After(wait),
            } => Some(wait),
            Outcome::Denied {
                retry: Retry::Never,
            } => None,
            Outcome::Allowed { .. } => Some(Duration::ZERO),
        };
        let Some(soft_wait) = wait(self.extra) else {
            return Retry::Never;
        };
        let restart = period.restarts_at(only_for, self.window);
        let end = period.ends_at(only_for).filter(|end| now < *end);
        let is_before_end = |time| end.is_some_and(|end| time < end);
        if is_before_end(now.plus(soft_wait)) || end.is_some_and(|end| restart <= end) {
            return Retry::After(soft_wait);
        }
        let mut after_restart = soft_wait.max(restart.since(now));
        // The denied request is in the log, where a decision that allows it does not count it.
        if self.algorithm == (Algorithm::SlidingLog { log_refused: true }) {
            after_restart = after_restart.max(denied.reset_after);
        }
        let hard_wait = wait(0).unwrap_or(after_restart);
        Retry::After(hard_wait.min(after_restart))
    }
}
