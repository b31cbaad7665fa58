//! The last replies of the store about one counter, and the time for which they stand.

use std::time::Duration;

use tidegate_algorithms::token_bucket::State;
use tidegate_algorithms::{
    Allowance, Decision, Headroom, Meter, Outcome, Quota, Retry, Ticks, Time,
};
use tidegate_store::Charge;

use crate::reckoning::Heard;

/// The clocks of two machines run apart by less than one in so many: time servers correct a clock by at
/// most 500 in a million, so two of them by one in a thousand.
const DRIFT: u32 = 512;

/// The most denials that are remembered of one counter, each of another cost.
const MOST_DENIALS: usize = 4;

/// The last replies about a counter.
#[derive(Clone, Debug, Default)]
pub(super) struct LastReplies {
    allowed: Option<DatedDecision>,
    /// Denials, oldest first.
    denied: Vec<Denial>,
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
    decision: Decision,
    demanded: Demanded,
    heard: Heard,
    /// The shortest wait that a caller is told.
    pause: Duration,
    /// The end of the time in which it is answered from memory, by this node's clock.
    until: Time,
    /// Whether a request was let through to ask the store again.
    is_asked_again: bool,
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
        decision: Decision,
        pause: Duration,
        remember: Duration,
        heard: Heard,
    ) {
        self.denied
            .retain(|denial| !denial.is_asked_again && denial.demanded != demanded);
        if remember.is_zero() {
            return;
        }
        if self.denied.len() == MOST_DENIALS {
            self.denied.remove(0);
        }
        // Most callers repeat one cost, and `push` alone makes room for four.
        self.denied.reserve_exact(1);
        self.denied.push(Denial {
            decision,
            demanded,
            heard,
            pause,
            until: heard.asked.plus(safely(remember)),
            is_asked_again: false,
        });
    }

    /// Remembers a denial for another `span`, if it still stands by what the store said. To be called by a request
    /// that asks the store again, so that others do not ask meanwhile.
    pub(super) fn renew(&mut self, demanded: Demanded, quota: &Quota, span: Duration, now: Time) {
        let denials = self.denied.iter_mut().rev();
        let mut standing = denials.filter(|denial| denial.answer(demanded, quota, now).is_some());
        if let Some(denial) = standing.next() {
            denial.until = now.plus(span);
            denial.is_asked_again = true;
        }
    }

    /// Forgets all denials: permits have come back to the counter, or the store has allowed a request since.
    pub(super) fn forgive(&mut self) {
        self.denied = Vec::new();
    }

    /// The last allowing decision, with `held` permits more than the store knows of.
    #[inline]
    pub(super) fn allowed(&self, held: u64, now: Time) -> Option<Decision> {
        let mut decision = self.allowed?.later(now);
        let remaining = decision.remaining.saturating_add(held);
        decision.remaining = remaining.min(decision.limit);
        Some(decision)
    }

    /// The denial that answers such a request now.
    pub(super) fn denied(&self, demanded: Demanded, quota: &Quota, now: Time) -> Option<Decision> {
        let denials = self.denied.iter().rev();
        let mut remembered = denials.filter(|denial| now < denial.until);
        remembered.find_map(|denial| denial.answer(demanded, quota, now))
    }

    /// Whether a denial is remembered now.
    pub(super) fn is_denying(&self, now: Time) -> bool {
        self.denied.iter().any(|denial| now < denial.ends())
    }

    /// Whether a denial ended less than `span` ago.
    pub(super) fn denied_within(&self, span: Duration, now: Time) -> bool {
        let mut denials = self.denied.iter();
        denials.any(|denial| now.since(denial.ends()) < span)
    }

    /// Whether a request was allowed less than `span` ago.
    pub(super) fn allowed_within(&self, span: Duration, now: Time) -> bool {
        self.allowed.is_some_and(|dated| now.since(dated.at) < span)
    }
}

// === impl Denial ===

impl Denial {
    /// The answer to such a request now, if it is known and denied by what the store said.
    fn answer(&self, demanded: Demanded, quota: &Quota, now: Time) -> Option<Decision> {
        let decision = self.paused(self.decision_on(demanded, quota)?);
        let dated = DatedDecision {
            decision,
            at: self.heard.answered,
        };
        (now < self.stands_until(&decision)).then(|| dated.later(now))
    }

    /// The decision of the store on another request at the same moment, if it follows from this one: the same denial,
    /// or that of another cost.
    fn decision_on(&self, demanded: Demanded, quota: &Quota) -> Option<Decision> {
        let (decision, cost) = (self.decision, demanded.cost);
        if demanded == self.demanded {
            return Some(decision);
        }
        if quota.allowance() != Allowance::Hard {
            return None;
        }
        let is_larger = cost > self.demanded.cost;
        let is_same = match (retry(&decision)?, quota.meter()) {
            // A cost that never fits.
            (Retry::Never, _) => is_larger,
            // The state of a bucket is the time at which it is full.
            (Retry::After(_), Meter::TokenBucket(bucket)) => {
                let now = self.heard.now;
                let tat = Ticks::at(now.plus(decision.reset_after));
                let (decision, _) = bucket.decide(State { tat }, cost, 0, now);
                return (!decision.is_allowed()).then_some(decision);
            }
            (Retry::After(_), Meter::FixedWindow(_)) => {
                cost > decision.remaining && cost <= decision.limit
            }
            // All is free at that moment, and no larger cost can be earlier.
            (Retry::After(wait), _) => {
                is_larger && cost <= decision.limit && wait == decision.reset_after
            }
        };
        is_same.then_some(decision)
    }

    /// The end of the time in which its own request is denied from memory.
    fn ends(&self) -> Time {
        self.until
            .min(self.stands_until(&self.paused(self.decision)))
    }

    /// The end of the time in which the store denies, as far as it said, by this node's clock.
    fn stands_until(&self, decision: &Decision) -> Time {
        match retry(decision) {
            Some(Retry::After(wait)) => self.heard.asked.plus(safely(wait)),
            _ => Time::MAX,
        }
    }

    fn paused(&self, mut decision: Decision) -> Decision {
        if let Outcome::Denied {
            retry: Retry::After(wait),
        } = &mut decision.outcome
        {
            *wait = (*wait).max(self.pause);
        }
        decision
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

const fn retry(decision: &Decision) -> Option<Retry> {
    match decision.outcome {
        Outcome::Denied { retry } => Some(retry),
        Outcome::Allowed { .. } => None,
    }
}

/// The headroom, if the limit depends on it.
const fn headroom(quota: &Quota, headroom: Headroom) -> Headroom {
    match quota.allowance() {
        Allowance::Elastic { .. } => headroom,
        Allowance::Hard | Allowance::Soft { .. } | Allowance::Postpaid { .. } => Headroom::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_room_for_the_denials_that_it_remembers_and_no_more() {
        let now = Time::from_nanos(1_000_000_000);
        let heard = Heard {
            now,
            asked: now,
            answered: now,
        };
        let wait = Duration::from_secs(1);
        let decision = Decision {
            outcome: Outcome::Denied {
                retry: Retry::After(wait),
            },
            limit: 10,
            remaining: 0,
            reset_after: wait,
        };
        let mut replies = LastReplies::default();
        for cost in 1..=2 {
            replies.deny(Demanded::cost(cost), decision, wait, wait, heard);
            assert_eq!(replies.denied.capacity() as u64, cost);
        }
        replies.forgive();
        assert_eq!(replies.denied.capacity(), 0);
    }
}
