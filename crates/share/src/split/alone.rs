//! Split limits while the common store is unavailable.
//!
//! ```text
//! plan in force ──► the share; then, if the reserve is at least half of the limit or the node has no share,
//!      │            half of an even part of the reserve, less what the store admitted here of it
//!      │ its epoch ends, and no other plan is known
//!      ▼
//! no plan ──► an even part of the limit but for the least reserve, less what the share and the reserve
//!      │      admitted here
//!      │ heartbeats are answered again
//!      ▼
//! plan in force, with even shares in the epoch in which nodes were alone
//! ```
//!
//! The share and the node alone use the same counters, so that nothing that still counts is forgotten at a
//! change. Admissions from the reserve are noted by [`Noted`](crate::noted::Noted). Beside them, under a key of
//! its own, is noted what the node admits alone and, of a caller who asks it then, what the share had admitted: that is
//! what a process saves for the next one.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Outcome, Quota, QuotaSpec, RefundTo, Retry, Time};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode,
    Plan, StoreError,
};

use super::Split;
use super::cut::{divisible, parts};
use super::limit::least_reserve;
use super::reserve::Reserves;
use super::spend::soften;
use crate::capacity::capacity;
use crate::memory::{FromMemory, Took};
use crate::reckoning::StoreClock;
use crate::standby::Standby;

/// A request that costs more than the node's part may try again after this time: the whole limit may be
/// there by then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Sets the limit of a key apart under which the admissions of a node alone are noted.
const ALONE: u128 = 0x616c_6f6e_6520_6672_6f6d_2074_6865_206d;

/// Decides on split limits while the common store is unavailable.
pub(crate) struct SplitAlone<'a, M> {
    split: &'a Split<M>,
    standby: &'a Standby,
    notes: &'a EmbeddedStore<StoreClock<Arc<M>>>,
}

// === impl SplitAlone ===

impl<'a, M: Clock> SplitAlone<'a, M> {
    pub(crate) const fn new(
        split: &'a Split<M>,
        standby: &'a Standby,
        notes: &'a EmbeddedStore<StoreClock<Arc<M>>>,
    ) -> Self {
        Self {
            split,
            standby,
            notes,
        }
    }

    fn take_part(&self, charge: &Charge<'_>, charging: Charging) -> Result<Decision, StoreError> {
        let part = even_part(charge.quota, self.standby.divided_by());
        let reserve = self.split.last_reserve(charge);
        let noted = self.standby.noted(self.notes, charge, &reserve);
        let Some(left) = less(&part, noted) else {
            return Ok(Decision {
                outcome: Outcome::Denied {
                    retry: Retry::After(RETRY_AFTER.min(charge.quota.window())),
                },
                limit: capacity(&part),
                remaining: 0,
                reset_after: charge.quota.window(),
            });
        };
        let decision = self.split.counters.charge(charge, &left, charging)?;
        if decision.is_allowed() && charge.cost > 0 {
            self.standby.note(self.notes, &set_apart(charge));
        }
        let decision = soften(charge.quota, charge.cost, decision, RETRY_AFTER);
        Ok(Decision {
            limit: capacity(&part),
            ..decision
        })
    }

    /// Notes all that the share has admitted, also while the store was there.
    fn note_share(&self, charge: &Charge<'_>) {
        let apart = set_apart(charge);
        let used = self.split.used_of_share(charge);
        let noted = self.standby.noted(self.notes, &apart, charge.quota);
        if let Some(cost @ 1..) = used.checked_sub(noted) {
            self.standby.note(self.notes, &Charge { cost, ..apart });
        }
    }

    /// Decides by the notes alone.
    fn take_noted(&self, charge: &Charge<'_>, charging: Charging) -> Result<Decision, StoreError> {
        let noted = Charge {
            mode: Mode::Enforce,
            ..set_apart(charge)
        };
        let mut decisions = Decisions::new();
        self.standby
            .charge(self.notes, &[noted], charging, &mut decisions)?;
        Ok(decisions[0])
    }
}

impl<M: Clock> FromMemory for SplitAlone<'_, M> {
    /// `None` if the reserve of a plan, or a limit that is not split, is to be decided by the standby.
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        if let Some(took) = self.split.take(charge, charging)? {
            if took.decision.is_allowed() && charge.cost > 0 {
                self.note_share(charge);
            }
            return Ok(Some(took));
        }
        if let Some(denial) = self.split.denial_above_share(charge) {
            return Ok(Some(Took::from(denial)));
        }
        if divisible(charge.quota).is_err() || self.split.has_plan(charge) {
            return Ok(None);
        }
        let (decision, charged) = match self.split.time().bounds() {
            Some(bounds) => (self.take_part(charge, charging)?, bounds.earliest),
            // A node that never had a reply does not know the store's windows, and has no shares.
            None => (self.take_noted(charge, charging)?, Time::ZERO),
        };
        let charged = decision.is_allowed().then_some(charged);
        Ok(Some(Took::new(decision, charged)))
    }

    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        self.split.put_back(charge, took);
        let Charge {
            key, quota, cost, ..
        } = set_apart(charge);
        self.standby
            .refund(self.notes, key, quota, cost, RefundTo::Current);
    }

    fn correct(&self, charge: &Charge<'_>, took: &Took, decision: &mut Decision) {
        self.split.correct(charge, took, decision);
    }

    fn note_demand(&self, charges: &[Charge<'_>], decisions: &[Decision], is_charged: bool) {
        self.split.note_demand(charges, decisions, is_charged);
    }
}

