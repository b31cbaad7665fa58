//! Refunds to a node's shares.
//!
//! A refund of a charge after the edge of an aligned window is lost, also where the window before is still
//! counted: shares may have changed at the edge.

use std::borrow::Cow;

use tidegate_algorithms::{ChargeStamp, Quota, RefundTo, Time};
use tidegate_store::{Clock, CounterKey};

use super::Split;
use super::counters::is_aligned;
use crate::edge;

// === impl Split ===

impl<M: Clock> Split<M> {
    /// Refunds to the node's share of a counter; returns whether it has a share.
    pub(crate) fn refund_share(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> bool {
        self.replies.forget(key);
        let Some(own) = self.own_quota(key.limit, quota) else {
            return false;
        };
        let own = match (to, self.time().bounds()) {
            (RefundTo::Charge(stamp), Some(bounds)) => {
                self.quota_taken_from(key.limit, quota, stamp.at, bounds)
            }
            _ => Cow::Owned(own),
        };
        match self.own_refund(quota, to) {
            Some(to) => self.counters.refund(key, &own, cost, to).is_ok(),
            None => true,
        }
    }

    /// The place of a refund by the clock of the node's counters; `None` if it is lost. Counters that go by
    /// the node's own clock were charged no longer ago than the store's time can have passed since.
    pub(super) fn own_refund(&self, quota: &Quota, to: RefundTo) -> Option<RefundTo> {
        let RefundTo::Charge(stamp) = to else {
            return Some(to);
        };
        let bounds = self.time().bounds()?;
        if is_aligned(quota) {
            let is_over = edge::is_between(quota, stamp.at, bounds.earliest);
            return (!is_over).then_some(to);
        }
        let ago = bounds.latest.since(stamp.at);
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        Some(RefundTo::Charge(ChargeStamp {
            at: Time::from_nanos(self.own_now().nanos().saturating_sub(ago)),
            // Of a queue the node's clock cannot tell the departure times: they lapse.
            resets_at: Time::ZERO,
            ..stamp
        }))
    }
}
