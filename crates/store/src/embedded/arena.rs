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

/// The most units there are: two numbers of one, plus 1, make a word.
const MOST_UNITS: usize = u32::MAX as usize - 1;

/// Units whose edges one word tells.
const EDGES: usize = u64::BITS as usize;

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

/// The free blocks, by length. A free block is its own bookkeeping: its first word links it to
/// others of its length, and the second word of its first and of its last unit is its length.
#[derive(Debug)]
struct FreeLists {
    /// The start of the first free block of each length.
    heads: BTreeMap<usize, usize>,
    /// A bit for each unit: whether a free block begins or ends there.
    edges: Vec<u64>,
    /// The first unit that was never allocated.
    fresh: usize,
}

/// The neighbours of a free block in its list.
#[derive(Clone, Copy)]
struct Links {
    previous: Option<usize>,
    next: Option<usize>,
}

// === impl Arena ===

impl Arena {
    /// An arena for at most `max_bytes`; `None` if the system does not give out so much.
    pub(super) fn try_new(max_bytes: usize) -> Option<Self> {
        let units = (max_bytes / (UNIT_WORDS * 8)).min(MOST_UNITS);
        Some(Self {
            words: zeroed_words(units * UNIT_WORDS)?,
            free: Mutex::new(FreeLists {
                heads: BTreeMap::new(),
                edges: vec![0; units.div_ceil(EDGES)],
                fresh: 0,
            }),
        })
    }

    /// A small arena.
    #[cfg(test)]
    pub(super) fn new(max_bytes: usize) -> Self {
        Self::try_new(max_bytes).expect("a little memory")
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
            .or_else(|| self.split(&mut free, length))
            .or_else(|| self.extend(&mut free, length, budget))?;
        drop(free);
        self.block(handle)
            .words
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
        Some(handle)
    }

    /// Frees a block, and makes it one with the free ones next to it.
    pub(super) fn free(&self, handle: Handle) {
        let Handle {
            mut start,
            mut length,
        } = handle;
        let mut free = self.lock();
        if let Some(before) = start.checked_sub(1).filter(|&unit| free.is_edge(unit)) {
            let joined = self.length_at(before);
            start -= joined;
            length += joined;
            self.unlink(
                &mut free,
                Handle {
                    start,
                    length: joined,
                },
            );
        }
        let after = handle.start + handle.length;
        if free.is_edge(after) {
            let joined = self.length_at(after);
            length += joined;
            self.unlink(
                &mut free,
                Handle {
                    start: after,
                    length: joined,
                },
            );
        }
        self.push(&mut free, Handle { start, length });
    }

    pub(super) fn block(&self, handle: Handle) -> Block<'_> {
        let start = handle.start * UNIT_WORDS;
        Block {
            words: &self.words[start..start + handle.length * UNIT_WORDS],
        }
    }

    /// Takes a free block of just that length.
    fn pop(&self, free: &mut FreeLists, length: usize) -> Option<Handle> {
        let start = *free.heads.get(&length)?;
        let handle = Handle { start, length };
        self.unlink(free, handle);
        Some(handle)
    }

    /// Puts a block first in the list of its length.
    fn push(&self, free: &mut FreeLists, handle: Handle) {
        let Handle { start, length } = handle;
        let previous = None;
        let next = free.heads.insert(length, start);
        self.put_links(start, Links { previous, next });
        if let Some(next) = next {
            let links = self.links(next);
            let previous = Some(start);
            self.put_links(next, Links { previous, ..links });
        }
        for edge in [start, handle.last()] {
            self.unit(edge).put(1, length as u64);
            free.set_edge(edge);
        }
    }

    /// Takes a block out of the list of its length.
    fn unlink(&self, free: &mut FreeLists, handle: Handle) {
        let Links { previous, next } = self.links(handle.start);
        match (previous, next) {
            (Some(unit), _) => self.put_links(
                unit,
                Links {
                    next,
                    ..self.links(unit)
                },
            ),
            (None, Some(unit)) => {
                free.heads.insert(handle.length, unit);
            }
            (None, None) => {
                free.heads.remove(&handle.length);
            }
        }
        if let Some(unit) = next {
            self.put_links(
                unit,
                Links {
                    previous,
                    ..self.links(unit)
                },
            );
        }
        free.clear_edge(handle.start);
        free.clear_edge(handle.last());
    }

    fn links(&self, start: usize) -> Links {
        let word = self.unit(start).get(0);
        let unit = |half: u64| usize::try_from(half).ok()?.checked_sub(1);
        Links {
            previous: unit(word >> 32),
            next: unit(word & u64::from(u32::MAX)),
        }
    }

    fn put_links(&self, start: usize, links: Links) {
        let half = |unit: Option<usize>| unit.map_or(0, |unit| unit as u64 + 1);
        let word = (half(links.previous) << 32) | half(links.next);
        self.unit(start).put(0, word);
    }

    /// The length of the free block that has an edge at `unit`.
    fn length_at(&self, unit: usize) -> usize {
        usize::try_from(self.unit(unit).get(1)).expect("written by `push`")
    }

    fn unit(&self, start: usize) -> Block<'_> {
        self.block(Handle { start, length: 1 })
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

// === impl FreeLists ===

impl FreeLists {
    fn is_edge(&self, unit: usize) -> bool {
        let word = self.edges.get(unit / EDGES).copied().unwrap_or(0);
        word >> (unit % EDGES) & 1 == 1
    }

    fn set_edge(&mut self, unit: usize) {
        self.edges[unit / EDGES] |= 1 << (unit % EDGES);
    }

    fn clear_edge(&mut self, unit: usize) {
        self.edges[unit / EDGES] &= !(1 << (unit % EDGES));
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

    /// The last unit.
    const fn last(self) -> usize {
        self.start + self.length - 1
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

#[cfg(all(test, not(loom)))]
mod tests;
