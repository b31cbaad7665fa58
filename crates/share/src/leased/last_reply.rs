//! The last replies of the store about one counter, and the time for which they stand.

use std::time::Duration;

use tidegate_algorithms::{Allowance, Decision, Headroom, Outcome, Quota, Retry, Time};
use tidegate_store::Charge;

use crate::reckoning::Heard;

/// The clocks of two machines run apart by less than one in so many: time servers correct a clock by at
/// most 500 in a million, so two of them by one in a thousand.
const DRIFT: u32 = 512;

/// The last allowing and the last denying reply about a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastReplies {
    allowed: Option<DatedDecision>,
    denied: Option<Denial>,
}

/// The part of a request that a denial depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demanded {
    pub(super) cost: u64,
    /// The headroom, for limits that depend on it.
    headroom: Headroom,
}

/// A decision, and the time of its arrival by this node's clock.
#[derive(Clone, Copy, Debug)]
struct DatedDecision {
    decision: Decision,
    at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Denial {
    dated: DatedDecision,
    demanded: Demanded,
    /// The end of the time in which it is answered from memory, by this node's clock.
    until: Time,
    /// The end of the time in which the store denies, as far as it said.
    ends: Time,
}

// === impl LastReplies ===

impl LastReplies {
    pub(super) const fn allow(&mut self, decision: Decision, heard: Heard) {
        self.allowed = Some(DatedDecision {
            decision,
            at: heard.answered,
        });
    }

    /// Remembers a denial until it can change, but for at most `remember`. A caller is asked to wait at least for
    /// `pause`, and is denied from memory until then.
    pub(super) fn deny(
        &mut self,
        demanded: Demanded,
        mut decision: Decision,
        pause: Duration,
        remember: Duration,
        heard: Heard,
    ) {
        let (mut span, mut ends) = (remember, Time::MAX);
        if let Outcome::Denied {
            retry: Retry::After(wait),
        } = &mut decision.outcome
        {
            *wait = (*wait).max(pause);
            span = span.min(*wait);
            ends = heard.asked.plus(safely(*wait));
        }
        self.denied = (!span.is_zero()).then_some(Denial {
            dated: DatedDecision {
                decision,
                at: heard.answered,
            },
            demanded,
            until: heard.asked.plus(safely(span)),
            ends,
        });
    }

    /// Remembers a denial for another `span`, if it still stands by what the store said. To be called by a request
    /// that asks the store again, so that others do not ask meanwhile.
    pub(super) fn renew(&mut self, demanded: Demanded, span: Duration, now: Time) {
        if let Some(denial) = &mut self.denied
            && denial.demanded == demanded
            && now < denial.ends
        {
            denial.until = now.plus(span).min(denial.ends);
        }
    }

    /// Forgets the denial of a request that the store has allowed since.
    pub(super) fn disprove(&mut self, demanded: Demanded) {
        self.denied = self.denied.filter(|denial| denial.demanded != demanded);
    }

    /// Forgets the denial: permits have come back to the counter.
    pub(super) const fn forgive(&mut self) {
        self.denied = None;
    }

    /// The last allowing decision, with `held` permits more than the store knows of.
    #[inline]
    pub(super) fn allowed(&self, held: u64, now: Time) -> Option<Decision> {
        let mut decision = self.allowed?.later(now);
        let remaining = decision.remaining.saturating_add(held);
        decision.remaining = remaining.min(decision.limit);
        Some(decision)
    }

    /// The denial that answers such a request now. A larger cost would be denied too, but for longer, or for ever.
    pub(super) fn denied(&self, demanded: Demanded, now: Time) -> Option<Decision> {
        let denial = self.denied.as_ref()?;
        let applies = demanded == denial.demanded && now < denial.until;
        applies.then(|| denial.dated.later(now))
    }

    /// Whether a denial is remembered now.
    pub(super) fn is_denying(&self, now: Time) -> bool {
        self.denied.is_some_and(|denial| now < denial.until)
    }

    /// Whether a denial ended less than `span` ago.
    pub(super) fn denied_within(&self, span: Duration, now: Time) -> bool {
        self.denied
            .is_some_and(|denial| now.since(denial.until) < span)
    }

    /// Whether a request was allowed less than `span` ago.
    pub(super) fn allowed_within(&self, span: Duration, now: Time) -> bool {
        self.allowed.is_some_and(|dated| now.since(dated.at) < span)
    }
}

// === impl Demanded ===

impl Demanded {
    pub(super) const fn of(charge: &Charge<'_>) -> Self {
        Self {
            cost: charge.cost,
            headroom: headroom(charge.quota, charge.headroom),
        }
    }

    /// A cost, of a limit that does not depend on headroom.
    pub(super) const fn cost(cost: u64) -> Self {
        Self {
            cost,
            headroom: Headroom::Absent,
        }
    }
}

// === impl DatedDecision ===

impl DatedDecision {
    /// The decision as it is at `now`: its waits are shorter by the time that has passed.
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

/// A span by this node's clock that is not longer than `span` by the store's, however the two run.
pub(super) fn safely(span: Duration) -> Duration {
    span.saturating_sub(span / DRIFT)
}

/// The headroom, if the limit depends on it.
const fn headroom(quota: &Quota, headroom: Headroom) -> Headroom {
    match quota.allowance() {
        Allowance::Elastic { .. } => headroom,
        Allowance::Hard | Allowance::Soft { .. } => Headroom::Absent,
    }
}
