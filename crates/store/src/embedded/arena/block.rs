//! The words of one block, as if they lay side by side.

use std::cell::Cell;

use super::super::sync::{AtomicU64, Ordering};
use super::{Arena, Handle, next_piece, piece};

/// The words of a block.
#[derive(Clone, Debug)]
pub(in super::super) struct Block<'a> {
    /// Those of the first piece, all but the link.
    first: &'a [AtomicU64],
    /// The number of words in all pieces.
    len: usize,
    /// The other pieces, which hardly any block has.
    chain: Option<Chain<'a>>,
}

/// The pieces of a block after the first. Small, because every account of a request has room for one.
#[derive(Clone, Debug)]
struct Chain<'a> {
    /// Those of the whole arena.
    words: &'a [AtomicU64],
    /// The handle of the second piece.
    second: u64,
    /// The piece that was used last, so that one who goes on from there does not begin at the first.
    at: Cell<Cursor>,
}

/// A piece of a chain.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Its handle.
    piece: u64,
    /// The index of its first word.
    start: usize,
}

// === impl Block ===

impl<'a> Block<'a> {
    pub(super) fn new(arena: Arena<'a>, handle: Handle) -> Self {
        let first = own_words(arena.words, handle);
        let mut block = Self {
            first,
            len: first.len(),
            chain: None,
        };
        if let Some(second) = next_piece(arena.words, handle) {
            block.chain(arena.words, second);
        }
        block
    }

    pub(in super::super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(in super::super) fn get(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }

    #[inline]
    pub(in super::super) fn put(&self, index: usize, word: u64) {
        self.word(index).store(word, Ordering::Relaxed);
    }

    /// Makes all words zero.
    pub(super) fn clear(&self) {
        for index in 0..self.len {
            self.put(index, 0);
        }
    }

    #[cold]
    fn chain(&mut self, words: &'a [AtomicU64], second: Handle) {
        let start = self.first.len();
        let mut next = Some(second);
        while let Some(piece) = next {
            self.len += own_words(words, piece).len();
            next = next_piece(words, piece);
        }
        let second = second.to_word();
        let at = Cell::new(Cursor {
            piece: second,
            start,
        });
        self.chain = Some(Chain { words, second, at });
    }

    #[inline]
    fn word(&self, index: usize) -> &'a AtomicU64 {
        match self.first.get(index) {
            Some(word) => word,
            None => self.word_of_chain(index),
        }
    }

    #[cold]
    fn word_of_chain(&self, index: usize) -> &'a AtomicU64 {
        let chain = self.chain.as_ref().expect("an index within the block");
        let mut at = chain.at.get();
        if index < at.start {
            at = Cursor {
                piece: chain.second,
                start: self.first.len(),
            };
        }
        loop {
            let piece = Handle::from_word(at.piece);
            let words = own_words(chain.words, piece);
            if let Some(word) = words.get(index - at.start) {
                chain.at.set(at);
                return word;
            }
            let next = next_piece(chain.words, piece).expect("an index within the block");
            at = Cursor {
                piece: next.to_word(),
                start: at.start + words.len(),
            };
        }
    }
}

/// The words of a piece that belong to the block: all but the link.
#[inline]
fn own_words(words: &[AtomicU64], handle: Handle) -> &[AtomicU64] {
    let words = piece(words, handle);
    &words[..words.len() - usize::from(handle.is_chained)]
}
