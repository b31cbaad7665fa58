//! The free pieces of the arena, by length. A free piece is its own bookkeeping: its first word links it to others
//! of its length, and the second word of its first and of its last unit is its length.

use std::collections::BTreeMap;

use super::super::sync::{AtomicU64, Ordering};
use super::{Arena, Handle, LEAST_UNITS, UNIT_WORDS};

/// Units whose edges one word tells.
const EDGES: usize = u64::BITS as usize;

/// The free pieces.
#[derive(Debug)]
pub(super) struct FreeLists {
    /// The start of the first free piece of each length.
    heads: BTreeMap<usize, usize>,
    /// A bit for each unit: whether a free piece begins or ends there.
    edges: Vec<u64>,
    /// Units in all free pieces.
    free_units: usize,
    /// The lowest unit that was ever allocated.
    fresh: usize,
    units: usize,
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
            heads: BTreeMap::new(),
            edges: vec![0; units.div_ceil(EDGES)],
            free_units: 0,
            fresh: units,
            units,
        }
    }

    /// All units there can be.
    pub(super) fn units(&self) -> usize {
        self.units
    }

    /// The lowest unit that was ever allocated.
    pub(super) fn fresh(&self) -> usize {
        self.fresh
    }

    /// Words in all free pieces.
    pub(super) fn free_words(&self) -> usize {
        self.free_units * UNIT_WORDS
    }

    /// Allocates the units from `start` on that never were.
    pub(super) fn extend_to(&mut self, start: usize) -> Handle {
        let piece = Handle::new(start, self.fresh - start);
        self.fresh = start;
        piece
    }

    /// Takes a piece of `length`, or a little more: cut out of the smallest one that is large enough.
    pub(super) fn take(&mut self, arena: Arena<'_>, length: usize) -> Option<Handle> {
        let (&found, &start) = self.heads.range(length..).next()?;
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
        let (&length, &start) = self.heads.last_key_value()?;
        let piece = Handle::new(start, length);
        self.unlink(arena, piece);
        Some(piece)
    }

    /// Frees a piece, and makes it one with the free ones next to it.
    pub(super) fn put(&mut self, arena: Arena<'_>, piece: Handle) {
        let Handle {
            mut start,
            mut length,
            ..
        } = piece;
        if let Some(before) = start.checked_sub(1).filter(|&unit| self.is_edge(unit)) {
            let joined = length_at(arena, before);
            start -= joined;
            length += joined;
            self.unlink(arena, Handle::new(start, joined));
        }
        let after = piece.start + piece.length;
        if self.is_edge(after) {
            let joined = length_at(arena, after);
            length += joined;
            self.unlink(arena, Handle::new(after, joined));
        }
        self.link(arena, Handle::new(start, length));
    }

    /// The lengths and starts of the first free pieces of each length.
    #[cfg(all(test, not(loom)))]
    pub(super) fn heads(&self) -> Vec<(usize, usize)> {
        self.heads
            .iter()
            .map(|(&length, &start)| (length, start))
            .collect()
    }

    /// Puts a piece first in the list of its length.
    fn link(&mut self, arena: Arena<'_>, piece: Handle) {
        let Handle { start, length, .. } = piece;
        let previous = None;
        let next = self.heads.insert(length, start);
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
        self.free_units += length;
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
                self.heads.insert(piece.length, unit);
            }
            (None, None) => {
                self.heads.remove(&piece.length);
            }
        }
        if let Some(unit) = next {
            let links = links(arena, unit);
            put_links(arena, unit, Links { previous, ..links });
        }
        self.clear_edge(piece.start);
        self.clear_edge(piece.last());
        self.free_units -= piece.length;
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

fn links(arena: Arena<'_>, start: usize) -> Links {
    let word = word(arena, start, 0).load(Ordering::Relaxed);
    let unit = |half: u64| usize::try_from(half).ok()?.checked_sub(1);
    Links {
        previous: unit(word >> 32),
        next: unit(word & u64::from(u32::MAX)),
    }
}

fn put_links(arena: Arena<'_>, start: usize, links: Links) {
    let half = |unit: Option<usize>| unit.map_or(0, |unit| unit as u64 + 1);
    put(
        arena,
        start,
        0,
        (half(links.previous) << 32) | half(links.next),
    );
}

/// The length of the free piece that has an edge at `unit`.
fn length_at(arena: Arena<'_>, unit: usize) -> usize {
    let length = word(arena, unit, 1).load(Ordering::Relaxed);
    usize::try_from(length).expect("written when it was freed")
}

fn put(arena: Arena<'_>, unit: usize, index: usize, value: u64) {
    word(arena, unit, index).store(value, Ordering::Relaxed);
}

fn word(arena: Arena<'_>, unit: usize, index: usize) -> &AtomicU64 {
    &arena.words[unit * UNIT_WORDS + index]
}
