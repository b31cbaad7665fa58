//! What the store said last of one counter, and for how long that stands.

use std::time::Duration;

use tidegate_algorithms::{Allowance, Decision, Headroom, Outcome, Quota, Retry, Time};
use tidegate_store::Charge;

use crate::reckoning::Heard;

/// The clocks of two machines run apart by less than one in so many: time servers correct a clock by at
/// most 500 in a million, so two of them by one in a thousand.
const DRIFT: u32 = 512;

/// What the store said of a counter: to somebody whom it admitted, and to somebody whom it refused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    admitted: Option<Told>,
    refused: Option<Refusal>,
}

/// What was asked and refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) cost: u64,
    /// With what headroom, for limits that mind.
    headroom: Headroom,
}

/// For how long a refusal is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least: Duration,
    pub(super) most: Duration,
}

/// A decision, and when it was here.
#[derive(Clone, Copy, Debug)]
struct Told {
    decision: Decision,
    at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    told: Told,
    asked: Asked,
    /// Until when nothing can have changed, by this node's clock.
    until: Time,
}

// === impl Word ===

impl Word {
    /// Remembers that somebody was admitted.
    pub(super) const fn admit(&mut self, decision: Decision, heard: Heard) {
        self.admitted = Some(Told {
            decision,
            at: heard.answered,
        });
    }

    /// Remembers a refusal until it can change, within `bounds`. A `decision` that admits says that nothing
    /// is left now, and stands for a refusal after the shortest time.
    pub(super) fn refuse(
        &mut self,
        asked: Asked,
        mut decision: Decision,
        bounds: Bounds,
        heard: Heard,
    ) {
        let wait = match decision.outcome {
            Outcome::Denied {
                retry: Retry::After(wait),
            } => Some(wait.max(bounds.least)),
            Outcome::Denied {
                retry: Retry::Never,
            } => None,
            Outcome::Allowed { .. } => Some(bounds.least),
        };
        if let Some(wait) = wait {
            decision.outcome = Outcome::Denied {
                retry: Retry::After(wait),
            };
        }
        let span = wait.map_or(bounds.most, |wait| wait.min(bounds.most));
        // Of two costs that were refused the smaller one says more, while it says anything.
        let is_weaker = self
            .refused
            .is_some_and(|old| heard.answered < old.until && old.asked.cost < asked.cost);
        if !is_weaker {
            self.refused = Some(Refusal {
                told: Told {
                    decision,
                    at: heard.answered,
                },
                asked,
                until: heard.asked.plus(safely(span)),
            });
        }
    }

    /// Forgets a refusal: something has come back.
    pub(super) const fn forgive(&mut self) {
        self.refused = None;
    }

    /// What was said to somebody who was admitted, with `in_hand` more than the store knows of.
    #[inline]
    pub(super) fn admitted(&self, in_hand: u64, now: Time) -> Option<Decision> {
        let told = self.admitted?;
        let mut decision = told.later(now);
        let remaining = decision.remaining.saturating_add(in_hand);
        decision.remaining = remaining.min(decision.limit);
        Some(decision)
    }

    /// The refusal that applies to such a request now.
    pub(super) fn refused(&self, asked: Asked, now: Time) -> Option<Decision> {
        let refusal = self.refused.as_ref()?;
        let applies = asked.cost >= refusal.asked.cost
            && asked.headroom == refusal.asked.headroom
            && now < refusal.until;
        applies.then(|| refusal.told.later(now))
    }

    /// Whether anybody would be refused now.
    pub(super) fn is_refusing(&self, now: Time) -> bool {
        self.refused.is_some_and(|refusal| now < refusal.until)
    }

    /// Whether somebody was refused less than `span` ago.
    pub(super) fn refused_within(&self, span: Duration, now: Time) -> bool {
        self.refused
            .is_some_and(|refusal| now.since(refusal.until) < span)
    }

    /// Whether somebody was admitted less than `span` ago.
    pub(super) fn admitted_within(&self, span: Duration, now: Time) -> bool {
        self.admitted.is_some_and(|told| now.since(told.at) < span)
    }
}

// === impl Asked ===

impl Asked {
    pub(super) const fn of(charge: &Charge<'_>) -> Self {
        Self {
            cost: charge.cost,
            headroom: minded(charge.quota, charge.headroom),
        }
    }

    /// So much, of a limit that does not mind the headroom.
    pub(super) const fn cost(cost: u64) -> Self {
        Self {
            cost,
            headroom: Headroom::Absent,
        }
    }
}

// === impl Told ===

impl Told {
    /// The same a while later: what was to come is nearer.
    #[inline]
    fn later(&self, now: Time) -> Decision {
        let since = now.since(self.at);
        let mut decision = self.decision;
        decision.reset_after = decision.reset_after.saturating_sub(since);
        if let Outcome::Denied {
            retry: Retry::After(wait),
        } = &mut decision.outcome
        {
            *wait = wait.saturating_sub(since);
        }
        decision
    }
}

/// So long by this node's clock `span` is not over by the store's, however the two run.
pub(super) fn safely(span: Duration) -> Duration {
    span.saturating_sub(span / DRIFT)
}

/// The headroom, if such a limit minds it.
const fn minded(quota: &Quota, headroom: Headroom) -> Headroom {
    match quota.allowance() {
        Allowance::Elastic { .. } => headroom,
        Allowance::Hard | Allowance::Soft { .. } => Headroom::Absent,
    }
}
