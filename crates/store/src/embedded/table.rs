//! The table: sets of slots, one set a cache line, each with a lock of its own.
//!
//! A key belongs to one shard for good. A shard has a number of sets that grows in small steps; a
//! key lies in one of two of them, its primary or its secondary. Whoever creates a key holds the
//! lock of its primary set, whoever moves it holds both, whoever removes it that of the set it lies
//! in. So one who locks the primary set and does not find the key there finds it in the secondary
//! or nowhere.
//!
//! Locks are taken in the order of [`SetId`]; out of order only without waiting. A shard changes
//! its size only while all its sets are locked, so a size read before a lock and found unchanged
//! after it holds as long as the lock.
//!
//! A set that a shard gives away stays locked, whatever its memory is used for then: the arena leaves the lock bit
//! of every line as it is. So a thread that has read an old size never gets the lock of a set that is none any more.
//!
//! The memory of all shards lies interleaved, `[layer][shard][set]`, in one range that is backed by
//! pages only where it has been touched: a step of all shards together, a layer, is dense, whatever the
//! sizes of the machine's pages. The layers that the table does not need are the [arena](super::arena)'s.

use super::sync::{AtomicU32, AtomicU64, Ordering, wait, zeroed_words};
use super::tag::{FINGERPRINT_BITS, LOCK, Pass, Tag};

/// Slots in a set: four of two words are a cache line.
pub(super) const WAYS: usize = if cfg!(loom) { 2 } else { 4 };

/// Sets a shard grows by. Small, so that memory follows the number of keys closely.
pub(super) const STEP_SETS: u32 = if cfg!(loom) { 2 } else { 8 };

/// Words in a set.
pub(super) const SET_WORDS: usize = WAYS * 2;

/// Bytes in a set.
pub(super) const SET_BYTES: usize = SET_WORDS * 8;

/// Bytes of a shard in a layer: what it takes from the start and with each step of growth.
pub(super) const STEP_BYTES: usize = STEP_SETS as usize * SET_BYTES;

/// The most bits of a shard's number.
pub(super) const MOST_SHARD_BITS: u32 = 20;

/// The most bytes a shard may have: what one growth step has to go through.
const SHARD_BYTES: usize = if cfg!(loom) { 256 } else { 64 * 1024 };

/// Bits of a fingerprint that choose a set: enough for the largest shard, twice.
pub(super) const CHOICE_BITS: u32 = FINGERPRINT_BITS / 2;

/// The sets of all shards.
#[derive(Debug)]
pub(super) struct Table {
    words: Box<[AtomicU64]>,
    /// Where the first set begins, so that no set straddles two cache lines.
    first: usize,
    /// Sets in use, for each shard.
    sizes: Box<[AtomicU32]>,
    shard_bits: u32,
    max_sets: u32,
}

/// Names a set. Locks are taken in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetId {
    pub(super) shard: u32,
    pub(super) set: u32,
}

/// The two sets in which a key may lie, as long as its shard has `size` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) primary: SetId,
    pub(super) secondary: SetId,
    pub(super) size: u32,
}

/// A set that this thread has locked, until dropped.
#[derive(Debug)]
pub(super) struct LockedSet<'t> {
    id: SetId,
    words: &'t [AtomicU64; SET_WORDS],
}

// === impl Table ===

impl Table {
    /// A table that may grow to `max_bytes`, with one step of sets in each shard; `None` if the
    /// system does not give out so much.
    pub(super) fn try_new(max_bytes: usize) -> Option<Self> {
        let shards = (max_bytes / SHARD_BYTES).max(1).next_power_of_two();
        let shard_bits = shards.ilog2().min(MOST_SHARD_BITS);
        let shards = 1_usize << shard_bits;
        let steps = (max_bytes / shards / STEP_BYTES).max(1);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let max_sets = steps.min(u32::MAX / STEP_SETS) * STEP_SETS;
        let words = zeroed_words(shards * max_sets as usize * SET_WORDS + SET_WORDS)?;
        let misplaced = (words.as_ptr().addr() / 8) % SET_WORDS;
        Some(Self {
            words,
            first: (SET_WORDS - misplaced) % SET_WORDS,
            sizes: (0..shards).map(|_| AtomicU32::new(STEP_SETS)).collect(),
            shard_bits,
            max_sets,
        })
    }

    /// Gives every shard all the sets that it may have.
    pub(super) fn fill(&self) {
        for shard in 0..self.shards() {
            self.resize(shard, self.max_sets);
        }
    }

    pub(super) fn shards(&self) -> u32 {
        1 << self.shard_bits
    }

    /// How many bits the number of a shard has.
    pub(super) fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    /// The layers of memory: each has a step of sets for every shard.
    pub(super) fn layers(&self) -> u32 {
        self.max_sets / STEP_SETS
    }

    /// Bytes in a layer.
    pub(super) fn layer_bytes(&self) -> usize {
        self.sizes.len() * STEP_BYTES
    }

    /// All layers, those that are not the table's as well.
    #[inline]
    pub(super) fn range(&self) -> &[AtomicU64] {
        let words = self.layers() as usize * self.layer_bytes() / 8;
        &self.words[self.first..self.first + words]
    }

    /// Bytes of all sets in use.
    pub(super) fn used_bytes(&self) -> u64 {
        let sets = (0..self.shards()).map(|shard| u64::from(self.size(shard)));
        sets.sum::<u64>() * SET_BYTES as u64
    }

