//! The hard cap on memory: bytes are taken before they are touched and never given back.

use super::sync::{AtomicU64, Ordering};

/// The bytes that may still be taken.
#[derive(Debug)]
pub(super) struct Budget {
    left: AtomicU64,
}

// === impl Budget ===

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            left: AtomicU64::new(bytes),
        }
    }

    /// Takes `bytes` if there are so many left, and says whether there were.
    pub(super) fn take(&self, bytes: u64) -> bool {
        // Relaxed: the number guards no other memory.
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .is_ok()
    }

    /// Gives back what was taken but not touched.
    pub(super) fn give_back(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}
