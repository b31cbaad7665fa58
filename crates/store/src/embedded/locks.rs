//! The sets that one request holds.

use smallvec::SmallVec;

use super::table::{LockedSet, SetId, Table, WAYS};

/// Locked sets, by the order in which they were taken. All are let go together.
#[derive(Debug)]
pub(super) struct Locks<'t> {
    sets: SmallVec<[LockedSet<'t>; 8]>,
}

/// A slot in one of the held sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the held sets.
    pub(super) held: usize,
    /// Which of its slots.
    pub(super) slot: usize,
}

// === impl Locks ===

impl<'t> Locks<'t> {
    /// Locks `ids`, which are sorted, one after the other; `None` if a shard has given one of them away.
    pub(super) fn take(table: &'t Table, ids: &[SetId]) -> Option<Self> {
        let mut sets = SmallVec::new();
        for &id in ids {
            sets.push(table.lock(id)?);
        }
        Some(Self { sets })
    }

    /// Makes sure that `id` is held and gives its place; `None` if that would mean to wait out of
    /// order.
    pub(super) fn also(&mut self, table: &'t Table, id: SetId) -> Option<usize> {
        if let Some(held) = self.index_of(id) {
            return Some(held);
        }
        let in_order = self.sets.iter().all(|set| set.id() < id);
        let locked = if in_order {
            table.lock(id)
        } else {
            table.try_lock(id)
        };
        self.sets.push(locked?);
        Some(self.sets.len() - 1)
    }

    pub(super) fn index_of(&self, id: SetId) -> Option<usize> {
        self.sets.iter().position(|set| set.id() == id)
    }

    pub(super) fn set(&self, held: usize) -> &LockedSet<'t> {
        &self.sets[held]
    }

    /// All slots of the held sets among `ids`.
    pub(super) fn places(&self, ids: [SetId; 2]) -> impl Iterator<Item = Place> {
        let held = ids.map(|id| self.index_of(id));
        held.into_iter()
            .flatten()
            .flat_map(|held| (0..WAYS).map(move |slot| Place { held, slot }))
    }
}
