//! Blocks of words for the states that do not fit a slot: logs, sub-windows, wide numbers.
//!
//! A block belongs to one slot and is read and written only under the lock of that slot's set. Its
//! first word is when its state expires, so that anybody may tell whether the slot is free. The
//! arena's own lock is taken only to allocate and to free, never to decide.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::budget::Budget;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering, zeroed_words};

/// Words in a unit, the grain of allocation.
const UNIT_WORDS: usize = 2;

/// Bits of a handle that hold the length.
const LENGTH_BITS: u32 = 24;

/// All blocks.
#[derive(Debug)]
pub(super) struct Arena {
    words: Box<[AtomicU64]>,
    free: Mutex<FreeLists>,
}

/// A block, as the state word of a boxed slot names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    /// In units from the start of the arena.
    start: usize,
    /// In units.
    length: usize,
}

/// The words of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    words: &'a [AtomicU64],
}

#[derive(Debug)]
struct FreeLists {
    /// Free blocks by length. The first word of a free block is the start of the next one plus 1,
    /// or 0, so the lists need no memory of their own.
    heads: BTreeMap<usize, usize>,
    /// The first unit that was never allocated.
    fresh: usize,
}

// === impl Arena ===

impl Arena {
    /// An arena for at most `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        let units = max_bytes / (UNIT_WORDS * 8);
        Self {
            words: zeroed_words(units * UNIT_WORDS),
            free: Mutex::new(FreeLists {
                heads: BTreeMap::new(),
                fresh: 0,
            }),
        }
    }

    /// Allocates a block of at least `words` words, all zero; `None` when there is no room left.
    pub(super) fn allocate(&self, words: usize, budget: &Budget) -> Option<Handle> {
        let length = words.div_ceil(UNIT_WORDS).max(1);
        if length >= 1 << LENGTH_BITS {
            return None;
        }
        let mut free = self.lock();
        let handle = self
            .pop(&mut free, length)
            .or_else(|| self.extend(&mut free, length, budget))
            .or_else(|| self.split(&mut free, length))?;
        drop(free);
        self.block(handle)
            .words
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
        Some(handle)
    }

    /// Frees a block.
    pub(super) fn free(&self, handle: Handle) {
        self.push(&mut self.lock(), handle);
    }

    pub(super) fn block(&self, handle: Handle) -> Block<'_> {
        let start = handle.start * UNIT_WORDS;
        Block {
            words: &self.words[start..start + handle.length * UNIT_WORDS],
        }
    }

    fn pop(&self, free: &mut FreeLists, length: usize) -> Option<Handle> {
        let start = *free.heads.get(&length)?;
        let handle = Handle { start, length };
        match self.block(handle).get(0).checked_sub(1) {
            Some(next) => free.heads.insert(length, usize::try_from(next).ok()?),
            None => free.heads.remove(&length),
        };
        Some(handle)
    }

    fn push(&self, free: &mut FreeLists, handle: Handle) {
        let next = free.heads.insert(handle.length, handle.start);
        self.block(handle)
            .put(0, next.map_or(0, |start| start as u64 + 1));
    }

    fn extend(&self, free: &mut FreeLists, length: usize, budget: &Budget) -> Option<Handle> {
        let handle = Handle {
            start: free.fresh,
            length,
        };
        let fits = (handle.start + length) * UNIT_WORDS <= self.words.len();
        if !fits || !budget.take(handle.bytes()) {
            return None;
        }
        free.fresh += length;
        Some(handle)
    }

    /// Cuts a block out of the smallest larger one.
    fn split(&self, free: &mut FreeLists, length: usize) -> Option<Handle> {
        let larger = *free.heads.range(length + 1..).next()?.0;
        let whole = self.pop(free, larger)?;
        let rest = Handle {
            start: whole.start + length,
            length: larger - length,
        };
        self.push(free, rest);
        Some(Handle {
            start: whole.start,
            length,
        })
    }

    fn lock(&self) -> MutexGuard<'_, FreeLists> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Handle ===

impl Handle {
    pub(super) fn from_word(word: u64) -> Self {
        let start = usize::try_from(word >> LENGTH_BITS).expect("40 bits");
        let length = usize::try_from(word & ((1 << LENGTH_BITS) - 1)).expect("24 bits");
        Self { start, length }
    }

    pub(super) fn to_word(self) -> u64 {
        ((self.start as u64) << LENGTH_BITS) | self.length as u64
    }

    fn bytes(self) -> u64 {
        (self.length * UNIT_WORDS * 8) as u64
    }
}

// === impl Block ===

impl Block<'_> {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    pub(super) fn get(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    pub(super) fn put(&self, index: usize, word: u64) {
        self.words[index].store(word, Ordering::Relaxed);
    }
}
