//! Requests that were denied: so that one that is repeated is no more demand than it could ever use.

use std::sync::{Mutex, PoisonError};

use tidegate_algorithms::Time;
use tidegate_store::{Charge, Clock, Digester, Mode};

use super::Split;

/// The most counters whose denied requests are counted.
const SLOTS: usize = 1 << 13;

/// Slots under one lock.
const SLOTS_OF_SHARD: usize = 1 << 8;

/// The cost of denied requests, by counter. Of two counters with the same slot, the newer one has it.
#[derive(Debug)]
pub(super) struct DeniedRequests {
    digester: Digester,
    shards: Box<[Mutex<[DeniedCount; SLOTS_OF_SHARD]>]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DeniedCount {
    digest: u128,
    since: Time,
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
    fn count(&self, charge: &Charge<'_>, now: Time) -> bool {
        let digest = self.digester.digest(charge.key);
        // The digest is random enough to be cut anywhere.
        let place = usize::try_from(digest % SLOTS as u128).unwrap_or(0);
        let shard = &self.shards[place / SLOTS_OF_SHARD];
        // A count is written whole.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let denied = &mut shard[place % SLOTS_OF_SHARD];
        if denied.digest != digest || denied.since.plus(charge.quota.window()) <= now {
            *denied = DeniedCount {
                digest,
                since: now,
                cost: 0,
            };
        }
        denied.cost = denied.cost.saturating_add(charge.cost);
        denied.cost <= charge.quota.limit()
    }
}

// === impl Split ===

impl<M: Clock> Split<M> {
    /// Whether a request with those charges that one of its limits denied is demand for it. A caller who keeps asking
    /// has no more demand in a window than each limit of the request admits: of a shared limit no more than its own
    /// limit would let it use.
    pub(super) fn is_demand(&self, charge: &Charge<'_>, charges: &[Charge<'_>]) -> bool {
        let now = self.own_now();
        let limits =
            |it: &&Charge<'_>| it.mode == Mode::Enforce || std::ptr::eq::<Charge<'_>>(*it, charge);
        let limiting = charges.iter().filter(limits);
        let over = limiting.filter(|it| !self.denied.count(it, now));
        over.count() == 0
    }
}
