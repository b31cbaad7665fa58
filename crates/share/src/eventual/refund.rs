//! Refunds: on this node at once, on the others with the next exchange.

use tidegate_algorithms::{Decision, Meter, Quota, RefundTo, Time};
use tidegate_store::{Clock, CounterKey};

use super::Eventual;
use super::slots::SlotLayout;
use super::usage::unused;
use crate::edge;

// === impl Eventual ===

impl<C: Clock> Eventual<C> {
    /// Refunds `cost`, but no more than is in use; of a charge in its own slot, if this node still has it
    /// there.
    pub(crate) fn refund(&self, key: CounterKey<'_>, quota: &Quota, cost: u64, to: RefundTo) {
        let (layout, now) = (SlotLayout::of(quota), self.clock.now());
        let digest = self.digest(key, quota);
        let mut part = self.table.part(digest);
        let was_alone = part.update(digest, |entry| {
            let is_over = match to {
                RefundTo::Current => false,
                // It would let this node use more of the next window before others know.
                RefundTo::Charge(stamp) => {
                    matches!(quota.meter(), Meter::FixedWindow(_))
                        && edge::is_between(quota, stamp.at, now)
                }
            };
            if is_over || SlotLayout::of(&entry.quota) != layout {
                return None;
            }
            self.advance(entry, layout, layout.at(now));
            match to {
                RefundTo::Current => {
                    let usage = entry.history.usage(quota, layout, now);
                    entry.refund_last(layout.at(now), cost.min(usage.used(quota, now)));
                    entry.alone_since().map(|_| now)
                }
                RefundTo::Charge(stamp) => {
                    entry.refund_charge(layout.at(stamp.at), cost);
                    let since = entry.alone_since();
                    since
                        .is_some_and(|since| since <= stamp.at)
                        .then_some(stamp.at)
                }
            }
        });
        part.queue(digest);
        if let Some(Some(charged)) = was_alone {
            self.refund_share(key, quota, cost, charged);
        }
    }

    /// What is left of this node's share.
    pub(super) fn peek_share(&self, key: CounterKey<'_>, quota: &Quota) -> Decision {
        let part = self.share_of(quota);
        let peeked = self.shares.peek(key, part.as_ref().unwrap_or(quota));
        peeked.unwrap_or_else(|_| unused(quota))
    }

    /// Refunds to the node's share what was charged to it, unless that was in a window that is over.
    pub(super) fn refund_share(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        charged: Time,
    ) {
        if !edge::is_between(quota, charged, self.clock.now())
            && let Some(part) = self.share_of(quota)
        {
            self.shares.refund(key, &part, cost);
        }
    }
}
