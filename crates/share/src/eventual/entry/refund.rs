//! Refunds to a counter, dated to slots.

use smallvec::SmallVec;

use super::Entry;
use super::own::OwnSlot;

// === impl Entry ===

impl Entry {
    /// Notes that `cost` is refunded that this node admitted in a slot. If that is long ago, its last total
    /// that has as much is reduced instead.
    pub(in crate::eventual) fn put_back(&mut self, slot: u64, cost: u64) {
        let first = self.history.first();
        let has_it = |own: &OwnSlot| own.net() >= i64::try_from(cost).unwrap_or(i64::MAX);
        let is_exact = |own: &OwnSlot| own.slot(first) == slot && has_it(own);
        let exact = self.own.iter().find(is_exact);
        let found = exact.or_else(|| self.own.iter().rev().find(has_it));
        if let Some(slot) = found.map(|own| own.slot(first)) {
            self.refund(slot, cost);
        }
    }

    /// Notes that `cost` is refunded in a slot, whoever admitted it.
    pub(in crate::eventual) fn refund(&mut self, slot: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        let unsent = self.everywhere();
        let slot = slot.max(self.history.first());
        // What does not fit the field stays charged.
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        let (place, mut own) = self.own_slot(slot);
        let cost = cost.min(u32::MAX - own.refunded);
        own.refunded += cost;
        own.unsent = unsent;
        self.own.set(place, own);
        self.change(slot, -i64::from(cost));
    }

    /// Refunds `cost` in the slots with the latest admissions, and the rest in the current slot.
    pub(in crate::eventual) fn refund_last(&mut self, current: u64, mut cost: u64) {
        let sums: SmallVec<[(u64, i64); 18]> = self.history.sums().collect();
        for (slot, sum) in sums.into_iter().rev() {
            let taken = cost.min(sum.max(0).unsigned_abs());
            self.refund(slot, taken);
            cost -= taken;
        }
        self.refund(current, cost);
    }

    /// Refunds `cost` that this node admitted in a slot, as much of it as is still there.
    pub(in crate::eventual) fn refund_charge(&mut self, slot: u64, cost: u64) {
        let (_, own) = self.own_slot(slot);
        self.refund(slot, cost.min(u64::try_from(own.net()).unwrap_or(0)));
    }
}
