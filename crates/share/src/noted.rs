//! The store in common, with a note in this node's memory of all that it admits here and of what it refuses:
//! that is what the node knows when it is left alone. Notes go by the store's time, as its replies tell it:
//! what this machine thinks the date is does not matter while the store is heard now and then.

use std::sync::Arc;

use tidegate_algorithms::{Decision, Headroom, Quota, RefundTo, Time};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, Draw,
    EmbeddedStore, Lender, Loan, Mode, OnFull, Page, Receipt, Store, StoreError,
};

use crate::node::Node;
use crate::reckoning::StoreClock;
use crate::standby::Standby;

/// The store in common. Of a split limit it is asked for the reserve, and that is noted: what a node admits
/// from its share is counted by `split` itself.
#[derive(Debug)]
pub(crate) struct Noted<R, W, M> {
    remote: R,
    node: Node<W>,
    /// Counters of the limits that are shared, for when this node is alone. They are no counters of the
    /// node's own, and nobody is shown them.
    alone: EmbeddedStore<StoreClock<Arc<M>>>,
    standby: Standby,
}

// === impl Noted ===

impl<R, W, M> Noted<R, W, M> {
    pub(crate) const fn new(
        remote: R,
        node: Node<W>,
        alone: EmbeddedStore<StoreClock<Arc<M>>>,
        standby: Standby,
    ) -> Self {
        Self {
            remote,
            node,
            alone,
            standby,
        }
    }

    pub(crate) const fn remote(&self) -> &R {
        &self.remote
    }

    pub(crate) const fn node(&self) -> &Node<W> {
        &self.node
    }

    pub(crate) const fn alone(&self) -> &EmbeddedStore<StoreClock<Arc<M>>> {
        &self.alone
    }

    pub(crate) const fn standby(&self) -> &Standby {
        &self.standby
    }
}

impl<R, W, M: Clock> Noted<R, W, M> {
    /// The store's time, as far as it is known.
    pub(crate) fn clock(&self) -> &StoreClock<Arc<M>> {
        self.alone.clock()
    }

    /// Notes what a request was charged, and what refused it.
    fn note(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        admission: Admission,
        decisions: &[Decision],
    ) {
        let is_charged = charging == Charging::EveryMatch || admission == Admission::Admitted;
        for (charge, decision) in charges.iter().zip(decisions) {
            if charge.cost == 0 {
                continue;
            }
            if !decision.is_allowed() {
                self.standby.note_refusal(&self.alone, charge, *decision);
            } else if is_charged {
                self.standby.note(&self.alone, charge);
            }
        }
    }
}

impl<R: Store, W: Clock, M: Clock> Store for Noted<R, W, M> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let receipt = self.remote.charge(charges, charging, decisions).await?;
        self.clock().set(receipt.now);
        self.note(charges, charging, receipt.admission, decisions);
        Ok(receipt)
    }

    fn peek(
        &self,
        charge: &Charge<'_>,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.remote.peek(charge)
    }

    /// Refunds the note too, also when the store cannot be reached.
    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        self.standby.refund(&self.alone, key, quota, cost, to);
        self.remote.refund(key, quota, cost, to, consistency).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        self.standby.reset(&self.alone, key, quota);
        self.remote.reset(key, quota, consistency).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        let now = self.remote.now().await?;
        self.clock().set(now);
        Ok(now)
    }

    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        self.remote.list(cursor, most)
    }
}

impl<R: Lender, W: Clock, M: Clock> Lender for Noted<R, W, M> {
    /// Notes a loan as a whole, so that nothing is noted when its permits are spent.
    async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        let loan = self.remote.draw(key, quota, draw).await?;
        self.clock().set(loan.now);
        let (decision, permits) = (loan.decision, loan.permits);
        let charge = Charge {
            key,
            quota,
            cost: if decision.is_allowed() {
                permits
            } else {
                draw.least
            },
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Allow,
            consistency: Consistency::Leased,
        };
        self.note(
            &[charge],
            Charging::EveryMatch,
            Admission::Admitted,
            &[decision],
        );
        Ok(loan)
    }

    async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        let taken = self.remote.give_back(key, quota, loan, permits).await?;
        self.standby.unnote(&self.alone, key, quota, loan, permits);
        Ok(taken)
    }
}
