//! What requests do to a node's shares.

use std::borrow::Cow;

use tidegate_algorithms::{Decision, Headroom, Outcome, Quota, Retry, Time};
use tidegate_store::{Charge, Charging, Clock, CounterKey, LimitId, StoreError};

use super::Split;
use super::counters::is_aligned;
use super::portion::{Held, Portion, Share};
use super::store_time::Bounds;
use crate::capacity::capacity;
use crate::edge;
use crate::memory::{FromMemory, Took};

// === impl Split ===

impl<M: Clock> FromMemory for Split<M> {
    /// `None` if the store is to be asked for the [reserve](super::reserve::Reserves).
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        let limits = self.limits.load();
        let Some(portion) = limits.get(&charge.key.limit) else {
            self.meet(charge);
            return Ok(None);
        };
        portion.ask(charge.cost);
        let admitted = self.take_share(portion, charge, charging)?;
        Ok(admitted.or_else(|| self.recall(charge).map(Took::from)))
    }

    /// What was taken before the edge of an aligned window is not put back after it, where others would
    /// spend it.
    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        let (Some(charged), Some(bounds)) = (took.charged, self.time().bounds()) else {
            return;
        };
        if is_aligned(charge.quota) && edge::is_between(charge.quota, charged, bounds.latest) {
            return;
        }
        let quota = self.quota_taken_from(charge, charged, bounds);
        // Cannot fail: the store could tell the counter's window from others when it was charged.
        let _ = self.counters.refund(charge.key, &quota, charge.cost);
    }

    fn correct(&self, charge: &Charge<'_>, decision: &mut Decision) {
        if let Some(untouched) = self.peek_share(charge.key, charge.quota, charge.headroom) {
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }
}

impl<M: Clock> Split<M> {
    /// What the node's own share admits; `None` if it does not, or the node has none now.
    fn take_share(
        &self,
        portion: &Portion,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Option<Took>, StoreError> {
        let held = portion.held();
        let bounds = self.time().bounds();
        let share = bounds.and_then(|bounds| share_at(&held, bounds, charge.quota));
        let (Some(bounds), Some(share)) = (bounds, share) else {
            return Ok(None);
        };
        if share.is_for_others(charge.quota) {
            portion.renumber(charge.quota);
        }
        let cuts = share.cuts(charge.quota);
        let Some(own) = &cuts.own else {
            return Ok(None);
        };
        let decision = self.counters.charge(charge, own, charging)?;
        if !decision.is_allowed() {
            return Ok(None);
        }
        // The thread may have slept since it looked at the time. Then what it took is lost.
        let is_still = self.is_still(share, charge.quota);
        Ok(is_still.then(|| Took {
            decision: whole(charge.quota, charge.cost, decision),
            charged: Some(bounds.earliest),
        }))
    }

    /// The refusal of the store that still stands, if there is one.
    fn recall(&self, charge: &Charge<'_>) -> Option<Decision> {
        self.refusals.recall(charge, self.time().bounds()?)
    }

    /// What the node's own share of a counter says; `None` if it has none.
    pub(crate) fn peek_share(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
    ) -> Option<Decision> {
        let own = self.own_quota(key.limit, quota)?;
        let decision = self.counters.peek(key, &own, headroom).ok()?;
        Some(whole(quota, 0, decision))
    }

    /// Gives back to the node's own share of a counter; says whether it has one.
    pub(crate) fn refund_share(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) -> bool {
        self.refusals.forget(key);
        let own = self.own_quota(key.limit, quota);
        own.is_some_and(|own| self.counters.refund(key, &own, cost).is_ok())
    }

    /// Forgets what the node itself has counted.
    pub(crate) fn reset_share(&self, key: CounterKey<'_>, quota: &Quota) -> bool {
        self.refusals.forget(key);
        self.counters.reset(key, quota).unwrap_or(false)
    }

    /// What the node admits by itself of a limit now; `None` if nothing.
    fn own_quota(&self, limit: LimitId, quota: &Quota) -> Option<Quota> {
        let limits = self.limits.load();
        let held = limits.get(&limit)?.held();
        let share = share_at(&held, self.time().bounds()?, quota)?;
        share.cuts(quota).own.clone()
    }

    /// The quota that a charge was taken from, or one that gives back less. A bucket fills the faster the more
    /// it has, and so gives back the less for a request: where the plan is another by now, and it may have had
    /// more before, the whole quota stands in.
    fn quota_taken_from<'a>(
        &self,
        charge: &Charge<'a>,
        charged: Time,
        bounds: Bounds,
    ) -> Cow<'a, Quota> {
        let limits = self.limits.load();
        let held = limits.get(&charge.key.limit).map(|portion| portion.held());
        let share = held.as_ref().and_then(|held| held.at(bounds));
        let own = share
            .filter(|share| share.plan().starts <= charged)
            .and_then(|share| share.cuts(charge.quota).own.clone());
        own.map_or(Cow::Borrowed(charge.quota), Cow::Owned)
    }

    fn is_still(&self, share: &Share, quota: &Quota) -> bool {
        let plan = share.plan();
        self.time().bounds().is_some_and(|bounds| {
            bounds.are_within(plan.starts, plan.ends) && is_one_window(bounds, quota)
        })
    }
}

/// The share of the plan that it surely is the time of.
fn share_at<'a>(held: &'a Held, bounds: Bounds, quota: &Quota) -> Option<&'a Share> {
    held.at(bounds).filter(|_| is_one_window(bounds, quota))
}

/// Whether all of those times count for the same window of a quota, if that matters.
fn is_one_window(bounds: Bounds, quota: &Quota) -> bool {
    !is_aligned(quota) || bounds.are_in_one(quota.window())
}

/// A decision on a part of a limit, as one on the whole.
pub(crate) fn whole(quota: &Quota, cost: u64, decision: Decision) -> Decision {
    let capacity = capacity(quota);
    let most = capacity.saturating_add(quota.most_extra());
    let outcome = match decision.outcome {
        // It does not fit this part, and may fit what the next epoch brings.
        Outcome::Denied {
            retry: Retry::Never,
        } if cost <= most => Outcome::Denied {
            retry: Retry::After(quota.window()),
        },
        outcome => outcome,
    };
    Decision {
        outcome,
        limit: capacity,
        ..decision
    }
}
