//! The border between the table and the arena, which share one range of memory: the hard cap.
//!
//! The range is cut into layers. The table takes them from the bottom, the arena from the top; each has a part that
//! the other never gets, and the layers between belong to the side that needs them first. A side that has more than
//! its part [gives layers back](super::rebalance) when the other one needs them more.

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// An eighth of all layers is kept for the table, and as many for the arena.
const GUARANTEED_PART: u32 = 8;

/// The layers that table and arena have.
#[derive(Debug)]
pub(super) struct Border {
    /// Those of the table in the low half, those of the arena in the high half.
    taken: AtomicU64,
    layers: u32,
    /// The most layers that the table may have while it is made smaller.
    table_limit: AtomicU32,
}

/// A kind of state, by the place where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Slots.
    Table,
    /// Blocks.
    Arena,
}

// === impl Border ===

impl Border {
    /// A border between `layers` of which the table has the first one.
    pub(super) fn new(layers: u32) -> Self {
        Self {
            taken: AtomicU64::new(1),
            layers,
            table_limit: AtomicU32::new(u32::MAX),
        }
    }

    /// The layers that a side has.
    pub(super) fn taken(&self, side: Side) -> u32 {
        // Relaxed: what is taken is claimed, and that orders it after the other side's release.
        side.of(self.taken.load(Ordering::Relaxed))
    }

    /// The most layers that a side may have at present.
    pub(super) fn most(&self, side: Side) -> u32 {
        self.most_beside(side, self.taken(side.other()))
    }

    /// The layers that a side keeps whatever the other one needs.
    pub(super) fn guaranteed(&self) -> u32 {
        self.layers / GUARANTEED_PART
    }

    /// Keeps the table from having more layers, or lets it.
    pub(super) fn limit_table(&self, layers: Option<u32>) {
        // Relaxed: a shard that grows holds all its sets, and the one who set this looks at them later.
        self.table_limit
            .store(layers.unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// The most layers that a side may have beside the `other` ones.
    fn most_beside(&self, side: Side, other: u32) -> u32 {
        let most = self.layers - other.max(self.guaranteed());
        match side {
            Side::Table => most.min(self.table_limit.load(Ordering::Relaxed)),
            Side::Arena => most,
        }
    }

    /// Gives a side `wanted` layers in all, unless they are not to be had.
    pub(super) fn claim(&self, side: Side, wanted: u32) -> bool {
        let claimed = self
            .taken
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
                let other = side.other().of(taken);
                let fits = wanted <= self.most_beside(side, other);
                let own = side.of(taken).max(wanted);
                fits.then(|| side.join(own, other))
            });
        claimed.is_ok()
    }

    /// Leaves a side `kept` layers. It uses the others no more.
    pub(super) fn release(&self, side: Side, kept: u32) {
        let released = self
            .taken
            .fetch_update(Ordering::Release, Ordering::Relaxed, |taken| {
                let own = side.of(taken).min(kept);
                Some(side.join(own, side.other().of(taken)))
            });
        released.expect("the update is never rejected");
    }
}

// === impl Side ===

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Table => Self::Arena,
            Self::Arena => Self::Table,
        }
    }

    fn of(self, taken: u64) -> u32 {
        let half = match self {
            Self::Table => taken & u64::from(u32::MAX),
            Self::Arena => taken >> 32,
        };
        u32::try_from(half).expect("half of a word")
    }

    fn join(self, own: u32, other: u32) -> u64 {
        let [own, other] = [own, other].map(u64::from);
        match self {
            Self::Table => own | (other << 32),
            Self::Arena => other | (own << 32),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each side gets all that the other one has not taken, but for the part that is kept for it.
    #[test]
    fn each_side_keeps_its_part() {
        let border = Border::new(80);
        assert!(border.claim(Side::Table, 70));
        assert!(!border.claim(Side::Table, 71));
        assert!(border.claim(Side::Arena, 10));
        assert!(!border.claim(Side::Arena, 11));
        border.release(Side::Table, 30);
        assert_eq!(border.most(Side::Arena), 50);
        assert!(border.claim(Side::Arena, 50));
        assert!(!border.claim(Side::Table, 31));
        assert!(border.claim(Side::Table, 20), "it has more");
        assert_eq!(border.taken(Side::Table), 30);
        border.release(Side::Arena, 5);
        assert_eq!(border.most(Side::Table), 70);
        border.limit_table(Some(25));
        assert!(!border.claim(Side::Table, 30));
    }
}
