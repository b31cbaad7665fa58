//! `node`: each node enforces the limit by itself, in its own memory.
//!
//! The limits of a request that are the node's own are decided together, in one step of its store. When
//! the rest of the request then refuses it, they are given back one by one: the period of soft admissions of a limit
//! with `soft_for` is the one thing that this does not restore.

use tidegate_algorithms::{ChargeStamp, Decision, RefundTo};
use tidegate_store::{Charge, Charging, Clock, Decisions, EmbeddedStore, Receipt, StoreError};

use crate::edge;
use crate::memory::Took;

/// The limits of this node alone.
#[derive(Debug)]
pub(crate) struct Node<W> {
    store: EmbeddedStore<W>,
}

// === impl Node ===

impl<W> Node<W> {
    pub(crate) const fn new(store: EmbeddedStore<W>) -> Self {
        Self { store }
    }

    pub(crate) const fn store(&self) -> &EmbeddedStore<W> {
        &self.store
    }
}

impl<W: Clock> Node<W> {
    pub(crate) fn take(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.store.charge_now(charges, charging, decisions)
    }

    /// Refunds a charge, to the counter that it went to: the caller's own or a shared one.
    pub(crate) fn put_back(&self, charge: &Charge<'_>, took: &Took, is_shared: bool) {
        let now = self.store.clock().now();
        let charged = took.charged.unwrap_or(now);
        if edge::is_between(charge.quota, charged, now) {
            return;
        }
        let to = if is_shared {
            RefundTo::Charge(ChargeStamp {
                is_shared,
                ..ChargeStamp::new(charged, &took.decision)
            })
        } else {
            RefundTo::Current
        };
        // Cannot fail: the store could tell the counter's window from others when it was charged.
        let _ = self
            .store
            .refund_now(charge.key, charge.quota, charge.cost, to);
    }

    /// Corrects what is left after a charge was put back.
    pub(crate) fn correct(&self, charge: &Charge<'_>, decision: &mut Decision) {
        if let Ok(untouched) = self.store.peek_now(charge) {
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }
}
