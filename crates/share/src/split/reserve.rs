//! Requests to the common store for a split limit: for the reserve that its plan leaves there.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{Decision, Meter, Quota, Time};
use tidegate_store::{Charge, Clock, Consistency, LimitId};

use super::cut::{divisible, memory};
use super::limit::least_reserve;
use super::store_time::Bounds;
use super::{Split, whole};
use crate::edge;
use crate::replies::Lifetime;

/// The quotas for a call to the common store, one for each charge; `None` for the charge's own.
#[derive(Debug)]
pub(crate) struct Reserves(SmallVec<[Option<Arc<Quota>>; 8]>);

/// The time within which nearly all calls have been decided in the store. A call that is sent less than this
/// before the end of an epoch may ask only for what the next epoch leaves there, too.
const CALL: Duration = Duration::from_millis(10);

// === impl Split ===

impl<M: Clock> Split<M> {
    /// The quotas for a call to the common store.
    pub(crate) fn reserves(&self, charges: &[Charge<'_>]) -> Reserves {
        let reserve = |charge: &Charge<'_>| match charge.consistency {
            Consistency::Split => self.reserve(charge.key.limit, charge.quota),
            _ => None,
        };
        Reserves(charges.iter().map(reserve).collect())
    }

    /// Whether a plan had ended when the store decided at `now`, and the next leaves less in the store: such an
    /// admission must not count.
    pub(crate) fn is_outdated(
        &self,
        charges: &[Charge<'_>],
        reserves: &Reserves,
        now: Time,
        decisions: &[Decision],
    ) -> bool {
        let asked = charges.iter().zip(&reserves.0).zip(decisions);
        asked
            .filter(|(_, decision)| decision.is_allowed())
            .filter_map(|((charge, reserve), _)| Some((charge, reserve.as_ref()?)))
            .any(|(charge, reserve)| self.reserve_at(charge, now).limit() < reserve.limit())
    }

    /// Whether what the store charged at `then` can be refunded there: not after an edge, where it would be
    /// taken from what others were charged.
    pub(crate) fn is_refundable(&self, quota: &Quota, then: Time) -> bool {
        self.time().bounds().is_some_and(|bounds| {
            let arrived = bounds.latest.plus(self.config.store_timeout);
            !edge::is_between(quota, then, arrived)
        })
    }

    /// Turns the store's decisions into decisions on whole limits, and remembers them.
    pub(crate) fn settle(
        &self,
        charges: &[Charge<'_>],
        reserves: &Reserves,
        decisions: &mut [Decision],
    ) {
        let own_now = self.own_now();
        let asked = charges.iter().zip(&reserves.0).zip(decisions);
        for ((charge, reserve), decision) in asked {
            if charge.consistency != Consistency::Split {
                continue;
            }
            if reserve.is_some() {
                *decision = whole(charge.quota, charge.cost, *decision);
            }
            let lifetime = self.lifetime(charge);
            self.replies.remember(charge, *decision, own_now, lifetime);
        }
    }

    /// The time for which a denial is remembered. A reserve that refills gradually has another permit every moment: a
    /// node that lives on its share does not ask for each. In a bucket they gather meanwhile as far as they fit. In a
    /// sliding window they do not: one that is used later comes back later.
    fn lifetime(&self, charge: &Charge<'_>) -> Lifetime {
        let most = self.remember_denials;
        let shortest = match charge.quota.meter() {
            Meter::TokenBucket(_) => memory(charge.quota) / 2,
            _ => charge.quota.window() / 64,
        };
        let least = if self.lives_on_share(charge) {
            shortest.min(most)
        } else {
            Duration::ZERO
        };
        Lifetime { least, most }
    }

    fn lives_on_share(&self, charge: &Charge<'_>) -> bool {
        let limits = self.limits.load();
        let limit = limits.get(&charge.key.limit).zip(self.time().bounds());
        limit.is_some_and(|(limit, bounds)| {
            let plans = limit.plans();
            let share = plans.at(bounds);
            share.is_some_and(|share| share.plan().share >= share.plan().reserve)
        })
    }

    /// The part of a limit that the common store admits now; `None` for one that is not split.
    pub(crate) fn reserve(&self, limit: LimitId, quota: &Quota) -> Option<Arc<Quota>> {
        let limits = self.limits.load();
        match (limits.get(&limit), self.time().bounds()) {
            (Some(limit), Some(bounds)) => {
                let bounds = Bounds {
                    latest: bounds.latest.plus(CALL),
                    ..bounds
                };
                Some(limit.plans().reserve(bounds, quota))
            }
            _ if divisible(quota).is_ok() => Some(least_reserve(quota)),
            _ => None,
        }
    }

    fn reserve_at(&self, charge: &Charge<'_>, now: Time) -> Arc<Quota> {
        let limits = self.limits.load();
        match limits.get(&charge.key.limit) {
            Some(limit) => limit.plans().reserve_at(now, charge.quota),
            None => least_reserve(charge.quota),
        }
    }
}

// === impl Reserves ===

impl Reserves {
    pub(super) fn new(reserves: impl Iterator<Item = Option<Arc<Quota>>>) -> Self {
        Self(reserves.collect())
    }

    /// The charges with those quotas.
    pub(crate) fn apply<'a>(&'a self, charges: &[Charge<'a>]) -> SmallVec<[Charge<'a>; 8]> {
        let asked = charges.iter().zip(&self.0);
        asked
            .map(|(charge, reserve)| Charge {
                quota: reserve.as_deref().unwrap_or(charge.quota),
                ..*charge
            })
            .collect()
    }
}
