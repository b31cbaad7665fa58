//! An arena by itself, for tests.

use super::super::border::Border;
use super::super::sync::{AtomicU64, zeroed_words};
use super::{Arena, ArenaSpace};

/// The layers of a range.
pub(in super::super) const LAYERS: u32 = if cfg!(loom) { 2 } else { 5 };

/// An arena with a range of its own.
pub(in super::super) struct TestArena {
    words: Box<[AtomicU64]>,
    space: ArenaSpace,
    border: Border,
}

// === impl TestArena ===

impl TestArena {
    /// An arena of that many bytes, in all layers but the one of a table that is not there.
    pub(in super::super) fn new(bytes: usize) -> Self {
        let layer_bytes = bytes / (LAYERS as usize - 1);
        Self {
            words: zeroed_words(LAYERS as usize * layer_bytes / 8).expect("a little memory"),
            space: ArenaSpace::new(LAYERS, layer_bytes),
            border: Border::new(LAYERS),
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