    /// The most sets a shard may have.
    pub(super) fn max_sets(&self) -> u32 {
        self.max_sets
    }

    /// The most slots of all shards.
    pub(super) fn max_slots(&self) -> u64 {
        self.sizes.len() as u64 * u64::from(self.max_sets) * WAYS as u64
    }

    /// Sets in use in a shard.
    #[inline]
    pub(super) fn size(&self, shard: u32) -> u32 {
        // Relaxed: it is read again under a lock, and the lock orders it.
        self.sizes[shard as usize].load(Ordering::Relaxed)
    }

    /// Sets the number of sets in use. The caller holds all of them, old and new.
    pub(super) fn resize(&self, shard: u32, size: u32) {
        self.sizes[shard as usize].store(size, Ordering::Relaxed);
    }

    /// The shard of a hash, its highest bits, of which a slot need not keep a copy; and its size.
    #[inline]
    pub(super) fn shard(&self, hash: u64) -> (u32, u32) {
        // In two steps, for a table of one shard is shifted by all 64 bits.
        let shard = hash >> 1 >> (u64::BITS - 1 - self.shard_bits);
        let shard = u32::try_from(shard).expect("at most 20 bits");
        (shard, self.size(shard))
    }

    /// Where a key with that hash lies now.
    pub(super) fn home(&self, hash: u64) -> Home {
        let (shard, size) = self.shard(hash);
        let (primary, secondary) = choices(hash, size);
        Home {
            primary: SetId {
                shard,
                set: primary,
            },
            secondary: SetId {
                shard,
                set: secondary,
            },
            size,
        }
    }

    /// Locks a set, waiting for its holder; `None` if its shard has given it away.
    #[inline]
    pub(super) fn lock(&self, id: SetId) -> Option<LockedSet<'_>> {
        let mut turn = 0;
        loop {
            let locked = self.try_lock(id);
            if locked.is_some() || id.set >= self.size(id.shard) {
                return locked;
            }
            wait(&mut turn);
        }
    }

    /// Takes a set above the size of its shard, all of which is held, in a layer of the table's.
    pub(super) fn adopt(&self, id: SetId) -> LockedSet<'_> {
        let words = self.set(id);
        // No other thread can have it: it was never in use, or is locked since it was given away.
        words[0].store(LOCK, Ordering::Relaxed);
        LockedSet { id, words }
    }

    /// Locks a set if nobody holds it.
    #[inline]
    pub(super) fn try_lock(&self, id: SetId) -> Option<LockedSet<'_>> {
        let words = self.set(id);
        let word = words[0].load(Ordering::Relaxed);
        let free = word & LOCK == 0
            && words[0]
                .compare_exchange(word, word | LOCK, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        // Not `then_some`, which would make a guard in any case, and drop it: unlock what others hold.
        free.then(|| LockedSet { id, words })
    }

    #[inline]
    fn set(&self, id: SetId) -> &[AtomicU64; SET_WORDS] {
        let step = (id.set / STEP_SETS) as usize * self.sizes.len() + id.shard as usize;
        let place = step * STEP_SETS as usize + (id.set % STEP_SETS) as usize;
        let words = self.words[self.first + place * SET_WORDS..].first_chunk();
        words.expect("a set of a shard lies within the table")
    }
}

// === impl LockedSet ===

impl LockedSet<'_> {
    pub(super) fn id(&self) -> SetId {
        self.id
    }

    #[inline]
    pub(super) fn tag(&self, slot: usize) -> Tag {
        Tag::from_word(self.words[slot * 2].load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn state(&self, slot: usize) -> u64 {
        self.words[slot * 2 + 1].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn put_tag(&self, slot: usize, tag: Tag) {
        let lock = if slot == 0 { LOCK } else { 0 };
        self.words[slot * 2].store(tag.word() | lock, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn put_state(&self, slot: usize, state: u64) {
        self.words[slot * 2 + 1].store(state, Ordering::Relaxed);
    }

    /// Leaves a set locked for good: its shard gives it away.
    pub(super) fn give_away(self) {
        std::mem::forget(self);
    }

    /// Replaces the mark of a slot by that of an idle counter if it is old in `pass`, and gives the tag.
    pub(super) fn age(&self, slot: usize, pass: Pass) -> Tag {
        let tag = self.tag(slot);
        let aged = tag.aged(pass);
        if aged != tag {
            self.put_tag(slot, aged);
        }
        aged
    }

    /// The slot of the counter that `tag` names.
    #[inline]
    pub(super) fn find(&self, tag: Tag) -> Option<usize> {
        (0..WAYS).find(|&slot| self.tag(slot).is_same_counter(tag))
    }
}

impl Drop for LockedSet<'_> {
    #[inline]
    fn drop(&mut self) {
        let word = self.words[0].load(Ordering::Relaxed);
        self.words[0].store(word & !LOCK, Ordering::Release);
    }
}

/// The two sets, of `size`, that the fingerprint of a hash chooses. Never the same one.
#[inline]
pub(super) fn choices(hash: u64, size: u32) -> (u32, u32) {
    let scale = |bits: u64| {
        let bits = bits & ((1 << CHOICE_BITS) - 1);
        u32::try_from((bits * u64::from(size)) >> CHOICE_BITS).expect("below the size")
    };
    let (primary, secondary) = (scale(hash), scale(hash >> CHOICE_BITS));
    if primary == secondary {
        (primary, (primary + 1) % size)
    } else {
        (primary, secondary)
    }
}
