//! What nodes ask of the common store for a split limit: the reserve that its plan leaves there.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{Decision, Outcome, Quota, Retry, Time};
use tidegate_store::{Charge, Clock, Consistency, LimitId, StoreError};

use super::cut::divisible;
use super::portion::least_reserve;
use super::{Split, whole};
use crate::refusals::Trust;

/// The quotas with which the common store is asked, one for each charge; `None` for the charge's own.
#[derive(Debug)]
pub(crate) struct Reserves(SmallVec<[Option<Arc<Quota>>; 8]>);

/// How long a refusal is believed at the longest: somebody may have given back what he took.
const LONGEST: Duration = Duration::from_secs(1);

/// How long the reserve is left alone at the least by who has a share to live on. A bucket of the reserve
/// has another token every moment, and all nodes would run for each.
const PATIENCE: Duration = Duration::from_millis(100);

// === impl Split ===

impl<M: Clock> Split<M> {
    /// The quotas with which the common store is to be asked.
    pub(crate) fn reserves(&self, charges: &[Charge<'_>]) -> Reserves {
        let reserve = |charge: &Charge<'_>| match charge.consistency {
            Consistency::Split => self.reserve(charge.key.limit, charge.quota),
            _ => None,
        };
        Reserves(charges.iter().map(reserve).collect())
    }

    /// Makes of what the store said at `now` decisions on whole limits.
    ///
    /// # Errors
    ///
    /// If a plan had ended when the store got to it, and the next leaves less in the store: what was
    /// admitted must not count.
    pub(crate) fn settle(
        &self,
        charges: &[Charge<'_>],
        reserves: &Reserves,
        now: Time,
        decisions: &mut [Decision],
    ) -> Result<(), StoreError> {
        let asked = charges.iter().zip(&reserves.0).zip(decisions);
        for ((charge, reserve), decision) in asked {
            let Some(reserve) = reserve else { continue };
            if self.reserve_at(charge, now).limit() < reserve.limit() {
                return Err(StoreError::Unavailable {
                    reason: "the shares of a limit changed meanwhile".into(),
                });
            }
            *decision = whole(charge.quota, charge.cost, *decision);
            let trust = self.trust(charge);
            self.refusals.remember(charge, *decision, now, trust);
        }
        Ok(())
    }

    /// What the node says by itself when the store cannot be asked: that its own share is used up. `None`
    /// if it does not know that of each limit.
    pub(crate) fn refusals(&self, charges: &[Charge<'_>]) -> Option<SmallVec<[Decision; 8]>> {
        charges.iter().map(|charge| self.refusal(charge)).collect()
    }

    /// For how long to leave the reserve alone after a refusal.
    fn trust(&self, charge: &Charge<'_>) -> Trust {
        let limits = self.limits.load();
        let portion = limits.get(&charge.key.limit);
        let has_share = portion
            .zip(self.time().bounds())
            .is_some_and(|(portion, bounds)| portion.held().has_share(bounds));
        let least = if has_share { PATIENCE } else { Duration::ZERO };
        Trust {
            least,
            most: LONGEST,
        }
    }

    fn refusal(&self, charge: &Charge<'_>) -> Option<Decision> {
        if charge.consistency != Consistency::Split {
            return None;
        }
        let share = self.peek_share(charge.key, charge.quota, charge.headroom)?;
        if share.remaining >= charge.cost {
            return None;
        }
        let outcome = Outcome::Denied {
            retry: Retry::After(share.reset_after),
        };
        Some(Decision { outcome, ..share })
    }

    /// What the common store admits of a limit now, whatever the nodes have; `None` for one that is not
    /// split.
    pub(crate) fn reserve(&self, limit: LimitId, quota: &Quota) -> Option<Arc<Quota>> {
        let limits = self.limits.load();
        match (limits.get(&limit), self.time().bounds()) {
            (Some(portion), Some(bounds)) => Some(portion.held().reserve(bounds, quota)),
            _ if divisible(quota).is_ok() => Some(least_reserve(quota)),
            _ => None,
        }
    }

    fn reserve_at(&self, charge: &Charge<'_>, now: Time) -> Arc<Quota> {
        let limits = self.limits.load();
        match limits.get(&charge.key.limit) {
            Some(portion) => portion.held().reserve_at(now, charge.quota),
            None => least_reserve(charge.quota),
        }
    }
}

// === impl Reserves ===

impl Reserves {
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
