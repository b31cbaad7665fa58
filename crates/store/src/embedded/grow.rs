//! Growing a shard by a small step. The shard's keys wait for it, the other shards' do not.

use tidegate_algorithms::Time;

use super::border::Side;
use super::core::Core;
use super::table::{LockedSet, STEP_SETS, SetId, WAYS, choices};
use super::tag::Tag;

/// How often a key may push another one out while a shard is laid out anew, before the shard
/// counts as too small.
const MOST_MOVES: usize = 64;

/// A shard grows by about this part of itself. By less, memory would follow the keys more closely
/// and each key be laid out anew more often: about this many times, as it is.
const GROWTH_DIVISOR: u32 = 16;

/// What became of an attempt to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// The shard has other sets than before: look again.
    Changed,
    /// Memory is at its cap.
    AtCap,
}

/// The slots of a shard as they will be.
pub(super) struct Layout {
    slots: Vec<(Tag, u64)>,
    size: u32,
}

// === impl Core ===

impl Core {
    /// Gives a shard that had `seen` sets room for more keys, unless somebody else just did.
    pub(super) fn grow(&self, shard: u32, seen: u32, now: Time) -> Growth {
        if !self.can_grow(shard) {
            return Growth::AtCap;
        }
        let sets = self.lock_sets(shard, seen);
        let Some(mut sets) = sets.filter(|_| self.table.size(shard) == seen) else {
            return Growth::Changed;
        };
        let live = self.collect_live(&sets, now);
        let mut size = seen;
        let enough = seen + (seen / GROWTH_DIVISOR).max(STEP_SETS);
        while self.claim_step(size + STEP_SETS) {
            size += STEP_SETS;
            // Where the cap comes before enough, what there is must do.
            let is_last = !self.can_have(size + STEP_SETS);
            if (size >= enough || is_last)
                && let Some(layout) = Layout::of(&live, size)
            {
                sets.extend((seen..size).map(|set| self.table.adopt(SetId { shard, set })));
                layout.write(&sets);
                self.table.resize(shard, size);
                return Growth::Changed;
            }
        }
        Growth::AtCap
    }

    /// Whether a shard may have another step of sets.
    pub(super) fn can_grow(&self, shard: u32) -> bool {
        self.can_have(self.table.size(shard) + STEP_SETS)
    }

    /// Whether a shard may have that many sets.
    fn can_have(&self, sets: u32) -> bool {
        sets <= self.table.max_sets() && sets / STEP_SETS <= self.border.most(Side::Table)
    }

    /// Locks all of a shard, which then stands still.
    pub(super) fn lock_shard(&self, shard: u32) -> Vec<LockedSet<'_>> {
        loop {
            let size = self.table.size(shard);
            let sets = self.lock_sets(shard, size);
            if let Some(sets) = sets.filter(|_| self.table.size(shard) == size) {
                return sets;
            }
        }
    }

    /// Locks the first sets of a shard; `None` if it has given one of them away.
    fn lock_sets(&self, shard: u32, sets: u32) -> Option<Vec<LockedSet<'_>>> {
        (0..sets)
            .map(|set| self.table.lock(SetId { shard, set }))
            .collect()
    }

    /// Empties the expired slots and lists the others.
    pub(super) fn collect_live(&self, sets: &[LockedSet<'_>], now: Time) -> Vec<(Tag, u64)> {
        let mut live = Vec::with_capacity(sets.len() * WAYS);
        for set in sets {
            for slot in 0..WAYS {
                if self.is_free(set, slot, now) {
                    self.vacate(set, slot);
                } else {
                    live.push((set.tag(slot), set.state(slot)));
                }
            }
        }
        live
    }

    fn claim_step(&self, size: u32) -> bool {
        size <= self.table.max_sets() && self.border.claim(Side::Table, size / STEP_SETS)
    }
}

// === impl Layout ===

impl Layout {
    /// Lays `keys` out over `size` sets; `None` if they do not fit.
    pub(super) fn of(keys: &[(Tag, u64)], size: u32) -> Option<Self> {
        let mut layout = Self {
            slots: vec![(Tag::EMPTY, 0); size as usize * WAYS],
            size,
        };
        keys.iter().all(|&key| layout.insert(key)).then_some(layout)
    }

    /// Puts a key into one of its sets, pushing others to theirs if it must.
    fn insert(&mut self, mut key: (Tag, u64)) -> bool {
        let (mut set, second) = choices(key.0.fingerprint(), self.size);
        if self.put(set, key) || self.put(second, key) {
            return true;
        }
        for turn in 0..MOST_MOVES {
            let victim = set as usize * WAYS + turn % WAYS;
            std::mem::swap(&mut key, &mut self.slots[victim]);
            let (primary, secondary) = choices(key.0.fingerprint(), self.size);
            set = if set == primary { secondary } else { primary };
            if self.put(set, key) {
                return true;
            }
        }
        false
    }

    fn put(&mut self, set: u32, key: (Tag, u64)) -> bool {
        let start = set as usize * WAYS;
        let free = self.slots[start..start + WAYS]
            .iter_mut()
            .find(|slot| slot.0.is_empty());
        free.map(|slot| *slot = key).is_some()
    }

    pub(super) fn write(&self, sets: &[LockedSet<'_>]) {
        for (set, slots) in sets.iter().zip(self.slots.chunks(WAYS)) {
            for (slot, &(tag, state)) in slots.iter().enumerate() {
                set.put_state(slot, state);
                set.put_tag(slot, tag);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
