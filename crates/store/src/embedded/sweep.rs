//! Finding a block when the arena has none left: a hand goes round the table and frees the blocks
//! of the expired or, if there are none within its reach, of counters that nobody asked for lately.
//!
//! Without it blocks of the expired would come back only as new keys happen upon their slots, and
//! a flood of keys would keep all others from being counted until it expires.

use tidegate_algorithms::Time;

use super::arena::Handle;
use super::core::Core;
use super::sync::Ordering;
use super::table::{LockedSet, SetId, WAYS};
use super::tag::Form;

/// What the hand takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prey {
    /// All blocks of the expired.
    Expired,
    /// The block of a set that is worth least, unless its counter was asked for lately.
    Live,
}

// === impl Prey ===

impl Prey {
    /// After how many sets without prey the hand gives up. Few for the expired, as this is what
    /// every new key pays when memory is full of live ones.
    const fn patience(self) -> usize {
        match self {
            Self::Expired => 8,
            Self::Live => 64,
        }
    }

    /// After how many sets it gives up in any case. A large block takes the place of many small
    /// ones that happen to lie side by side: of the expired it takes all it can get in a fraction
    /// of a millisecond, of the live no more than it must.
    const fn reach(self) -> usize {
        match self {
            Self::Expired => 4_096,
            Self::Live => 64,
        }
    }
}

// === impl Core ===

impl Core {
    /// Allocates a block of at least `words` words, all zero, if need be in the place of others.
    pub(super) fn allocate(&self, words: usize, now: Time) -> Option<Handle> {
        self.arena
            .allocate(words, &self.budget)
            .or_else(|| self.sweep(words, now))
    }

    #[cold]
    fn sweep(&self, words: usize, now: Time) -> Option<Handle> {
        [Prey::Expired, Prey::Live]
            .into_iter()
            .find_map(|prey| self.sweep_for(prey, words, now))
    }

    fn sweep_for(&self, prey: Prey, words: usize, now: Time) -> Option<Handle> {
        let mut in_vain = 0;
        for _ in 0..prey.reach() {
            // Only without waiting: this request holds sets already. Its own are passed over.
            let set = self.table.try_lock(self.next_set());
            let freed = set.map_or(0, |set| self.prey_on(&set, prey, now));
            if freed > 0 {
                in_vain = 0;
                let handle = self.arena.allocate(words, &self.budget);
                if handle.is_some() {
                    return handle;
                }
            } else {
                in_vain += 1;
                if in_vain == prey.patience() {
                    return None;
                }
            }
        }
        None
    }

    /// Moves the hand on by a set.
    fn next_set(&self) -> SetId {
        // Relaxed: two that look at the same set do no harm.
        let turn = self.hand.fetch_add(1, Ordering::Relaxed);
        let shards = u64::from(self.table.shards());
        let below = |n: u64, end: u64| u32::try_from(n % end).expect("below a size");
        let shard = below(turn, shards);
        let set = below(turn / shards, u64::from(self.table.size(shard)));
        SetId { shard, set }
    }

    /// Frees blocks of a set and says how many.
    fn prey_on(&self, set: &LockedSet<'_>, prey: Prey, now: Time) -> usize {
        let boxed = (0..WAYS).filter(|&slot| {
            let tag = set.tag(slot);
            !tag.is_empty() && tag.form() == Form::Boxed
        });
        match prey {
            Prey::Expired => boxed
                .filter(|&slot| self.is_free(set, slot, now))
                .map(|slot| self.vacate(set, slot))
                .count(),
            Prey::Live => self
                .evict(boxed.map(|slot| (set, slot)), now)
                .iter()
                .count(),
        }
    }
}
