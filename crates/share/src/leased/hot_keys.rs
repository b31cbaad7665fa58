//! Detection of hot keys, in a table of fixed size that keeps only a few bits of each key.

use std::time::Duration;

use tidegate_algorithms::Time;

use super::demand::{Demand, HOT};

/// Slots of one table. A key that shares its slot with a busier one is found hot later, or never, and decided in
/// the store until then. All tables are 5 MB; twice as many slots gained nothing with 100,000 callers.
const SLOTS: usize = 1 << 11;

/// Keys with recent requests.
#[derive(Debug)]
pub(super) struct HotKeys {
    slots: Box<[Option<RecentKey>]>,
}

#[derive(Clone, Copy, Debug)]
struct RecentKey {
    tag: u64,
    since: Time,
    requests: u32,
    spent: u64,
}

// === impl HotKeys ===

impl HotKeys {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![None; SLOTS].into_boxed_slice(),
        }
    }

    /// Counts an allowed request. Returns the demand of the key once it is hot, and forgets it.
    pub(super) fn add(&mut self, tag: u64, cost: u64, now: Time, life: Duration) -> Option<Demand> {
        let place = usize::try_from(tag % SLOTS as u64).unwrap_or(0);
        let slot = self.slots.get_mut(place)?;
        let new = RecentKey {
            tag,
            since: now,
            requests: 1,
            spent: cost,
        };
        match slot {
            Some(recent) if now.since(recent.since) < life && recent.tag == tag => {
                recent.requests += 1;
                recent.spent = recent.spent.saturating_add(cost);
                let requests = u64::from(recent.requests);
                if requests >= HOT {
                    let demand = Demand::hot(recent.since, requests, recent.spent);
                    *slot = None;
                    return Some(demand);
                }
            }
            // The busiest key of a slot prevails.
            Some(recent) if now.since(recent.since) < life && recent.requests > 1 => {
                recent.requests -= 1;
            }
            _ => *slot = Some(new),
        }
        None
    }
}
