//! Blocks of words for the states that do not fit a slot: logs, sub-windows, wide numbers.
//!
//! A block belongs to one slot and is read and written only under the lock of that slot's set. Its
//! first word is when its state expires, so that anybody may tell whether the slot is free. The
//! arena's own lock is taken only to allocate and to free, never to decide.
//!
//! A block lies in one piece where there is one that is large enough. Where there is none, it is a chain of several:
//! the last word of a piece names the next one. So free memory serves every need, however it is cut up.

mod block;
mod free;

use std::sync::PoisonError;

use tidegate_algorithms::Time;

use self::free::FreeLists;
use super::border::{Border, Side};
use super::state::EXPIRES;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

pub(super) use self::block::Block;

/// Words in a unit, the grain of allocation.
const UNIT_WORDS: usize = 2;

/// Bytes in a unit.
const UNIT_BYTES: usize = UNIT_WORDS * 8;

/// The fewest units of a piece: room for a state of fixed size.
const LEAST_UNITS: usize = if cfg!(loom) { 1 } else { 3 };

/// Bits of a handle that hold the length.
const LENGTH_BITS: u32 = 24;

/// Marks the handle of a piece whose last word is the handle of the next one.
const CHAINED: u64 = 1 << LENGTH_BITS;

/// Where the start of a piece lies in its handle.
const START_SHIFT: u32 = LENGTH_BITS + 1;

/// The most units there are: two numbers of one, plus 1, make a word.
const MOST_UNITS: usize = u32::MAX as usize - 1;

/// The bookkeeping of all blocks.
#[derive(Debug)]
pub(super) struct ArenaSpace {
    free: Mutex<FreeLists>,
    /// Units in a layer.
    layer_units: usize,
    /// Words of the range below those that blocks can lie in.
    words_below: usize,
}

/// All blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arena<'a> {
    words: &'a [AtomicU64],
    space: &'a ArenaSpace,
    border: &'a Border,
}

/// A piece of memory, as the state word of a boxed slot names it: all of a block, or the first piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    /// In units from the start of the arena.
    start: usize,
    /// In units.
    length: usize,
    is_chained: bool,
}

// === impl ArenaSpace ===

impl ArenaSpace {
    /// The bookkeeping of an arena at the end of a range of `layers`, each of `layer_bytes`.
    pub(super) fn new(layers: u32, layer_bytes: usize) -> Self {
        let layer_units = layer_bytes / UNIT_BYTES;
        let all_units = layers as usize * layer_units;
        let units = all_units.min(MOST_UNITS);
        Self {
            free: Mutex::new(FreeLists::new(units)),
            layer_units,
            words_below: (all_units - units) * UNIT_WORDS,
        }
    }

    /// The blocks in a range of memory.
    #[inline]
    pub(super) fn arena<'a>(&'a self, range: &'a [AtomicU64], border: &'a Border) -> Arena<'a> {
        Arena {
            words: &range[self.words_below..],
            space: self,
            border,
        }
    }

    /// Bytes that were allocated at some time, and not released.
    pub(super) fn used_bytes(&self) -> u64 {
        let free = self.lock();
        ((free.units() - free.fresh()) * UNIT_BYTES) as u64
    }

    fn lock(&self) -> MutexGuard<'_, FreeLists> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Arena ===

impl<'a> Arena<'a> {
    /// Allocates a block of at least `words` words, all zero; `None` when there is no room left.
    pub(super) fn allocate(self, words: usize) -> Option<Handle> {
        let length = words.div_ceil(UNIT_WORDS).max(LEAST_UNITS);
        if length >= 1 << LENGTH_BITS {
            return None;
        }
        let mut free = self.space.lock();
        let handle = free
            .take(self, length)
            .or_else(|| self.extend(&mut free, length))
            .or_else(|| self.chain(&mut free, words))?;
        drop(free);
        self.block(handle).clear();
        Some(handle)
    }

    /// Frees all pieces of a block.
    pub(super) fn free(self, handle: Handle) {
        let mut free = self.space.lock();
        let mut next = Some(handle);
        while let Some(piece) = next {
            next = next_piece(self.words, piece);
            free.put(self, piece.alone());
        }
    }

