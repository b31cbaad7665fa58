//! An arena by itself, for tests.

use super::super::border::Border;
use super::super::sync::{AtomicU64, zeroed_words};
use super::{Arena, ArenaSpace};

/// An arena with a range of its own.
pub(in super::super) struct TestArena {
    words: Box<[AtomicU64]>,
    space: ArenaSpace,
    border: Border,
}

// === impl TestArena ===

impl TestArena {
    /// An arena of that many bytes. As many more belong to a table that is not there.
    pub(in super::super) fn new(bytes: usize) -> Self {
        let layers = 2;
        Self {
            words: zeroed_words(2 * bytes / 8).expect("a little memory"),
            space: ArenaSpace::new(layers, bytes),
            border: Border::new(layers),
        }
    }

    pub(in super::super) fn arena(&self) -> Arena<'_> {
        self.space.arena(&self.words, &self.border)
    }

    #[cfg(not(loom))]
    pub(super) fn space(&self) -> &ArenaSpace {
        &self.space
    }
}
