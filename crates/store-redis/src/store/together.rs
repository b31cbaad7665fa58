//! Several limits of one request, charged together.
//!
//! One script charges all of them, but in a Cluster only those of one slot. There each slot is charged at the
//! same moment as the others, and what was charged is given back if another slot refuses.

use futures_util::future::join_all;
use smallvec::SmallVec;
use tidegate_algorithms::{ChargeStamp, Meter, RefundTo, Time};
use tidegate_store::{Admission, Charge, Charging, DecisionSource, Decisions, Receipt, StoreError};
use tokio::runtime::Handle;

use super::RedisStore;
use super::batch::{Batch, Heard};
use super::owned::OwnedCharge;
use super::single::CounterRefund;
use crate::client::{no_runtime, slot_of};
use crate::counter::PeriodAfter;

/// Most requests reach one slot, for limits of one caller lie together.
type Batches<'a> = SmallVec<[Batch<'a>; 1]>;

// === impl RedisStore ===

impl RedisStore {
    pub(super) async fn charge_many(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let batches = self.batches(charges, charging);
        match batches.as_slice() {
            [] => {
                let now = self.ask_time().await?;
                let admission = Admission::Admitted;
                Ok(Receipt::new(now, admission).decided_in(DecisionSource::Common))
            }
            [batch] => {
                let reply = self.run(batch, charging).await?;
                let mut heard = self.hear(batch, charging, &reply)?;
                let admission = Admission::of(charges, &heard.decisions);
                if (charging, admission) == (Charging::AllOrNone, Admission::Refused) {
                    heard.uncharge(batch);
                }
                *decisions = heard.decisions;
                Ok(Receipt::new(heard.now, admission).decided_in(DecisionSource::Common))
            }
            _ => {
                self.charge_slots_to_the_end(charges, charging, decisions)
                    .await
            }
        }
    }

    fn batches<'a>(&self, charges: &[Charge<'a>], charging: Charging) -> Batches<'a> {
        let mut batches = Batches::new();
        let is_cluster = self.client.is_cluster();
        for (place, charge) in charges.iter().enumerate() {
            let key = self.key(charge.key, charge.quota);
            let slot = if is_cluster { slot_of(key.as_ref()) } else { 0 };
            let known = batches.iter().position(|batch| batch.slot == slot);
            let batch = known.unwrap_or_else(|| {
                batches.push(Batch::new(slot));
                batches.len() - 1
            });
            batches[batch].add(place, charge, key);
        }
        // One slot cannot know whether a quota limit of another admits.
        let is_alone = batches.len() == 1;
        for batch in &mut batches {
            batch.finish(charging, is_alone);
        }
        batches
    }

    /// Charges several slots, and gives back what is to be given back, even if the caller is gone before:
    /// who is refused and hangs up in time would else leave a limit that others share charged.
    async fn charge_slots_to_the_end(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let store = self.clone();
        let owned: Vec<_> = charges.iter().map(OwnedCharge::of).collect();
        let runtime = Handle::try_current().map_err(|_| no_runtime())?;
        let charged = runtime.spawn(async move {
            let values: Vec<_> = owned.iter().map(OwnedCharge::values).collect();
            let charges = owned.iter().zip(&values);
            let charges: Vec<_> = charges
                .map(|(charge, values)| charge.charge(values))
                .collect();
            let batches = store.batches(&charges, charging);
            let mut decisions = Decisions::new();
            let receipt = store
                .charge_slots(&charges, &batches, charging, &mut decisions)
                .await?;
            Ok::<_, StoreError>((receipt, decisions))
        });
        // It ends early only with its runtime, and then nobody hears this.
        let (receipt, decided) = charged.await.map_err(|ended| StoreError::Unavailable {
            reason: ended.to_string().into(),
        })??;
        *decisions = decided;
        Ok(receipt)
    }

    async fn charge_slots(
        &self,
        charges: &[Charge<'_>],
        batches: &[Batch<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let asked = batches.iter().map(|batch| async move {
            let reply = self.run(batch, charging).await?;
            self.hear(batch, charging, &reply)
        });
        let mut answers = join_all(asked).await;
        if let Some(Err(error)) = answers.iter().find(|answer| answer.is_err()) {
            let error = error.clone();
            self.take_back(batches, &answers, charging).await;
            return Err(error);
        }
        let mut all: SmallVec<[_; 8]> = charges.iter().map(|_| None).collect();
        let (mut now, mut earliest) = (Time::ZERO, Time::MAX);
        for (batch, heard) in batches.iter().zip(answers.iter().flatten()) {
            now = now.max(heard.now);
            earliest = earliest.min(heard.now);
            for (place, decision) in batch.places().zip(&heard.decisions) {
                all[place] = Some(*decision);
            }
        }
        decisions.extend(all.into_iter().flatten());
        let admission = Admission::of(charges, decisions);
        if (charging, admission) == (Charging::AllOrNone, Admission::Refused) {
            self.take_back(batches, &answers, charging).await;
            for (batch, heard) in batches.iter().zip(answers.iter_mut().flatten()) {
                heard.uncharge(batch);
                for (place, decision) in batch.places().zip(&heard.decisions) {
                    decisions[place] = *decision;
                }
            }
        }
        let receipt = Receipt::new(now, admission).charged_from(earliest);
        Ok(receipt.decided_in(DecisionSource::Common))
    }

    /// Refunds what slots have charged of a request that is denied, or not decided. What cannot be refunded
    /// now stays charged: against the caller, never in anybody's favour.
    async fn take_back(
        &self,
        batches: &[Batch<'_>],
        answers: &[Result<Heard, StoreError>],
        charging: Charging,
    ) {
        let mut refunds = Vec::new();
        for (batch, answer) in batches.iter().zip(answers) {
            let Ok(heard) = answer else { continue };
            for (charge, period) in heard.charged(batch, charging) {
                let Charge {
                    key,
                    quota,
                    cost,
                    consistency,
                    ..
                } = *charge;
                let stamp = ChargeStamp {
                    at: heard.now,
                    resets_at: heard.now,
                    is_shared: false,
                };
                let refund = CounterRefund {
                    cost,
                    to: match quota.meter() {
                        // At once, and so wholly.
                        Meter::TokenBucket(_) | Meter::LeakyBucket(_) => RefundTo::Current,
                        _ => RefundTo::Charge(stamp),
                    },
                    period: PeriodAfter::Restored(period),
                    consistency,
                };
                refunds.push(self.refund_to(key, quota, refund));
            }
        }
        for refund in join_all(refunds).await {
            if let Err(error) = refund {
                tracing::debug!(%error, "a charge in another slot could not be given back");
            }
        }
    }
}
