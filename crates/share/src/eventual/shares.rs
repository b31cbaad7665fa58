//! This node's shares of limits, by which it decides while some region cannot be reached.

use tidegate_algorithms::{Decision, Quota, RefundTo};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, Mode, OnFull,
    StoreError,
};

use crate::reckoning::StoreClock;

/// The counters of shares, in memory.
#[derive(Debug)]
pub(super) struct ShareStore<C>(EmbeddedStore<StoreClock<C>>);

// === impl ShareStore ===

impl<C: Clock> ShareStore<C> {
    pub(super) const fn new(store: EmbeddedStore<StoreClock<C>>) -> Self {
        Self(store)
    }

    pub(super) const fn store(&self) -> &EmbeddedStore<StoreClock<C>> {
        &self.0
    }

    /// Decides on one limit as if it were this node's alone.
    pub(super) fn charge(
        &self,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        let charge = Charge {
            mode: Mode::Enforce,
            ..*charge
        };
        let mut decisions = Decisions::new();
        self.0.charge_now(&[charge], charging, &mut decisions)?;
        Ok(decisions[0])
    }

    /// Charges as much of `cost` as fits, and says what did not.
    pub(super) fn force(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
    ) -> Result<u64, StoreError> {
        if cost == 0 {
            return Ok(0);
        }
        let fits = cost.min(self.peek(key, quota)?.remaining);
        let charge = Charge {
            cost: fits,
            ..look(key, quota)
        };
        let decision = self.charge(&charge, Charging::AllOrNone)?;
        Ok(if decision.is_allowed() {
            cost - fits
        } else {
            cost
        })
    }

    pub(super) fn peek(&self, key: CounterKey<'_>, quota: &Quota) -> Result<Decision, StoreError> {
        self.0.peek_now(&look(key, quota))
    }

    pub(super) fn refund(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) {
        // Cannot fail: the store could tell the counter's window from others when it was charged.
        let _ = self.0.refund_now(key, quota, cost, RefundTo::Current);
    }

    pub(super) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> Result<bool, StoreError> {
        self.0.reset_now(key, quota)
    }
}

fn look<'a>(key: CounterKey<'a>, quota: &'a Quota) -> Charge<'a> {
    Charge {
        on_full: OnFull::Allow,
        ..Charge::look(key, quota, Consistency::Eventual)
    }
}
