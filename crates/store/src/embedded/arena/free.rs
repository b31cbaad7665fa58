//! The free pieces of the arena, by length. A free piece is its own bookkeeping: its first word links it to others
//! of its length, and the second word of its first and of its last unit is its length.

use std::collections::BTreeMap;

use super::piece::{load, own_words, store};
use super::{Arena, Handle, LEAST_UNITS, UNIT_WORDS};

/// Units whose edges one word tells.
const EDGES: usize = u64::BITS as usize;

/// The free pieces.
#[derive(Debug)]
pub(super) struct FreeLists {
    /// The pieces that can be taken.
    usable: Pieces,
    /// Those that lie where nothing is to be allocated any more.
    cleared: Pieces,
    /// Units below this one are not allocated, so that they can be given back. No piece lies on both sides of it.
    cleared_below: usize,
    /// A bit for each unit: whether a free piece begins or ends there.
    edges: Vec<u64>,
    /// The lowest unit that was allocated and not given back.
    fresh: usize,
    units: usize,
}

/// Free pieces by length.
#[derive(Debug, Default)]
struct Pieces {
    /// The start of the first piece of each length.
    heads: BTreeMap<usize, usize>,
    /// Units in all of them.
    units: usize,
    /// Words that all of them have for blocks, if each is followed by another one.
    linked_words: usize,
}

/// The neighbours of a free piece in its list.
#[derive(Clone, Copy)]
struct Links {
    previous: Option<usize>,
    next: Option<usize>,
}

// === impl FreeLists ===

impl FreeLists {
    pub(super) fn new(units: usize) -> Self {
        Self {
            usable: Pieces::default(),
            cleared: Pieces::default(),
            cleared_below: 0,
            edges: vec![0; units.div_ceil(EDGES)],
            fresh: units,
            units,
        }
    }

    /// All units there can be.
    pub(super) fn units(&self) -> usize {
        self.units
    }

    /// The lowest unit that was allocated and not given back.
    pub(super) fn fresh(&self) -> usize {
        self.fresh
    }

    /// Words of a block that all pieces that can be taken make together.
    pub(super) fn chain_words(&self) -> usize {
        self.usable.linked_words
    }

    /// The unit below which nothing is allocated any more; 0 if there is none.
    pub(super) fn cleared_below(&self) -> usize {
        self.cleared_below
    }

    /// Keeps the units below `unit` from being allocated, and no others.
    pub(super) fn clear_below(&mut self, arena: Arena<'_>, unit: usize) {
        let pieces = self.pieces_below(arena, unit.max(self.cleared_below));
        for &piece in &pieces {
            self.unlink(arena, piece);
        }
        self.cleared_below = unit;
        for piece in pieces {
            self.put(arena, piece);
        }
    }

    /// Gives the units back that were to be cleared, if they are all free.
    pub(super) fn give_back(&mut self, arena: Arena<'_>) -> bool {
        let length = self.cleared_below.saturating_sub(self.fresh);
        let is_cleared = length > 0 && self.cleared.units == length;
        if is_cleared {
            self.unlink(arena, Handle::new(self.fresh, length));
            self.fresh = self.cleared_below;
            self.cleared_below = 0;
        }
        is_cleared
    }

    /// Allocates the units from `start` on that are not allocated.
    pub(super) fn extend_to(&mut self, start: usize) -> Handle {
        let piece = Handle::new(start, self.fresh - start);
        self.fresh = start;
        piece
    }

    /// Takes a piece of `length`, or a little more: cut out of the smallest one that is large enough.
    pub(super) fn take(&mut self, arena: Arena<'_>, length: usize) -> Option<Handle> {
        let (&found, &start) = self.usable.heads.range(length..).next()?;
        let whole = Handle::new(start, found);
        self.unlink(arena, whole);
        // What is too small for any need stays with the piece.
        if found - length < LEAST_UNITS {
            return Some(whole);
        }
        self.link(arena, Handle::new(start + length, found - length));
        Some(Handle::new(start, length))
    }

    /// Takes the largest piece.
    pub(super) fn take_largest(&mut self, arena: Arena<'_>) -> Option<Handle> {
        let (&length, &start) = self.usable.heads.last_key_value()?;
        let piece = Handle::new(start, length);
        (length >= LEAST_UNITS).then(|| {
            self.unlink(arena, piece);
            piece
        })
    }

    /// Frees a piece.
    pub(super) fn put(&mut self, arena: Arena<'_>, piece: Handle) {
        let Handle { start, length, .. } = piece;
        let below = self.cleared_below.saturating_sub(start).min(length);
        for part in [
            Handle::new(start, below),
            Handle::new(start + below, length - below),
        ] {
            if part.length > 0 {
                self.put_part(arena, part);
            }
        }
    }

