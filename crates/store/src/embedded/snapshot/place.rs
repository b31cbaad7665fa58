//! Finding a place for a counter that was read.

use tidegate_algorithms::Time;

use super::super::arena::Block;
use super::super::block_counts::BlockCounts;
use super::super::block_log::BlockLog;
use super::super::core::Core;
use super::super::grow::Growth;
use super::super::layout::{Layout, Shape};
use super::super::locks::{Locks, Place};
use super::super::state::{EXPIRES, WIDE_WORDS, narrow_expires_at};
use super::super::table::Home;
use super::super::tag::{EvictionRank, Pass, Tag};

/// A counter that was read, without its state.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) tag: Tag,
    pub(super) now: Time,
    /// The most sets that its shard may grow to for it.
    pub(super) most_sets: u32,
}

/// What became of a counter.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// It is there.
    Placed,
    /// It is there in the place of another one.
    Displaced,
    /// It says no more than none does.
    Expired,
    /// There is no room for it.
    Dropped,
}

/// A block that no algorithm can have written.
pub(super) struct Unsound;

/// A slot for a counter, held.
struct Room<'t> {
    locks: Locks<'t>,
    at: Place,
    fate: Fate,
}

// === impl Entry ===

impl Entry {
    /// Puts a counter whose state is one word.
    pub(super) fn put_narrow(self, core: &Core, state: u64, layout: Layout) -> Fate {
        let expires_at = narrow_expires_at(state, layout);
        if expires_at <= self.now {
            return Fate::Expired;
        }
        self.room(core, expires_at).map_or(Fate::Dropped, |room| {
            room.put(core, state, self.tag);
            room.fate
        })
    }

    /// Puts a counter whose state is a block of those words.
    pub(super) fn put_boxed(
        self,
        core: &Core,
        words: &[[u8; 8]],
        shape: Shape,
    ) -> Result<Fate, Unsound> {
        // Every block has so many, those of logs and sub-windows, too.
        if words.len() < WIDE_WORDS {
            return Err(Unsound);
        }
        let expires_at = Time::from_nanos(u64::from_le_bytes(words[EXPIRES]));
        if expires_at <= self.now {
            return Ok(Fate::Expired);
        }
        let Some(room) = self.room(core, expires_at) else {
            return Ok(Fate::Dropped);
        };
        let Some(handle) = core.allocate(words.len(), self.now) else {
            return Ok(Fate::Dropped);
        };
        let word = |index: usize| u64::from_le_bytes(words[index]);
        let block = core.fill_block(handle, shape, words.len(), word);
        if !is_sound(block, shape) {
            return Err(Unsound);
        }
        room.put(core, handle.to_word(), self.tag);
        Ok(room.fate)
    }

    /// A slot to use in one of the two sets of the counter, made if need be as for a new one.
    fn room(self, core: &Core, expires_at: Time) -> Option<Room<'_>> {
        let mut is_at_cap = false;
        loop {
            let home = core.table.home(self.hash);
            let mut ids = [home.primary, home.secondary];
            ids.sort_unstable();
            let Some(locks) = Locks::take(&core.table, &ids) else {
                continue;
            };
            // Two that the larger store before this one told apart share a counter from now on.
            if (0..ids.len()).any(|held| locks.set(held).find(self.tag).is_some()) {
                return None;
            }
            let shard = home.primary.shard;
            is_at_cap |= !core.can_grow(shard) || home.size >= self.most_sets;
            let free = core.free_room(&locks, &home, &[], self.now);
            let free = free.or_else(|| core.moved_room(&locks, &home, &[], self.now));
            // One that was in use takes the room of one that was not, as it would if it were new.
            let evicts = is_at_cap && self.rank(self.tag) == EvictionRank::InUse;
            let free = free.or_else(|| {
                let evicted = || core.evicted_room(&locks, &home, &[], self.now);
                evicts.then(evicted).flatten()
            });
            if let Some(at) = free {
                let fate = Fate::Placed;
                return Some(Room { locks, at, fate });
            }
            if is_at_cap {
                return self.displace(core, locks, &home, expires_at);
            }
            drop(locks);
            is_at_cap = core.grow(shard, home.size, self.now) == Growth::AtCap;
        }
    }

    /// Takes the slot of the counter that is evicted first and, among those, expires first, if it comes before this one in that order.
    fn displace<'t>(
        self,
        core: &Core,
        locks: Locks<'t>,
        home: &Home,
        expires_at: Time,
    ) -> Option<Room<'t>> {
        let order = |at: &Place| {
            let set = locks.set(at.held);
            let (tag, state) = (set.tag(at.slot), set.state(at.slot));
            (self.rank(tag), core.expires_at(tag, state))
        };
        let at = locks
            .places([home.primary, home.secondary])
            .min_by_key(order)
            .filter(|first| order(first) < (self.rank(self.tag), expires_at))?;
        let fate = Fate::Displaced;
        Some(Room { locks, at, fate })
    }

    fn rank(self, tag: Tag) -> EvictionRank {
        tag.rank(Pass::at(self.now))
    }
}

// === impl Room ===

impl Room<'_> {
    fn put(&self, core: &Core, state: u64, tag: Tag) {
        let set = self.locks.set(self.at.held);
        core.vacate(set, self.at.slot);
        set.put_state(self.at.slot, state);
        set.put_tag(self.at.slot, tag);
    }
}

/// Whether a block of that shape can be worked on.
fn is_sound(block: Block<'_>, shape: Shape) -> bool {
    match shape {
        Shape::Instant | Shape::Window | Shape::Portion | Shape::Pair => true,
        Shape::Log => BlockLog::new(block).is_sound(),
        Shape::Counts => BlockCounts::is_sound(block),
    }
}