// === impl Split ===

impl<M: Clock> Split<M> {
    /// The reserves of plans that may be in force. Of a reserve beside shares, a node alone uses half of its
    /// part: others may have had more than theirs.
    pub(crate) fn reserves_alone(&self, charges: &[Charge<'_>]) -> Reserves {
        let reserve = |charge: &Charge<'_>| {
            if charge.consistency != Consistency::Split || !self.has_plan(charge) {
                return None;
            }
            let reserve = self.reserve(charge.key.limit, charge.quota)?;
            let half = reserve.part(1, 2, 1).map(Arc::new);
            let is_whole = *reserve == *charge.quota;
            half.filter(|_| !is_whole).or(Some(reserve))
        };
        Reserves::new(charges.iter().map(reserve))
    }

    /// The denial of a request that the share does not admit, while the limit is in use: the reserve, which
    /// other nodes may still reach, is then no node's own.
    fn denial_above_share(&self, charge: &Charge<'_>) -> Option<Decision> {
        let bounds = self.time().bounds()?;
        let limits = self.limits.load();
        let plans = limits.get(&charge.key.limit)?.plans();
        let plan = plans.at(bounds)?.plan();
        if plan.share == 0 || plan.reserve.saturating_mul(2) >= plan.parts {
            return None;
        }
        let share = self.peek_share(charge)?;
        let outcome = Outcome::Denied {
            retry: Retry::After(share.reset_after),
        };
        Some(Decision { outcome, ..share })
    }

    /// Refunds what the node admitted alone, as one of so many.
    pub(crate) fn refund_alone(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        divided_by: u32,
    ) {
        if let Some(to) = self.own_refund(quota, to) {
            // Cannot fail but for a window that was never charged.
            let part = even_part(quota, divided_by);
            let _ = self.counters.refund(key, &part, cost, to);
        }
    }

    /// The permits of the node's share that are in use.
    fn used_of_share(&self, charge: &Charge<'_>) -> u64 {
        let own = self.own_quota(charge.key.limit, charge.quota);
        let share = own.and_then(|own| {
            let look = Charge {
                quota: &own,
                ..*charge
            };
            self.counters.peek(&look).ok()
        });
        share.map_or(0, |share| share.limit.saturating_sub(share.remaining))
    }

    /// Whether a plan may be in force.
    fn has_plan(&self, charge: &Charge<'_>) -> bool {
        let limits = self.limits.load();
        let limit = limits.get(&charge.key.limit).zip(self.time().bounds());
        limit.is_some_and(|(limit, bounds)| limit.plans().may_apply(bounds))
    }

    /// The reserve of the last plan that is known.
    fn last_reserve(&self, charge: &Charge<'_>) -> Arc<Quota> {
        let limits = self.limits.load();
        match limits.get(&charge.key.limit) {
            Some(limit) => limit.plans().last_reserve(charge.quota),
            None => least_reserve(charge.quota),
        }
    }
}

/// The same charge of the notes that are kept for the next process.
fn set_apart<'a>(charge: &Charge<'a>) -> Charge<'a> {
    let key = CounterKey {
        limit: LimitId(charge.key.limit.0 ^ ALONE),
        ..charge.key
    };
    Charge { key, ..*charge }
}

/// One of so many even parts of a quota, but for the least reserve, which the store may admit as soon as it is
/// back; at least 1.
fn even_part(quota: &Quota, divided_by: u32) -> Quota {
    let parts = parts(quota);
    let pool = parts.saturating_sub(Plan::least_reserve(parts));
    let among = u64::from(parts) * u64::from(divided_by);
    quota
        .part(u64::from(pool), among, 1)
        .unwrap_or_else(|| quota.clone())
}

/// A quota that admits less at any moment by that many; `None` if it admits nothing.
fn less(quota: &Quota, by: u64) -> Option<Quota> {
    let limit = quota.limit();
    let left = capacity(quota).checked_sub(by).filter(|left| *left > 0)?;
    let (limit, algorithm) = match quota.algorithm() {
        // Its rate stays: what is missing from it refills at that rate.
        Algorithm::TokenBucket { refill, .. } => {
            let burst = Some(left);
            (limit, Algorithm::TokenBucket { burst, refill })
        }
        algorithm => (left, algorithm),
    };
    let spec = QuotaSpec {
        limit,
        window: quota.window(),
        algorithm,
        allowance: quota.allowance(),
    };
    Quota::new(&spec).ok()
}