    /// Frees a piece that lies on one side of the units to clear, and makes it one with the free ones next to it
    /// there.
    fn put_part(&mut self, arena: Arena<'_>, piece: Handle) {
        let Handle {
            mut start,
            mut length,
            ..
        } = piece;
        let before = start.checked_sub(1).filter(|&unit| self.is_edge(unit));
        if let Some(before) = before.filter(|_| start != self.cleared_below) {
            let joined = length_at(arena, before);
            start -= joined;
            length += joined;
            self.unlink(arena, Handle::new(start, joined));
        }
        let after = piece.start + piece.length;
        if self.is_edge(after) && after != self.cleared_below {
            let joined = length_at(arena, after);
            length += joined;
            self.unlink(arena, Handle::new(after, joined));
        }
        self.link(arena, Handle::new(start, length));
    }

    /// The lengths and starts of the first free pieces of each length.
    #[cfg(all(test, not(loom)))]
    pub(super) fn heads(&self) -> Vec<(usize, usize)> {
        self.usable
            .heads
            .iter()
            .map(|(&length, &start)| (length, start))
            .collect()
    }

    /// Puts a piece first in the list of its length.
    fn link(&mut self, arena: Arena<'_>, piece: Handle) {
        let Handle { start, length, .. } = piece;
        let previous = None;
        let pieces = self.pieces_at(start);
        pieces.units += length;
        pieces.linked_words += linked_words(length);
        let next = pieces.heads.insert(length, start);
        put_links(arena, start, Links { previous, next });
        if let Some(next) = next {
            let links = links(arena, next);
            let previous = Some(start);
            put_links(arena, next, Links { previous, ..links });
        }
        for edge in [start, piece.last()] {
            put(arena, edge, 1, length as u64);
            self.set_edge(edge);
        }
    }

    /// Takes a piece out of the list of its length.
    fn unlink(&mut self, arena: Arena<'_>, piece: Handle) {
        let Links { previous, next } = links(arena, piece.start);
        match (previous, next) {
            (Some(unit), _) => {
                let links = links(arena, unit);
                put_links(arena, unit, Links { next, ..links });
            }
            (None, Some(unit)) => {
                let pieces = self.pieces_at(piece.start);
                pieces.heads.insert(piece.length, unit);
            }
            (None, None) => {
                self.pieces_at(piece.start).heads.remove(&piece.length);
            }
        }
        if let Some(unit) = next {
            let links = links(arena, unit);
            put_links(arena, unit, Links { previous, ..links });
        }
        self.clear_edge(piece.start);
        self.clear_edge(piece.last());
        let pieces = self.pieces_at(piece.start);
        pieces.units -= piece.length;
        pieces.linked_words -= linked_words(piece.length);
    }

    /// The pieces among which one that begins at `start` belongs.
    fn pieces_at(&mut self, start: usize) -> &mut Pieces {
        if start < self.cleared_below {
            &mut self.cleared
        } else {
            &mut self.usable
        }
    }

    /// All free pieces that begin below `end`.
    fn pieces_below(&self, arena: Arena<'_>, end: usize) -> Vec<Handle> {
        let mut pieces = Vec::new();
        let mut unit = self.fresh;
        while let Some(start) = self.next_edge(unit).filter(|&start| start < end) {
            let piece = Handle::new(start, length_at(arena, start));
            pieces.push(piece);
            unit = piece.start + piece.length;
        }
        pieces
    }

    /// The first unit from `unit` on at which a free piece begins or ends.
    fn next_edge(&self, unit: usize) -> Option<usize> {
        let rest = self.edges.get(unit / EDGES)? >> (unit % EDGES) << (unit % EDGES);
        let later = self
            .edges
            .iter()
            .copied()
            .enumerate()
            .skip(unit / EDGES + 1);
        std::iter::once((unit / EDGES, rest))
            .chain(later)
            .find(|(_, word)| *word != 0)
            .map(|(index, word)| index * EDGES + word.trailing_zeros() as usize)
    }

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

/// Words of a block in a piece of that many units that is followed by another one.
pub(super) fn linked_words(length: usize) -> usize {
    if length < LEAST_UNITS {
        return 0;
    }
    own_words(length * UNIT_WORDS - 1)
}

fn links(arena: Arena<'_>, start: usize) -> Links {
    let word = get(arena, start, 0);
    let unit = |half: u64| usize::try_from(half).ok()?.checked_sub(1);
    Links {
        previous: unit(word >> 32),
        next: unit(word & u64::from(u32::MAX)),
    }
}

fn put_links(arena: Arena<'_>, start: usize, links: Links) {
    let half = |unit: Option<usize>| unit.map_or(0, |unit| unit as u64 + 1);
    let word = (half(links.previous) << 32) | half(links.next);
    put(arena, start, 0, word);
}

/// The length of the free piece that has an edge at `unit`.
fn length_at(arena: Arena<'_>, unit: usize) -> usize {
    usize::try_from(get(arena, unit, 1)).expect("written when it was freed")
}

fn get(arena: Arena<'_>, unit: usize, index: usize) -> u64 {
    load(arena.words, unit * UNIT_WORDS + index)
}

fn put(arena: Arena<'_>, unit: usize, index: usize, value: u64) {
    store(arena.words, unit * UNIT_WORDS + index, value);
}
