//! The route of a request: to this node's own store, to the common one, or through memory first.

use std::pin::Pin;

use futures_util::future::join_all;
use tidegate_algorithms::{Decision, RefundTo, Time};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, DecisionSource, Decisions, Lender, Receipt,
    Store, StoreError,
};

use super::SharedStore;
use crate::leased::Taken;
use crate::memory::Took;
use crate::request::{Request, Rest, Undecided};
use crate::split::Reserves;

/// The route of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route<'a> {
    /// By this node alone.
    Node,
    /// It has one limit, whose counter is in the common store.
    Single(&'a Charge<'a>),
    /// From memory where that can be, the rest by the common store.
    Mixed,
}

/// A request with limits that are shared in several ways.
pub(super) enum Mixed<'a> {
    /// It is decided.
    Decided(Receipt),
    /// It is when the common store has spoken.
    Later(Pin<Box<dyn Future<Output = Result<Receipt, StoreError>> + Send + 'a>>),
}

// === impl Route ===

impl<'a> Route<'a> {
    #[inline]
    pub(super) fn of(charges: &'a [Charge<'a>]) -> Self {
        if let [charge] = charges
            && matches!(
                charge.consistency,
                Consistency::Strict | Consistency::Leased
            )
        {
            return Self::Single(charge);
        }
        let is_own = |charge: &Charge<'_>| charge.consistency == Consistency::Node;
        if charges.iter().all(is_own) {
            Self::Node
        } else {
            Self::Mixed
        }
    }
}

// === impl SharedStore ===

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> SharedStore<R, W, M> {
    /// Writes down a decision on a request with one limit.
    #[inline]
    pub(super) fn settle_single(
        &self,
        charge: &Charge<'_>,
        took: Took,
        decisions: &mut Decisions,
    ) -> Receipt {
        decisions.clear();
        decisions.push(took.decision);
        let now = self.common.clock().now();
        let receipt = Receipt::new(now, Admission::of(&[*charge], decisions));
        let receipt = receipt.charged_from(took.charged.unwrap_or(now));
        receipt.decided_in(DecisionSource::Held)
    }

    /// Decides a request with one limit that memory alone cannot decide.
    pub(super) async fn charge_single(
        &self,
        charge: &Charge<'_>,
        charging: Charging,
        taken: Taken<'_>,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let taken = match taken {
            Taken::Decided(took) => Some(took),
            Taken::Ask => None,
            Taken::Later(taken) => taken.await?,
        };
        if let Some(took) = taken {
            return Ok(self.settle_single(charge, took, decisions));
        }
        let charges = [*charge];
        let asked = self.leases.own_now();
        let receipt = self.common.charge(&charges, charging, decisions).await?;
        let heard = self.leases.heard(receipt.now, asked);
        if let Some(decision) = decisions.first() {
            self.leases.hear(charge, decision, receipt.admission, heard);
        }
        Ok(receipt.decided_in(DecisionSource::Common))
    }

    /// Begins a request of limits that are shared in several ways.
    pub(super) fn begin_mixed<'a>(
        &'a self,
        charges: &'a [Charge<'a>],
        charging: Charging,
        decisions: &'a mut Decisions,
    ) -> Result<Mixed<'a>, StoreError> {
        let request = Request::take(charges, charging, self)?;
        let rest = request.rest();
        if rest.is_empty() {
            let now = self.common.clock().now();
            let earliest = request.earliest_charge().unwrap_or(now);
            let shared = request.shared();
            let admission = request.close(self, decisions);
            let receipt = Receipt::new(now, admission).charged_from(earliest);
            let receipt = receipt.charged_to_shared(shared);
            return Ok(Mixed::Decided(receipt.decided_in(DecisionSource::Held)));
        }
        // In a box, so that the future of every other request stays small.
        let later = Box::pin(self.charge_mixed(request, rest, charging, decisions));
        Ok(Mixed::Later(later))
    }

    async fn charge_mixed(
        &self,
        request: Request<'_>,
        rest: Rest<'_>,
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let (in_memory, shared) = (request.earliest_charge(), request.shared());
        let mut undecided = Undecided::new(self, request);
        let asked = self.leases.own_now();
        let receipt = self.charge_rest(&rest, charging, decisions).await?;
        let (now, earliest) = (receipt.now, receipt.earliest());
        let heard = self.leases.heard(now, asked);
        let admission = match charging {
            Charging::AllOrNone => Admission::of(&rest, decisions),
            // Each limit that allows is charged, whatever the others do.
            Charging::EveryMatch => Admission::Admitted,
        };
        for (charge, decision) in rest.iter().zip(&*decisions) {
            if matches!(
                charge.consistency,
                Consistency::Strict | Consistency::Leased
            ) {
                self.leases.hear(charge, decision, admission, heard);
            }
        }
        undecided.fill(decisions);
        let admission = undecided.close(decisions);
        let earliest = in_memory.map_or(earliest, |time| time.min(earliest));
        let receipt = Receipt::new(now, admission).charged_from(earliest);
        let receipt = receipt.charged_to_shared(shared);
        Ok(receipt.decided_in(DecisionSource::Common))
    }

    /// Asks the common store: for whole limits, and for what it keeps of split ones. If the shares of one changed
    /// while the call was under way, it is refunded and asked again.
    async fn charge_rest(
        &self,
        rest: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let reserves = self.split.reserves(rest);
        let asked = reserves.apply(rest);
        let receipt = self.common.charge(&asked, charging, decisions).await?;
        if self.settle_rest(rest, &reserves, charging, receipt, decisions) {
            return Ok(receipt);
        }
        // All are sent before the second call and share its time, so that a request waits for two calls at most.
        let refunds = self.refunds(&asked, receipt.now, decisions);
        let reserves = self.split.reserves(rest);
        let asked = reserves.apply(rest);
        let again = self.common.charge(&asked, charging, decisions);
        let (_, receipt) = tokio::join!(refunds, again);
        let receipt = receipt?;
        if self.settle_rest(rest, &reserves, charging, receipt, decisions) {
            return Ok(receipt);
        }
        // Not refunded: a second change during the second call takes an epoch as short as a call.
        Err(StoreError::Unavailable {
            reason: "the shares of a limit changed meanwhile".into(),
        })
    }

    /// Turns the common store's decisions into decisions on whole limits; returns `false` for admissions that must not
    /// count, because the shares changed meanwhile.
    fn settle_rest(
        &self,
        rest: &[Charge<'_>],
        reserves: &Reserves,
        charging: Charging,
        Receipt { now, admission, .. }: Receipt,
        decisions: &mut [Decision],
    ) -> bool {
        let is_charged = charging == Charging::EveryMatch || admission == Admission::Admitted;
        if is_charged && self.split.is_outdated(rest, reserves, now, decisions) {
            return false;
        }
        self.split.settle(rest, reserves, decisions);
        true
    }

    /// Refunds what the common store charged at `now`. A refund that fails is lost.
    fn refunds<'a>(
        &'a self,
        asked: &'a [Charge<'_>],
        now: Time,
        decisions: &[Decision],
    ) -> impl Future<Output = Vec<Result<(), StoreError>>> + Send + 'a {
        let is_due = |(charge, decision): &(&Charge<'_>, &Decision)| {
            decision.is_allowed() && charge.cost > 0 && self.split.is_refundable(charge.quota, now)
        };
        let charged = asked.iter().zip(decisions).filter(is_due);
        join_all(charged.map(|(charge, _)| {
            let Charge {
                key,
                quota,
                cost,
                consistency,
                ..
            } = *charge;
            self.common
                .refund(key, quota, cost, RefundTo::Current, consistency)
        }))
    }
}
