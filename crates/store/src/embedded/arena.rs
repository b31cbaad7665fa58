//! Blocks of words for the states that do not fit a slot: logs, sub-windows, wide numbers.
//!
//! A block belongs to one slot and is read and written only under the lock of that slot's set. Its
//! first word is when its state expires, so that anybody may tell whether the slot is free. The
//! arena's own lock is taken only to allocate and to free, never to decide.
//!
//! A block lies in one piece where there is one that is large enough. Where there is none, it is a chain of several:
//! the last word of a piece names the next one. So free memory serves every need, however it is cut up.
//!
//! The arena gives its lowest layers back to the table once they are [cleared](Arena::clear_lowest) of blocks.

mod block;
mod free;
mod piece;

use std::sync::PoisonError;

use tidegate_algorithms::Time;

use self::block::pieces;
use self::free::{FreeLists, linked_words};
use self::piece::{Piece, words_for};
use super::border::{Border, Side};
use super::state::EXPIRES;
use super::sync::{AtomicU64, Mutex, MutexGuard};

pub(super) use self::block::Block;

/// Words in a unit, the grain of allocation.
const UNIT_WORDS: usize = 2;

/// Bytes in a unit.
const UNIT_BYTES: usize = UNIT_WORDS * 8;

/// The fewest units of a piece: room for a state of fixed size.
const LEAST_UNITS: usize = if cfg!(loom) { 2 } else { 3 };

/// Bits of a handle that hold the length.
const LENGTH_BITS: u32 = 24;

/// Marks the handle of a piece whose last word is the handle of the next one.
const CHAINED: u64 = 1 << LENGTH_BITS;

/// Where the start of a piece lies in its handle.
const START_SHIFT: u32 = LENGTH_BITS + 1;

/// The most units there are: two numbers of one, plus 1, make a word of 63 bits. Whole lines, for the first word of
/// the arena begins one.
const MOST_UNITS: usize = (1 << 31) - 64;

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

/// The lowest layers, if they are to be cleared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clearing<'a> {
    arena: Arena<'a>,
    /// The first unit above them; 0 if there are none.
    below: usize,
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
        let length = units_for(words);
        if length >= 1 << LENGTH_BITS {
            return None;
        }
        let mut free = self.space.lock();
        let mut handle = self.find(&mut free, words, length);
        if handle.is_none() && free.cleared_below() > 0 {
            free.clear_below(self, 0);
            handle = self.find(&mut free, words, length);
        }
        drop(free);
        let handle = handle?;
        self.block(handle).clear();
        Some(handle)
    }

    /// Frees all pieces of a block.
    pub(super) fn free(self, handle: Handle) {
        let mut free = self.space.lock();
        let mut next = Some(Piece::first(self.words, handle));
        while let Some(piece) = next {
            next = piece.next();
            free.put(self, piece.handle().alone());
        }
        self.give_back(&mut free);
    }

    /// Begins to clear the lowest layers, so that `kept` are left when no block lies there any more, and gives them
    /// back then. Ends when a block finds no room elsewhere.
    pub(super) fn clear_lowest(self, kept: u32) {
        let mut free = self.space.lock();
        let unit = free
            .units()
            .saturating_sub(kept as usize * self.space.layer_units);
        if free.fresh() < unit {
            free.clear_below(self, unit);
            self.give_back(&mut free);
        }
    }

    /// The blocks that must go for their layers to be given back.
    pub(super) fn clearing(self) -> Clearing<'a> {
        Clearing {
            arena: self,
            below: self.space.lock().cleared_below(),
        }
    }

    /// When the state of a block expires. Its first piece tells, so the others are not looked at.
    pub(super) fn expires_at(self, handle: Handle) -> Time {
        Time::from_nanos(Piece::first(self.words, handle).get(EXPIRES))
    }

    pub(super) fn block(self, handle: Handle) -> Block<'a> {
        Block::new(self, handle)
    }

    fn find(self, free: &mut FreeLists, words: usize, length: usize) -> Option<Handle> {
        free.take(self, length)
            .or_else(|| self.extend(free, length))
            .or_else(|| self.chain(free, words))
    }

    /// Takes memory below all that is allocated, unless layers are about to be given back.
    fn extend(self, free: &mut FreeLists, length: usize) -> Option<Handle> {
        if free.cleared_below() > 0 {
            return None;
        }
        let start = free.fresh().checked_sub(length)?;
        let layers = (free.units() - start).div_ceil(self.space.layer_units);
        let layers = u32::try_from(layers).unwrap_or(u32::MAX);
        self.border
            .claim(Side::Arena, layers)
            .then(|| free.extend_to(start))
    }

    /// Takes what is left of the lowest layer.
    fn extend_to_border(self, free: &mut FreeLists) -> Option<Handle> {
        if free.cleared_below() > 0 {
            return None;
        }
        let layers = self.border.taken(Side::Arena) as usize;
        let lowest = free.units().saturating_sub(layers * self.space.layer_units);
        let length = free.fresh().saturating_sub(lowest);
        (length >= LEAST_UNITS).then(|| free.extend_to(lowest))
    }

    /// Gives layers back that were to be cleared, once they are.
    fn give_back(self, free: &mut FreeLists) {
        if free.give_back(self) {
            let kept = (free.units() - free.fresh()) / self.space.layer_units;
            let kept = u32::try_from(kept).expect("no more than there were");
            self.border.release(Side::Arena, kept);
        }
    }

    /// Makes a block of `words` words of several free pieces, the largest first.
    fn chain(self, free: &mut FreeLists, words: usize) -> Option<Handle> {
        if let Some(rest) = self.extend_to_border(free) {
            free.put(self, rest);
        }
        if free.chain_words() < words {
            return None;
        }
        let mut pieces: Vec<Handle> = Vec::new();
        let mut wanting = words;
        while wanting > 0 {
            let piece = free.take(self, units_for(wanting));
            let piece = piece.or_else(|| free.take_largest(self))?;
            let is_last = Piece::later(self.words, piece).len() >= wanting;
            wanting = if is_last {
                0
            } else {
                wanting - linked_words(piece.length)
            };
            pieces.push(piece);
        }
        let last = pieces.pop()?;
        let join = |next, handle| Piece::first(self.words, handle).link_to(next);
        Some(pieces.into_iter().rev().fold(last, join))
    }
}

// === impl Clearing ===

impl Clearing<'_> {
    /// Whether there is nothing to clear.
    pub(super) fn is_over(self) -> bool {
        self.below == 0
    }

    /// Whether a block lies in the layers to clear.
    pub(super) fn concerns(self, handle: Handle) -> bool {
        let first = Piece::first(self.arena.words, handle);
        pieces(first).any(|piece| piece.handle().start < self.below)
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

/// The units of a piece that is a block with that many words.
fn units_for(words: usize) -> usize {
    words_for(words).div_ceil(UNIT_WORDS).max(LEAST_UNITS)
}

#[cfg(test)]
pub(super) mod test_util;

#[cfg(all(test, not(loom)))]
mod tests;
