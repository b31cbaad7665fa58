//! The arena gives layers back: its lowest ones are cleared of blocks.

use tidegate_algorithms::Time;

use super::super::arena::{Clearing, Handle};
use super::super::border::Side;
use super::super::core::Core;
use super::super::table::{LockedSet, WAYS};
use super::super::tag::{EvictionRank, Form, Tag};
use super::PART;

/// The sets that one step of a sweep visits.
const REACH: usize = 128;

// === impl Core ===

impl Core {
    /// Begins to clear the lowest layers of the arena, or moves some of the blocks there away.
    pub(super) fn clear_arena(&self, now: Time) {
        let clearing = self.arena().clearing();
        if clearing.is_over() {
            let layers = self.border.taken(Side::Arena);
            let kept = layers.saturating_sub((layers / PART).max(1));
            let kept = kept.max(self.border.guaranteed());
            if kept < layers {
                self.arena().clear_lowest(kept);
            }
            return;
        }
        for _ in 0..REACH {
            // Only without waiting: this request holds sets already. Its own are passed over.
            if let Some(set) = self.table.try_lock(self.next_set()) {
                self.clear_set(&set, clearing, now);
            }
        }
    }

    /// Moves the blocks of a set out of the layers to clear.
    fn clear_set(&self, set: &LockedSet<'_>, clearing: Clearing<'_>, now: Time) {
        let pass = self.evicting_pass(now);
        for slot in 0..WAYS {
            let tag = set.age(slot, pass);
            let handle = Handle::from_word(set.state(slot));
            if tag.is_empty() || tag.form() != Form::Boxed || !clearing.concerns(handle) {
                continue;
            }
            if self.is_free(set, slot, now) {
                self.vacate(set, slot);
            } else if tag.rank(pass) == EvictionRank::Idle {
                self.evict_slot(set, slot, now);
            } else if let Some(copy) = self.copy_block(tag, handle) {
                set.put_state(slot, copy.to_word());
                self.arena().free(handle);
            }
        }
    }

    fn copy_block(&self, tag: Tag, handle: Handle) -> Option<Handle> {
        let layout = self.layouts.get(tag.layout())?;
        let block = self.arena().block(handle);
        let copy = self.arena().allocate(block.len())?;
        self.fill_block(copy, layout.shape, block.len(), |index| block.get(index));
        Some(copy)
    }
}
