//! A piece of memory, and the words in it that belong to a block.
//!
//! A layer may have been the table's, and a thread that has not noticed yet may still try to lock a set there. So the
//! bit that is the lock of a set stays set in the first word of every line. Those words of a piece have 63 bits of
//! their own, and their highest bits lie elsewhere. In a short piece that begins a block they lie in its first word, a
//! time, which is rounded up to 64 ns for it:
//!
//! ```text
//!  63     62 … 57        56 … 0
//! ┌──────┬──────────────┬─────────────────────┐
//! │ lock │ highest bits │ time in steps of 64 │
//! └──────┴──────────────┴─────────────────────┘
//! ```
//! In every other piece they lie together at its end, one word in 504:
//!
//! ```text
//! ┌───────────────────────────┬───────────────┬──────┐
//! │ own words                 │ highest bits  │ link │
//! └───────────────────────────┴───────────────┴──────┘
//! ```
//! Only a piece that is followed by another one of its block has a link.

use super::super::sync::{AtomicU64, Ordering};
use super::super::table::SET_WORDS;
use super::super::tag::LOCK;
use super::{Handle, UNIT_WORDS};

/// Highest bits that a word holds: one less than it has, as it may be the first of a line itself.
const BITS_IN_WORD: usize = 63;

/// Words of a piece whose highest bits, one for each line, take one more word.
const STRETCH: usize = BITS_IN_WORD * SET_WORDS;

/// Bits of the time in the first word of a block.
const TIME_BITS: usize = 57;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// Nanoseconds of a step of that time: with 57 bits it goes on until the year 2262.
const TIME_STEP: u64 = 64;

/// Words of the longest piece whose highest bits have room beside that time.
const SHORT_WORDS: usize = (BITS_IN_WORD - TIME_BITS) * SET_WORDS;

/// The words of one piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Those of the whole arena.
    words: &'a [AtomicU64],
    handle: Handle,
    /// Whether a block begins with it.
    is_first: bool,
}

// === impl Piece ===

impl<'a> Piece<'a> {
    /// The first piece of a block.
    #[inline]
    pub(super) fn first(words: &'a [AtomicU64], handle: Handle) -> Self {
        Self {
            words,
            handle,
            is_first: true,
        }
    }

    /// Another piece of a block.
    #[inline]
    pub(super) fn later(words: &'a [AtomicU64], handle: Handle) -> Self {
        Self {
            words,
            handle,
            is_first: false,
        }
    }

    /// The number of own words.
    #[inline]
    pub(super) fn len(self) -> usize {
        let words = self.linked_at();
        if self.is_short() {
            words
        } else {
            own_words(words)
        }
    }

    #[inline]
    pub(super) fn get(self, index: usize) -> u64 {
        let word = load(self.words, self.start() + index);
        if index == 0 && self.is_short() {
            return (word & TIME) * TIME_STEP;
        }
        if self.begins_line(index) {
            let (highest, bit) = self.highest(index);
            return word | (load(self.words, highest) >> bit << BITS_IN_WORD);
        }
        word
    }

    #[inline]
    pub(super) fn put(self, index: usize, word: u64) {
        let place = self.start() + index;
        if index == 0 && self.is_short() {
            let time = word.div_ceil(TIME_STEP).min(TIME);
            return store(self.words, place, load(self.words, place) & !TIME | time);
        }
        store(self.words, place, word);
        if self.begins_line(index) {
            let (highest, bit) = self.highest(index);
            let others = load(self.words, highest) & !(1 << bit);
            store(self.words, highest, others | (word >> BITS_IN_WORD << bit));
        }
    }

    /// The piece after this one in its block.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        let link = || load(self.words, self.start() + self.linked_at());
        let handle = self.handle.is_chained.then(link)?;
        Some(self.sibling(Handle::from_word(handle)))
    }

    pub(super) fn handle(self) -> Handle {
        self.handle
    }

    /// Another piece of the same arena.
    pub(super) fn sibling(self, handle: Handle) -> Self {
        Self::later(self.words, handle)
    }

    /// Makes another piece the one after this one, and gives the handle of this one as it is then.
    pub(super) fn link_to(self, next: Handle) -> Handle {
        let handle = Handle {
            is_chained: true,
            ..self.handle
        };
        let linked = self.sibling(handle);
        let place = linked.start() + linked.linked_at();
        store(linked.words, place, next.to_word());
        handle
    }

    /// Where the first word lies in the arena.
    #[inline]
    fn start(self) -> usize {
        self.handle.start * UNIT_WORDS
    }

    /// The words before the link, or all.
    #[inline]
    fn linked_at(self) -> usize {
        self.handle.words() - usize::from(self.handle.is_chained)
    }

    /// Whether its highest bits lie beside its time.
    #[inline]
    fn is_short(self) -> bool {
        self.is_first && self.linked_at() <= SHORT_WORDS
    }

    #[inline]
    fn begins_line(self, index: usize) -> bool {
        begins_line(self.start() + index)
    }

    /// Where the highest bit of a word lies that begins a line.
    #[inline]
    fn highest(self, index: usize) -> (usize, usize) {
        let line = index / SET_WORDS;
        if self.is_short() {
            return (self.start(), TIME_BITS + line);
        }
        let place = self.start() + self.len() + line / BITS_IN_WORD;
        (place, line % BITS_IN_WORD)
    }
}

/// The own words in a piece of `words` that is not short, without its link.
#[inline]
pub(super) const fn own_words(words: usize) -> usize {
    words - words.div_ceil(STRETCH)
}

/// The fewest words of a piece that is a block with `own` words.
pub(super) const fn words_for(own: usize) -> usize {
    if own <= SHORT_WORDS {
        return own;
    }
    own + 1 + own / (STRETCH - 1)
}

/// Reads a word of the arena, but for the lock bit of one that begins a line.
#[inline]
pub(super) fn load(words: &[AtomicU64], place: usize) -> u64 {
    let word = words[place].load(Ordering::Relaxed);
    if begins_line(place) {
        word & !LOCK
    } else {
        word
    }
}

/// Writes what `load` reads.
#[inline]
pub(super) fn store(words: &[AtomicU64], place: usize, word: u64) {
    let lock = if begins_line(place) { LOCK } else { 0 };
    words[place].store(word | lock, Ordering::Relaxed);
}

#[inline]
const fn begins_line(place: usize) -> bool {
    place.is_multiple_of(SET_WORDS)
}
