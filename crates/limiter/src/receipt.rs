//! The receipt of a charge, for a refund that comes when the response is known.
//!
//! A receipt is made after a verdict, for those limits only that may be refunded, so that every other
//! request pays nothing for it.

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_algorithms::{ChargeStamp, RefundTo};
use tidegate_rules::{Limit, RuleId, RuleSet, Terms};
use tidegate_store::{Admission, Charging, Consistency, CounterKey, LimitId, Store, StoreError};

use crate::address::Addresses;
use crate::bill::{Bill, Charges, Intent, Values};
use crate::matched::{Matched, Source};
use crate::request::Descriptor;
use crate::verdict::{Origin, Verdict};
use crate::{Limiter, LimiterError};

/// The charges of one request, owned: it borrows nothing of the request and may outlive the rules in
/// force.
#[derive(Debug)]
pub struct ChargeReceipt {
    /// The rules that the request was charged by: a refund goes by their numbers.
    rules: Arc<RuleSet>,
    charges: Vec<LimitCharge>,
    decider: Decider,
}

/// The charge of one limit.
#[derive(Debug)]
struct LimitCharge {
    rule: RuleId,
    /// The place of the limit in its rule.
    limit: u16,
    values: Box<[Box<str>]>,
    cost: u64,
    stamp: ChargeStamp,
    consistency: Consistency,
}

/// The part of the store that made the charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decider {
    Store,
    /// This node alone, while the store was unavailable.
    Node,
}

// === impl ChargeReceipt ===

impl ChargeReceipt {
    /// The limits that it can refund, in the order of the verdict.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.charges.iter().map(|charge| charge.limit(&self.rules))
    }

    /// Keeps the charges of the limits that are `wanted`; the others stay charged.
    pub fn retain(&mut self, mut wanted: impl FnMut(&Limit) -> bool) {
        let rules = &self.rules;
        self.charges.retain(|charge| wanted(charge.limit(rules)));
    }

    /// Whether there is nothing left to refund.
    pub fn is_empty(&self) -> bool {
        self.charges.is_empty()
    }
}

// === impl LimitCharge ===

impl LimitCharge {
    fn limit<'a>(&self, rules: &'a RuleSet) -> &'a Limit {
        &rules.rule(self.rule).limits()[usize::from(self.limit)]
    }
}

// === impl Limiter ===

impl<S> Limiter<S> {
    /// Returns the receipt of what [`check`](Self::check) charged for its `verdict`, with the same domain,
    /// descriptors and hits, of the limits that are `wanted`; `None` if it charged none of them.
    ///
    /// Limits that came with the request are not in it. A verdict for which the store failed has a receipt
    /// of what this node charged alone; what `on_failure` allowed was charged nowhere.
    pub fn receipt(
        &self,
        verdict: &Verdict,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: u64,
        wanted: impl Fn(&Limit) -> bool,
    ) -> Option<ChargeReceipt> {
        let mut origins = verdict.limits().map(|status| status.origin());
        let is_any =
            origins.any(|origin| matches!(origin, Origin::Rule { limit, .. } if wanted(limit)));
        if !is_any {
            return None;
        }
        let intent = Intent::Charge(hits.max(1));
        let charges = self.charged(verdict, domain, descriptors, intent, &wanted);
        let charges = charges.ok().filter(|charges| !charges.is_empty())?;
        Some(ChargeReceipt {
            rules: Arc::clone(verdict.rules()),
            charges,
            decider: if verdict.failure().is_some() {
                Decider::Node
            } else {
                Decider::Store
            },
        })
    }

    /// The charges of the wanted limits, found as the verdict found them.
    fn charged(
        &self,
        verdict: &Verdict,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        intent: Intent,
        wanted: &impl Fn(&Limit) -> bool,
    ) -> Result<Vec<LimitCharge>, LimiterError> {
        let (Some(found), Some(receipt)) = (verdict.rules.domain(domain), verdict.receipt()) else {
            return Ok(Vec::new());
        };
        let is_charged = match self.charging(found) {
            Charging::AllOrNone => verdict.admission() == Admission::Admitted,
            Charging::EveryMatch => verdict.ban().is_none(),
        };
        let mut matched = Matched::default();
        matched.find(found, descriptors, &verdict.overrides)?;
        matched.adopt(&verdict.applied);
        let bill = Bill {
            domain,
            descriptors,
            intent,
            headroom: self.headroom(),
            consistency: self.config.consistency,
            matches: matched.as_slice(),
        };
        let mut addresses = Addresses::new();
        let (mut values, mut charges) = (Values::new(), Charges::new());
        bill.add_addresses(&mut addresses);
        bill.add_values(&addresses, &mut values);
        bill.add_charges(&values, &mut charges);
        let decided = bill.charged().zip(&charges).zip(&verdict.decisions);
        let receipts = decided
            .enumerate()
            .filter_map(|(index, ((charged, charge), decision))| {
                charged.rule.filter(|(_, limit)| wanted(limit))?;
                let Source::Rule { rule, limit } = charged.applied.source else {
                    return None;
                };
                // A postpaid limit is charged even if it or another one denies.
                let is_due = charge.quota.is_postpaid() && verdict.ban().is_none();
                let is_charged = is_due || (is_charged && decision.is_allowed());
                (is_charged && charge.cost > 0).then(|| LimitCharge {
                    rule,
                    limit,
                    values: charge
                        .key
                        .values
                        .iter()
                        .map(|&value| value.into())
                        .collect(),
                    cost: charge.cost,
                    stamp: receipt.stamp(index, decision),
                    consistency: charge.consistency,
                })
            });
        Ok(receipts.collect())
    }
}

impl<S: Store> Limiter<S> {
    /// Refunds the charges of a request: each to the window that it was charged to, never to a later one.
    /// A refund that comes too late changes nothing; see `docs/algorithms.md` for each algorithm.
    ///
    /// It goes by the rules of the charge. A limit that has changed since is refunded by its old numbers, and
    /// the counter of one that is gone just expires.
    ///
    /// # Errors
    ///
    /// The first failure of the store. The other charges are refunded all the same; those that failed stay
    /// charged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the charges that it did not come to.
    pub async fn refund(&self, receipt: ChargeReceipt) -> Result<(), StoreError> {
        let mut result = Ok(());
        for charge in &receipt.charges {
            let limit = charge.limit(&receipt.rules);
            let Terms::Quota(quota) = limit.terms() else {
                continue;
            };
            let values: SmallVec<[&str; 4]> = charge.values.iter().map(|value| &**value).collect();
            let key = CounterKey {
                limit: LimitId(limit.id()),
                values: &values,
            };
            let LimitCharge {
                cost,
                stamp,
                consistency,
                ..
            } = *charge;
            let refunded = match receipt.decider {
                Decider::Store => {
                    let to = RefundTo::Charge(stamp);
                    self.store().refund(key, quota, cost, to, consistency).await
                }
                Decider::Node => self
                    .store()
                    .refund_alone(key, quota, cost, stamp, consistency),
            };
            result = result.and(refunded);
        }
        result
    }
}
