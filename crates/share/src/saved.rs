//! The counters of a node that decided alone, saved at its end for the process that takes its place.

use std::io::Read;

use tidegate_store::{Clock, EmbeddedStore, Restored, SnapshotError, StoreConfig};

/// Counters that a node saves together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterGroup {
    /// Those of limits that the common store decides.
    Standby,
    /// Those of this node's shares of `eventual` limits.
    Eventual,
}

/// A snapshot to be restored.
pub type SavedCounters = Box<dyn Read>;

/// The outcome of restoring a snapshot.
pub type RestoreResult = Result<Restored, SnapshotError>;

// === impl CounterGroup ===

impl CounterGroup {
    /// All groups.
    pub const ALL: [Self; 2] = [Self::Standby, Self::Eventual];

    /// The name of the group in the name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Eventual => "eventual",
        }
    }
}

/// Opens a store with the counters of `saved`, or an empty one.
///
/// # Panics
///
/// If the system does not give out the memory.
pub(crate) fn open<C: Clock + Clone>(
    config: StoreConfig,
    clock: C,
    saved: Option<SavedCounters>,
) -> (EmbeddedStore<C>, Option<RestoreResult>) {
    let restored = saved.map(|saved| EmbeddedStore::restore(config, clock.clone(), saved));
    match restored {
        Some(Ok((store, restored))) => (store, Some(Ok(restored))),
        Some(Err(error)) => (EmbeddedStore::with_clock(config, clock), Some(Err(error))),
        None => (EmbeddedStore::with_clock(config, clock), None),
    }
}
