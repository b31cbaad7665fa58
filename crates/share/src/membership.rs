//! How many nodes there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many nodes share the store, this one included, as it was last heard. Clones tell the same.
#[derive(Clone, Debug)]
pub struct Membership(Arc<AtomicU32>);

// === impl Membership ===

impl Membership {
    /// The last known number, at least 1. It stays as it is while nothing is heard.
    pub fn members(&self) -> u32 {
        // Relaxed: the number stands for itself.
        self.0.load(Ordering::Relaxed)
    }

    /// Takes note of a number that was heard.
    pub(crate) fn hear(&self, members: u32) {
        self.0.store(members.max(1), Ordering::Relaxed);
    }
}

/// This node, and as far as is known nobody else.
impl Default for Membership {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}
