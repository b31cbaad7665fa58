//! Totals of this node, and which regions may not know them.

use tidegate_store::SlotTotal;

/// This node's total in one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSlot {
    pub(super) admitted: u64,
    pub(super) refunded: u32,
    /// The last bits of the slot, which tell it from its neighbours.
    slot: u16,
    /// The regions that may not know this total.
    pub(super) unsent: RegionSet,
}

/// Some regions, as bits. Those beyond the 15th have one in common, which is never cleared: they get every
/// total each time.
pub(super) type RegionSet = u16;

/// The bit that the regions beyond the 15th have in common.
pub(super) const LAST_BIT: RegionSet = 1 << 15;

/// The bit of a region.
pub(super) const fn bit(region: usize) -> RegionSet {
    if region < 15 { 1 << region } else { LAST_BIT }
}

// === impl OwnSlot ===

impl OwnSlot {
    pub(super) fn new(slot: u64) -> Self {
        Self {
            admitted: 0,
            refunded: 0,
            slot: u16::try_from(slot & u64::from(u16::MAX)).unwrap_or_default(),
            unsent: 0,
        }
    }

    /// The slot, if it is not before `first`.
    pub(super) const fn slot(&self, first: u64) -> u64 {
        first + ((self.slot as u64).wrapping_sub(first) & 0xffff)
    }

    pub(super) fn net(&self) -> i64 {
        let admitted = i64::try_from(self.admitted).unwrap_or(i64::MAX);
        admitted - i64::from(self.refunded)
    }

    pub(super) fn total(&self, first: u64) -> SlotTotal {
        SlotTotal {
            slot: self.slot(first),
            admitted: self.admitted,
            refunded: u64::from(self.refunded),
        }
    }
}
