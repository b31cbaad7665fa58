//! Frees blocks when the arena has none left. A sweep goes on where the last one ended and visits a limited number of
//! sets: it frees the blocks of expired counters or, if it finds none, of live counters in the order of eviction.
//!
//! Without it the block of an expired counter would be freed only when a new key needs the same slot. A flood of keys
//! would then leave no block for other callers until the window of the flood is over.

use tidegate_algorithms::Time;

use super::arena::Handle;
use super::core::Core;
use super::sync::Ordering;
use super::table::{LockedSet, SetId, WAYS};
use super::tag::{EvictionRank, Form, Pass};

/// The counters whose blocks are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    /// All that have expired.
    Expired,
    /// Of each set the first in the order of eviction, if its rank is at most this.
    Live(EvictionRank),
}

/// The most sets that one sweep visits: a fraction of a millisecond.
const REACH: usize = 4_096;

/// The same while nothing was found in the present pass, because all blocks are in use.
const SHORT_REACH: usize = 16;

// === impl Victims ===

impl Victims {
    /// After how many sets without a victim the search ends. Few for the expired, as this is what
    /// every new key pays when memory is full of live ones.
    const fn most_in_vain(self) -> usize {
        match self {
            Self::Expired => 8,
            Self::Live(EvictionRank::Idle) => 256,
            Self::Live(_) => REACH,
        }
    }
}

// === impl Core ===

impl Core {
    /// Allocates a block of at least `words` words, all zero, if need be in the place of others.
    pub(super) fn allocate(&self, words: usize, now: Time) -> Option<Handle> {
        self.arena()
            .allocate(words)
            .or_else(|| self.sweep(words, now))
    }

    #[cold]
    fn sweep(&self, words: usize, now: Time) -> Option<Handle> {
        let pass = Pass::at(now).number();
        let is_in_vain = self.fruitless_pass.load(Ordering::Relaxed) == pass;
        let reach = if is_in_vain { SHORT_REACH } else { REACH };
        let victims = [
            Victims::Expired,
            Victims::Live(EvictionRank::Idle),
            Victims::Live(EvictionRank::OnceNow),
        ];
        let mut has_freed = false;
        for victims in victims {
            let handle = self.sweep_for(victims, reach, words, now, &mut has_freed);
            if handle.is_some() {
                return handle;
            }
            if victims == Victims::Expired {
                self.take_from_table(now);
                let handle = self.arena().allocate(words);
                if handle.is_some() {
                    return handle;
                }
            }
        }
        if !has_freed {
            self.fruitless_pass.store(pass, Ordering::Relaxed);
        }
        None
    }

    fn sweep_for(
        &self,
        victims: Victims,
        reach: usize,
        words: usize,
        now: Time,
        has_freed: &mut bool,
    ) -> Option<Handle> {
        let mut in_vain = 0;
        for _ in 0..reach {
            // Only without waiting: this request holds sets already. Its own are passed over.
            let set = self.table.try_lock(self.next_set());
            let freed = set.map_or(0, |set| self.free_blocks(&set, victims, now));
            if freed > 0 {
                in_vain = 0;
                *has_freed = true;
                let handle = self.arena().allocate(words);
                if handle.is_some() {
                    return handle;
                }
            } else {
                in_vain += 1;
                if in_vain == victims.most_in_vain() {
                    return None;
                }
            }
        }
        None
    }

    /// Replaces old marks in the `part`th of `parts` of the table. A mark tells a pass only modulo 3 or 4, so one that
    /// nobody looks at would look new again.
    pub(super) fn age_marks(&self, part: u32, parts: u32, now: Time) {
        for shard in (part..self.table.shards()).step_by(parts as usize) {
            for set in 0..self.table.size(shard) {
                // One that is held was looked at.
                if let Some(set) = self.table.try_lock(SetId { shard, set }) {
                    let pass = self.evicting_pass(now);
                    for slot in 0..WAYS {
                        set.age(slot, pass);
                    }
                }
            }
        }
    }

    /// Moves the sweep on by a set.
    pub(super) fn next_set(&self) -> SetId {
        // Relaxed: two that look at the same set do no harm.
        let turn = self.sweep_position.fetch_add(1, Ordering::Relaxed);
        let shards = u64::from(self.table.shards());
        let below = |n: u64, end: u64| u32::try_from(n % end).expect("below a size");
        let shard = below(turn, shards);
        let set = below(turn / shards, u64::from(self.table.size(shard)));
        SetId { shard, set }
    }

    /// Frees blocks of a set and says how many.
    fn free_blocks(&self, set: &LockedSet<'_>, victims: Victims, now: Time) -> usize {
        let boxed = (0..WAYS).filter(|&slot| {
            let tag = set.tag(slot);
            !tag.is_empty() && tag.form() == Form::Boxed
        });
        match victims {
            Victims::Expired => boxed
                .filter(|&slot| self.is_free(set, slot, now))
                .map(|slot| self.vacate(set, slot))
                .count(),
            Victims::Live(most) => self
                .evict(boxed.map(|slot| (set, slot)), most, now)
                .iter()
                .count(),
        }
    }
}
