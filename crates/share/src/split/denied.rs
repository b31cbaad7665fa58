//! Counts denied requests, so that repeating one does not raise demand above the limit.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{Charge, Digester};

/// The most counters whose denied requests are counted.
pub(super) const SLOTS: usize = 1 << 13;

/// Slots under one lock.
const SLOTS_OF_SHARD: usize = 1 << 8;

/// The cost of denied requests, by counter. Counters with the same slot have one count in common: together they claim
/// less than they might, but not more.
#[derive(Debug)]
pub(super) struct DeniedRequests {
    digester: Digester,
    shards: Box<[Mutex<[DeniedCount; SLOTS_OF_SHARD]>]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DeniedCount {
    since: Time,
    /// The longest window of those that are counted.
    window: Duration,
    cost: u64,
}

// === impl DeniedRequests ===

impl DeniedRequests {
    pub(super) fn new() -> Self {
        let shard = || Mutex::new([DeniedCount::default(); SLOTS_OF_SHARD]);
        Self {
            digester: Digester::new(),
            shards: (0..SLOTS / SLOTS_OF_SHARD).map(|_| shard()).collect(),
        }
    }

    /// Counts a denied request. Returns whether all that was denied since a window's length is no more than the
    /// limit.
    pub(super) fn count(&self, charge: &Charge<'_>, now: Time) -> bool {
        let digest = self.digester.digest(charge.key);
        // The digest is random enough to be cut anywhere.
        let place = usize::try_from(digest % SLOTS as u128).unwrap_or(0);
        let shard = &self.shards[place / SLOTS_OF_SHARD];
        // A count is written whole.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let denied = &mut shard[place % SLOTS_OF_SHARD];
        if denied.since.plus(denied.window) <= now {
            *denied = DeniedCount {
                since: now,
                ..DeniedCount::default()
            };
        }
        denied.window = denied.window.max(charge.quota.window());
        denied.cost = denied.cost.saturating_add(charge.cost);
        denied.cost <= charge.quota.limit()
    }
}
