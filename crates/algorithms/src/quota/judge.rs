//! What may pass over a limit, and when: soft and elastic allowances.

use std::time::Duration;

use super::{Allowance, Headroom, Quota};
use crate::{Decision, Outcome, Retry, Standing, Time};

impl Quota {
    /// Whether a counter of this quota must remember since when it is over its limit.
    #[inline]
    pub const fn tracks_over_since(&self) -> bool {
        matches!(
            self.allowance,
            Allowance::Soft {
                only_for: Some(_),
                ..
            }
        )
    }

    /// How much over the limit is available at `now` to a counter that is over it since
    /// `over_since`.
    #[inline]
    pub fn extra(&self, over_since: Option<Time>, now: Time, headroom: Headroom) -> u64 {
        let available = match (self.allowance, headroom) {
            (Allowance::Hard, _) | (Allowance::Elastic { .. }, Headroom::Absent) => false,
            (Allowance::Soft { only_for, .. }, _) => {
                deadline(over_since, only_for).is_none_or(|deadline| now < deadline)
            }
            (Allowance::Elastic { .. }, Headroom::Available) => true,
        };
        if available { self.extra } else { 0 }
    }

    /// Decides with the extra that is available: the one way for every store. `decide` gets the
    /// extra and gives the decision with whatever there is to keep of it, which depends on the extra
    /// only through whether the request is admitted; it is called again where the time of a retry
    /// depends on when the extra ends.
    ///
    /// `over_since` is `None` for a counter that has expired: whole again, it is over nothing.
    ///
    /// The retry of an elastic limit is true if the headroom stays as it is.
    #[inline]
    pub fn judge<S>(
        &self,
        over_since: Option<Time>,
        headroom: Headroom,
        now: Time,
        mut decide: impl FnMut(u64) -> (Decision, S),
    ) -> (Decision, S) {
        let judged = decide(self.extra(over_since, now, headroom));
        match (self.allowance, judged.0.outcome) {
            (
                Allowance::Soft {
                    only_for: Some(only_for),
                    ..
                },
                Outcome::Denied { retry },
            ) if let Some(over_since) = over_since => {
                let deadline = over_since.plus(only_for);
                let (mut decision, kept) = judged;
                let retry = self.retry_across(deadline, now, retry, &mut decide);
                decision.outcome = Outcome::Denied { retry };
                (decision, kept)
            }
            _ => judged,
        }
    }

    /// Since when a counter is over its limit after a charge: from the first request admitted over
    /// it until one is admitted within. For requests that were charged, not for looks at cost 0.
    #[inline]
    pub const fn next_over_since(
        old: Option<Time>,
        decision: &Decision,
        now: Time,
    ) -> Option<Time> {
        match (decision.outcome, old) {
            (
                Outcome::Allowed {
                    standing: Standing::Within,
                    ..
                },
                _,
            ) => None,
            (
                Outcome::Allowed {
                    standing: Standing::Over,
                    ..
                },
                None,
            ) => Some(now),
            (
                Outcome::Allowed {
                    standing: Standing::Over,
                    ..
                }
                | Outcome::Denied { .. },
                old,
            ) => old,
        }
    }

    /// When a refused request is admitted, the extra ending at `deadline` and coming back when the
    /// counter is whole.
    #[cold]
    fn retry_across<S>(
        &self,
        deadline: Time,
        now: Time,
        retry: Retry,
        decide: &mut impl FnMut(u64) -> (Decision, S),
    ) -> Retry {
        let (soft, _) = decide(self.extra);
        match soft.outcome {
            Outcome::Denied {
                retry: Retry::Never,
            } => return Retry::Never,
            Outcome::Denied {
                retry: Retry::After(wait),
            } if now.plus(wait) < deadline => {
                return Retry::After(wait);
            }
            _ => {}
        }
        let (hard, _) = decide(0);
        match hard.outcome {
            Outcome::Denied {
                retry: Retry::After(wait),
            } => Retry::After(wait),
            // It fits on the extra alone, which the counter has again when it is whole.
            Outcome::Denied {
                retry: Retry::Never,
            } => Retry::After(hard.reset_after),
            // Cannot be: it was refused with at least this much.
            Outcome::Allowed { .. } => retry,
        }
    }
}

/// When the extra of a counter that is over its limit ends; `None` if it does not.
fn deadline(over_since: Option<Time>, only_for: Option<Duration>) -> Option<Time> {
    Some(over_since?.plus(only_for?))
}
