//! Requests for a node's shares.

use std::borrow::Cow;
use std::time::Duration;

use tidegate_algorithms::{Decision, Outcome, Quota, RefundTo, Retry, Time};
use tidegate_store::{Charge, Charging, Clock, Consistency, CounterKey, LimitId, Mode, StoreError};

use super::Split;
use super::counters::is_aligned;
use super::limit::{KnownPlans, PlannedShare, SplitLimit};
use super::store_time::Bounds;
use crate::capacity::{capacity, most_at_once};
use crate::edge;
use crate::memory::{FromMemory, Took};

// === impl Split ===

impl<M: Clock> FromMemory for Split<M> {
    /// `None` if the store is to be asked for the [reserve](super::reserve::Reserves).
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        let limits = self.limits.load();
        let taken = if let Some(limit) = limits.get(&charge.key.limit) {
            self.take_share(limit, charge, charging)?
        } else {
            self.meet(charge);
            None
        };
        let denial = || self.replies.denial(charge, self.own_now());
        Ok(taken.or_else(|| denial().map(Took::from)))
    }

    /// An admission from before the edge of an aligned window is not put back after it, where it would make
    /// room for others.
    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        let (Some(charged), Some(bounds)) = (took.charged, self.time().bounds()) else {
            return;
        };
        // By the time of the counter, which is the earliest that it can be.
        if is_aligned(charge.quota) && edge::is_between(charge.quota, charged, bounds.earliest) {
            return;
        }
        let quota = self.quota_taken_from(charge.key.limit, charge.quota, charged, bounds);
        // Cannot fail: the store could tell the counter's window from others when it was charged.
        let _ = self
            .counters
            .refund(charge.key, &quota, charge.cost, RefundTo::Current);
    }

    fn correct(&self, charge: &Charge<'_>, _: &Took, decision: &mut Decision) {
        if let Some(untouched) = self.peek_share(charge) {
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }

    /// A request is demand for each of its limits that no other limit denied it to: one that costs nothing is to claim
    /// nothing either. A caller who keeps asking has no more denied demand in a window than each limit of the request
    /// admits: of a shared limit no more than its own limit would let it use.
    fn note_demand(&self, charges: &[Charge<'_>], decisions: &[Decision], is_charged: bool) {
        let decided = || charges.iter().zip(decisions);
        let denies = |(charge, decision): &(&Charge<'_>, &Decision)| {
            charge.mode == Mode::Enforce && !decision.is_allowed()
        };
        let denying = decided().filter(denies).count();
        let claiming = || {
            decided().filter(|limit| {
                let is_only = !limit.1.is_allowed() && denying == usize::from(denies(limit));
                limit.0.consistency == Consistency::Split && (is_charged || is_only)
            })
        };
        let is_over = |charge: &&Charge<'_>| {
            charge.mode == Mode::Enforce && !self.denied.count(charge, self.own_now())
        };
        // Each limit counts the request once, however many of them denied it.
        let is_denied = claiming().any(|(_, decision)| !decision.is_allowed());
        let is_within = is_denied && charges.iter().filter(is_over).count() == 0;
        let limits = self.limits.load();
        for (charge, decision) in claiming() {
            let is_own_within =
                || charge.mode == Mode::Enforce || self.denied.count(charge, self.own_now());
            let is_demand = decision.is_allowed() || (is_within && is_own_within());
            if let Some(limit) = limits.get(&charge.key.limit)
                && is_demand
            {
                // No request is worth more than the limit.
                limit.ask(charge.cost.min(charge.quota.limit()));
            }
        }
    }
}

