//! Giving back what the table does not need any more, so that the arena can have it.
//!
//! All shards are made smaller, one after the other, and then the layers above them belong to nobody. A shard is made
//! smaller only if its live keys fit into what it keeps: nothing is evicted for it. One thread at a time does this,
//! a shard at a time, because each is laid out anew as when it grows.

use std::sync::TryLockError;

use tidegate_algorithms::Time;

use super::border::Side;
use super::core::Core;
use super::grow::Layout;
use super::table::{LockedSet, STEP_SETS, SetId};

/// The table is made smaller by about this part of itself at a time.
const SHRINK_DIVISOR: u32 = 8;

/// Nanoseconds between two shards: a request that does this takes some tens of microseconds longer, and all of them
/// together a tenth of a processor at most.
const STEP_PAUSE: u64 = 1_000_000;

/// Nanoseconds until it is tried again after the keys of a shard did not fit.
const RETRY_PAUSE: u64 = 10_000_000_000;

/// The state of making the table smaller.
#[derive(Debug, Default)]
pub(super) struct ShrinkState {
    /// The layers that the table keeps, and the next shard.
    under_way: Option<(u32, u32)>,
    /// Nanoseconds before which nothing is done.
    not_before: u64,
}

/// What became of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is small enough.
    Done,
    /// Somebody holds one of its sets.
    Busy,
    /// Its keys do not fit.
    Full,
}

// === impl Core ===

impl Core {
    /// Makes a shard smaller on behalf of the arena, if there is something to gain. The caller may hold sets.
    pub(super) fn shrink_table(&self, now: Time) {
        let mut state = match self.shrink.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if now.nanos() < state.not_before {
            return;
        }
        state.not_before = now.nanos().saturating_add(STEP_PAUSE);
        let Some((kept, shard)) = state.under_way.or_else(|| self.begin_to_shrink()) else {
            state.not_before = now.nanos().saturating_add(RETRY_PAUSE);
            return;
        };
        state.under_way = match self.shrink_shard(shard, kept * STEP_SETS, now) {
            Step::Done if shard + 1 < self.table.shards() => Some((kept, shard + 1)),
            Step::Done => {
                self.border.release(Side::Table, kept);
                self.border.limit_table(None);
                None
            }
            Step::Busy => Some((kept, shard)),
            Step::Full => {
                state.not_before = now.nanos().saturating_add(RETRY_PAUSE);
                self.border.limit_table(None);
                None
            }
        };
    }

    /// The layers to keep, and the first shard; `None` if the table has no more than its part.
    fn begin_to_shrink(&self) -> Option<(u32, u32)> {
        let layers = self.border.taken(Side::Table);
        let less = (layers / SHRINK_DIVISOR).max(1);
        let kept = layers
            .saturating_sub(less)
            .max(self.border.guaranteed())
            .max(1);
        // From now on no shard grows beyond that. One that is about to is seen by the look at it.
        (kept < layers).then(|| {
            self.border.limit_table(Some(kept));
            (kept, 0)
        })
    }

    /// Makes sure that a shard has no more than `size` sets.
    fn shrink_shard(&self, shard: u32, size: u32, now: Time) -> Step {
        let seen = self.table.size(shard);
        // Growth holds all sets of a shard, so the first one is enough where there is nothing to do.
        let held = if seen > size { seen } else { 1 };
        let sets = (0..held).map(|set| self.table.try_lock(SetId { shard, set }));
        let Some(sets) = sets.collect::<Option<Vec<LockedSet<'_>>>>() else {
            return Step::Busy;
        };
        if self.table.size(shard) != seen {
            return Step::Busy;
        }
        if seen <= size {
            return Step::Done;
        }
        let live = self.collect_live(&sets, now);
        let Some(layout) = Layout::of(&live, size) else {
            return Step::Full;
        };
        let (kept, released) = sets.split_at(size as usize);
        layout.write(kept);
        released.iter().for_each(LockedSet::clear);
        self.table.resize(shard, size);
        Step::Done
    }
}
