//! The words of one block, as if they lay side by side.

use std::cell::Cell;

use super::piece::Piece;
use super::{Arena, Handle};

/// The words of a block.
#[derive(Clone, Debug)]
pub(in super::super) struct Block<'a> {
    first: Piece<'a>,
    /// The number of words in all pieces.
    len: usize,
    /// The other pieces, which hardly any block has.
    chain: Option<Chain<'a>>,
}

/// The pieces of a block after the first.
#[derive(Clone, Debug)]
struct Chain<'a> {
    second: Cursor<'a>,
    /// The handle and the start of the piece that was used last, where the next search begins.
    at: Cell<(Handle, usize)>,
}

/// A piece of a chain.
#[derive(Clone, Copy, Debug)]
struct Cursor<'a> {
    piece: Piece<'a>,
    /// The index of its first word.
    start: usize,
}

// === impl Block ===

impl<'a> Block<'a> {
    pub(super) fn new(arena: Arena<'a>, handle: Handle) -> Self {
        let first = Piece::first(arena.words, handle);
        let mut block = Self {
            first,
            len: first.len(),
            chain: None,
        };
        if let Some(second) = first.next() {
            block.chain(second);
        }
        block
    }

    pub(in super::super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(in super::super) fn get(&self, index: usize) -> u64 {
        let Cursor { piece, start } = self.place(index);
        piece.get(index - start)
    }

    #[inline]
    pub(in super::super) fn put(&self, index: usize, word: u64) {
        let Cursor { piece, start } = self.place(index);
        piece.put(index - start, word);
    }

    /// Makes all words zero.
    pub(super) fn clear(&self) {
        for index in 0..self.len {
            self.put(index, 0);
        }
    }

    #[cold]
    fn chain(&mut self, second: Piece<'a>) {
        let second = Cursor {
            piece: second,
            start: self.len,
        };
        self.len += pieces(second.piece).map(Piece::len).sum::<usize>();
        let at = Cell::new((second.piece.handle(), second.start));
        self.chain = Some(Chain { second, at });
    }

    /// The piece in which the word with that index lies.
    #[inline]
    fn place(&self, index: usize) -> Cursor<'a> {
        match &self.chain {
            Some(chain) if index >= chain.second.start => chain.place(index),
            _ => Cursor {
                piece: self.first,
                start: 0,
            },
        }
    }
}

// === impl Chain ===

impl<'a> Chain<'a> {
    #[cold]
    fn place(&self, index: usize) -> Cursor<'a> {
        let (handle, start) = self.at.get();
        let mut at = Cursor {
            piece: self.second.piece.sibling(handle),
            start,
        };
        if index < at.start {
            at = self.second;
        }
        while index - at.start >= at.piece.len() {
            at = Cursor {
                piece: at.piece.next().expect("an index within the block"),
                start: at.start + at.piece.len(),
            };
        }
        self.at.set((at.piece.handle(), at.start));
        at
    }
}

/// A piece, and those after it in its block.
pub(super) fn pieces(first: Piece<'_>) -> impl Iterator<Item = Piece<'_>> {
    std::iter::successors(Some(first), |piece| piece.next())
}
