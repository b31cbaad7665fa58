//! The log of one caller in a block: a ring of 32-bit stamps.

use tidegate_algorithms::sliding_log::{Log, LogMut};

use super::arena::Block;
use super::state::SOFT_PERIOD;

/// Where the newest stamp stands, whole.
const NEWEST: usize = SOFT_PERIOD + 1;
/// Where the length (high half) and the place of the oldest (low half) stand.
const EXTENT: usize = NEWEST + 1;
/// Where the stamps begin, two in a word.
const STAMPS: usize = EXTENT + 1;

/// A ring of stamps. A stamp keeps its low 32 bits: all are within 2^32 - 1 grains of the newest.
#[derive(Clone, Debug)]
pub(super) struct BlockLog<'a> {
    block: Block<'a>,
}

// === impl BlockLog ===

impl<'a> BlockLog<'a> {
    /// Words of a block with room for `entries`.
    pub(super) fn words(entries: u64) -> usize {
        STAMPS + usize::try_from(entries.div_ceil(2)).unwrap_or(usize::MAX / 2)
    }

    pub(super) fn new(block: Block<'a>) -> Self {
        Self { block }
    }

    /// How many entries there is room for.
    pub(super) fn room(&self) -> u64 {
        (self.block.len() - STAMPS) as u64 * 2
    }

    /// Whether the words of a block of unknown origin are a log.
    pub(super) fn is_sound(&self) -> bool {
        let stamps = || (0..self.len()).map(|n| self.nth_oldest(n));
        self.block.len() > STAMPS
            && self.len() <= self.room()
            && self.oldest() < self.room()
            && stamps().is_sorted()
    }

    pub(super) fn newest(&self) -> u64 {
        self.block.get(NEWEST)
    }

    /// Copies all of this log to an empty one that is large enough.
    pub(super) fn copy_to(&self, other: &mut BlockLog<'_>) {
        for n in 0..self.len() {
            if let Some(stamp) = self.nth_oldest(n) {
                other.push(stamp, 1);
            }
        }
    }

    /// Takes over a log from the `len` words of another block, which may have had another length.
    pub(super) fn take_over(&mut self, len: usize, word: impl Fn(usize) -> u64) {
        for index in 0..EXTENT {
            self.block.put(index, word(index));
        }
        let room = (len - STAMPS) as u64 * 2;
        let (entries, oldest) = (word(EXTENT) >> 32, word(EXTENT) & u64::from(u32::MAX));
        self.put_extent(entries, 0);
        // More than there is room for, as a made-up file may say, is found unsound.
        for n in 0..entries.min(room).min(self.room()) {
            let place = (oldest + n) % room;
            let pair = word(STAMPS + usize::try_from(place / 2).expect("within the block"));
            let low = if place.is_multiple_of(2) {
                pair
            } else {
                pair >> 32
            };
            self.put_low(n, low & u64::from(u32::MAX));
        }
    }

    fn oldest(&self) -> u64 {
        self.block.get(EXTENT) & u64::from(u32::MAX)
    }

    fn put_extent(&self, len: u64, oldest: u64) {
        self.block.put(EXTENT, (len << 32) | oldest);
    }

    /// The word and the shift of the `n`th oldest.
    fn place(&self, n: u64) -> (usize, u32) {
        let place = (self.oldest() + n) % self.room();
        let word = STAMPS + usize::try_from(place / 2).expect("within the block");
        (word, if place.is_multiple_of(2) { 0 } else { 32 })
    }

    /// The low 32 bits of the `n`th oldest.
    fn low(&self, n: u64) -> u64 {
        let (word, shift) = self.place(n);
        (self.block.get(word) >> shift) & u64::from(u32::MAX)
    }

    fn put_low(&self, n: u64, low: u64) {
        let (word, shift) = self.place(n);
        let kept = self.block.get(word) & !(u64::from(u32::MAX) << shift);
        self.block.put(word, kept | (low << shift));
    }
}

impl Log for BlockLog<'_> {
    fn len(&self) -> u64 {
        self.block.get(EXTENT) >> 32
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        if n >= self.len() {
            return None;
        }
        let newest = self.newest();
        let age = newest.wrapping_sub(self.low(n)) & u64::from(u32::MAX);
        Some(newest.saturating_sub(age))
    }
}

impl LogMut for BlockLog<'_> {
    fn drop_oldest(&mut self, n: u64) {
        let n = n.min(self.len());
        self.put_extent(self.len() - n, (self.oldest() + n) % self.room());
    }

    fn drop_newest(&mut self, n: u64) {
        let left = self.len().saturating_sub(n);
        let newest = left.checked_sub(1).and_then(|last| self.nth_oldest(last));
        self.put_extent(left, self.oldest());
        self.block.put(NEWEST, newest.unwrap_or(0));
    }

    fn remove(&mut self, first: u64, n: u64) {
        for place in first..self.len().saturating_sub(n) {
            self.put_low(place, self.low(place + n));
        }
        self.drop_newest(n);
    }

    fn push(&mut self, stamp: u64, n: u64) {
        let len = self.len();
        let n = n.min(self.room() - len);
        for place in len..len + n {
            self.put_low(place, stamp & u64::from(u32::MAX));
        }
        if n > 0 {
            self.block.put(NEWEST, stamp);
            self.put_extent(len + n, self.oldest());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