impl<M: Clock> Split<M> {
    /// The admission from the node's share; `None` if it does not admit, or the node has no share now.
    fn take_share(
        &self,
        limit: &SplitLimit,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Option<Took>, StoreError> {
        let plans = limit.plans();
        let bounds = self.time().bounds();
        let share = bounds.and_then(|bounds| share_at(&plans, bounds, charge.quota));
        let (Some(bounds), Some(share)) = (bounds, share) else {
            return Ok(None);
        };
        if share.is_for_others(charge.quota) {
            limit.renumber(charge.quota);
        }
        let quotas = share.quotas(charge.quota);
        let Some(own) = &quotas.own else {
            return Ok(None);
        };
        let decision = self.counters.charge(charge, own, charging)?;
        if !decision.is_allowed() {
            return Ok(None);
        }
        // The thread may have slept since it looked at the time. Then what it took is lost.
        let is_still = self.is_still(share, charge.quota);
        let decision = whole(charge.quota, charge.cost, decision);
        Ok(is_still.then_some(Took::new(decision, Some(bounds.earliest))))
    }

    /// The most likely decision of a limit that memory cannot decide on, for a request that another limit
    /// denies: from the last reply of the store, else from the share.
    pub(crate) fn look(&self, charge: &Charge<'_>) -> Option<Decision> {
        let last = self.replies.last(charge, self.own_now());
        last.or_else(|| self.peek_share(charge))
    }

    /// The state of the node's share of a counter; `None` if it has no share.
    pub(crate) fn peek_share(&self, charge: &Charge<'_>) -> Option<Decision> {
        let own = self.own_quota(charge.key.limit, charge.quota)?;
        let look = Charge {
            quota: &own,
            ..*charge
        };
        let decision = self.counters.peek(&look).ok()?;
        Some(whole(charge.quota, 0, decision))
    }

    /// Resets the node's own counter.
    pub(crate) fn reset_share(&self, key: CounterKey<'_>, quota: &Quota) -> bool {
        self.replies.forget(key);
        self.counters.reset(key, quota).unwrap_or(false)
    }

    /// The part of a limit that the node admits from memory now; `None` if nothing.
    pub(super) fn own_quota(&self, limit: LimitId, quota: &Quota) -> Option<Quota> {
        let limits = self.limits.load();
        let plans = limits.get(&limit)?.plans();
        let share = share_at(&plans, self.time().bounds()?, quota)?;
        share.quotas(quota).own.clone()
    }

    /// The quota that a charge was taken from, or one that refunds less. A bucket with a larger quota fills
    /// faster and so refunds less for a request: if another plan is in force by now, under which the share may
    /// be smaller, the whole quota is used.
    pub(super) fn quota_taken_from<'a>(
        &self,
        limit: LimitId,
        quota: &'a Quota,
        charged: Time,
        bounds: Bounds,
    ) -> Cow<'a, Quota> {
        let limits = self.limits.load();
        let plans = limits.get(&limit).map(|limit| limit.plans());
        let share = plans.as_ref().and_then(|plans| plans.at(bounds));
        let own = share
            .filter(|share| share.plan().starts <= charged)
            .and_then(|share| share.quotas(quota).own.clone());
        own.map_or(Cow::Borrowed(quota), Cow::Owned)
    }

    fn is_still(&self, share: &PlannedShare, quota: &Quota) -> bool {
        let plan = share.plan();
        self.time().bounds().is_some_and(|bounds| {
            bounds.are_within(plan.starts, plan.ends) && is_one_window(bounds, quota)
        })
    }
}

/// The share of the plan that is surely in force.
fn share_at<'a>(plans: &'a KnownPlans, bounds: Bounds, quota: &Quota) -> Option<&'a PlannedShare> {
    plans.at(bounds).filter(|_| is_one_window(bounds, quota))
}

/// Whether all of those times are in one window of a quota, if it counts by windows.
fn is_one_window(bounds: Bounds, quota: &Quota) -> bool {
    !is_aligned(quota) || bounds.are_in_one(quota.window())
}

/// A decision on a part of a limit, as one on the whole.
pub(crate) fn whole(quota: &Quota, cost: u64, decision: Decision) -> Decision {
    let capacity = capacity(quota);
    let decision = soften(quota, cost, decision, quota.window());
    Decision {
        limit: capacity,
        ..decision
    }
}

/// A request that costs more than a part of a limit is denied, but not for ever.
pub(super) fn soften(quota: &Quota, cost: u64, decision: Decision, after: Duration) -> Decision {
    let outcome = match decision.outcome {
        Outcome::Denied {
            retry: Retry::Never,
        } if cost <= most_at_once(quota) => Outcome::Denied {
            retry: Retry::After(after),
        },
        outcome => outcome,
    };
    Decision {
        outcome,
        ..decision
    }
}
