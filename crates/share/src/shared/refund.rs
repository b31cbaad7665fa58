//! The place of a refund among the ways in which limits are shared.

use tidegate_algorithms::{Quota, RefundTo};
use tidegate_store::{Clock, Consistency, CounterKey, Lender, Store, StoreError};

use super::SharedStore;
use crate::split::is_aligned;

// === impl SharedStore ===

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> SharedStore<R, W, M> {
    /// Refunds to this node's memory; returns false if the common store is to be asked.
    pub(super) fn refund_here(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        match (consistency, to) {
            (Consistency::Node, _) => {
                self.local().refund_now(key, quota, cost, to)?;
                Ok(true)
            }
            (Consistency::Eventual, _) if self.eventual.suits(quota) => {
                self.eventual.refund(key, quota, cost, to);
                Ok(true)
            }
            (Consistency::Split, _) => Ok(self.split.refund_share(key, quota, cost, to)),
            // A permit goes back to the loan that it was taken from, as long as that is held.
            (Consistency::Leased, RefundTo::Charge(stamp)) => {
                Ok(self.leases.refund_loan(key, cost, stamp.at))
            }
            (Consistency::Strict | Consistency::Leased | Consistency::Eventual, _) => Ok(false),
        }
    }

    /// Refunds to what the common store keeps of a split limit.
    pub(super) async fn refund_reserve(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> Result<(), StoreError> {
        let reserve = self.split.reserve(key.limit, quota);
        let mut reserve = reserve.as_deref().unwrap_or(quota);
        if to != RefundTo::Current && !is_aligned(quota) {
            // The reserve may have been larger then, and so each permit worth less time.
            reserve = quota;
        }
        let consistency = Consistency::Split;
        let refunded = self.common.refund(key, reserve, cost, to, consistency);
        let refunded = refunded.await;
        if refunded.is_err() {
            let divided_by = self.standby().divided_by();
            self.split.refund_alone(key, quota, cost, to, divided_by);
        }
        refunded
    }
}