    /// When the state of a block expires. Its first piece tells, so the others are not looked at.
    pub(super) fn expires_at(self, handle: Handle) -> Time {
        Time::from_nanos(piece(self.words, handle)[EXPIRES].load(Ordering::Relaxed))
    }

    pub(super) fn block(self, handle: Handle) -> Block<'a> {
        Block::new(self, handle)
    }

    /// Takes memory that was never allocated, from the top downwards.
    fn extend(self, free: &mut FreeLists, length: usize) -> Option<Handle> {
        let start = free.fresh().checked_sub(length)?;
        let layers = (free.units() - start).div_ceil(self.space.layer_units);
        let layers = u32::try_from(layers).unwrap_or(u32::MAX);
        self.border
            .claim(Side::Arena, layers)
            .then(|| free.extend_to(start))
    }

    /// Takes what is left of the lowest layer.
    fn extend_to_border(self, free: &mut FreeLists) -> Option<Handle> {
        let layers = self.border.taken(Side::Arena) as usize;
        let lowest = free.units().saturating_sub(layers * self.space.layer_units);
        let length = free.fresh().saturating_sub(lowest);
        (length >= LEAST_UNITS).then(|| free.extend_to(lowest))
    }

    /// Makes a block of `words` words of several free pieces, the largest first.
    fn chain(self, free: &mut FreeLists, words: usize) -> Option<Handle> {
        if let Some(rest) = self.extend_to_border(free) {
            free.put(self, rest);
        }
        let mut pieces: Vec<Handle> = Vec::new();
        let mut wanting = words;
        // Each piece but the last has a word less for its share.
        while wanting > 0 && free.free_words() >= wanting {
            let units = wanting.div_ceil(UNIT_WORDS).max(LEAST_UNITS);
            let Some(piece) = free.take(self, units).or_else(|| free.take_largest(self)) else {
                break;
            };
            let share = piece.words();
            wanting = if share >= wanting {
                0
            } else {
                wanting - (share - 1)
            };
            pieces.push(piece);
        }
        if wanting > 0 {
            for piece in pieces {
                free.put(self, piece);
            }
            return None;
        }
        let mut next = pieces.pop()?;
        for link in pieces.into_iter().rev() {
            piece(self.words, link)[link.words() - 1].store(next.to_word(), Ordering::Relaxed);
            next = Handle {
                is_chained: true,
                ..link
            };
        }
        Some(next)
    }
}

// === impl Handle ===

impl Handle {
    const fn new(start: usize, length: usize) -> Self {
        Self {
            start,
            length,
            is_chained: false,
        }
    }

    pub(super) fn from_word(word: u64) -> Self {
        let start = usize::try_from(word >> START_SHIFT).expect("39 bits");
        let length = usize::try_from(word & (CHAINED - 1)).expect("24 bits");
        Self {
            start,
            length,
            is_chained: word & CHAINED != 0,
        }
    }

    pub(super) fn to_word(self) -> u64 {
        let chained = if self.is_chained { CHAINED } else { 0 };
        ((self.start as u64) << START_SHIFT) | chained | self.length as u64
    }

    /// The same piece, by itself.
    const fn alone(self) -> Self {
        Self::new(self.start, self.length)
    }

    /// The words of the piece.
    const fn words(self) -> usize {
        self.length * UNIT_WORDS
    }

    /// The last unit.
    const fn last(self) -> usize {
        self.start + self.length - 1
    }
}

/// All words of a piece.
#[inline]
fn piece(words: &[AtomicU64], handle: Handle) -> &[AtomicU64] {
    let start = handle.start * UNIT_WORDS;
    &words[start..start + handle.words()]
}

/// The piece after another one in a block.
#[inline]
fn next_piece(words: &[AtomicU64], handle: Handle) -> Option<Handle> {
    let last = piece(words, handle).last().filter(|_| handle.is_chained)?;
    Some(Handle::from_word(last.load(Ordering::Relaxed)))
}

#[cfg(test)]
pub(super) mod test_util;

#[cfg(all(test, not(loom)))]
mod tests;
