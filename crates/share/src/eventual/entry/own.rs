//! Totals of this node, and which regions may not know them.

use tidegate_store::SlotTotal;

use crate::eventual::packed::Pack;

/// This node's total in one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSlot {
    pub(super) admitted: u64,
    pub(super) refunded: u32,
    /// The last bits of the slot, which tell it from its neighbours.
    slot: u8,
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
            slot: u8::try_from(slot & u64::from(u8::MAX)).unwrap_or_default(),
            unsent: 0,
        }
    }

    /// The slot, if it is not before `first`.
    pub(super) const fn slot(&self, first: u64) -> u64 {
        first + ((self.slot as u64).wrapping_sub(first) & 0xff)
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

/// Short while both numbers are below 2^24.
impl Pack for OwnSlot {
    /// The numbers, the regions and the slot.
    type Short = ([u8; 3], [u8; 3], [u8; 2], u8);
    const ZERO: Self::Short = ([0; 3], [0; 3], [0; 2], 0);

    fn pack(self) -> Option<Self::Short> {
        let [admitted @ .., 0, 0, 0, 0, 0] = self.admitted.to_le_bytes() else {
            return None;
        };
        let [refunded @ .., 0] = self.refunded.to_le_bytes() else {
            return None;
        };
        Some((admitted, refunded, self.unsent.to_le_bytes(), self.slot))
    }

    fn unpack((admitted, refunded, unsent, slot): Self::Short) -> Self {
        let number = |[low, middle, high]: [u8; 3]| u32::from_le_bytes([low, middle, high, 0]);
        Self {
            admitted: number(admitted).into(),
            refunded: number(refunded),
            slot,
            unsent: RegionSet::from_le_bytes(unsent),
        }
    }
}
