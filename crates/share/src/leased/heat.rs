//! Which keys get hot, learnt in a table of fixed size that holds nothing of the keys but a few bits.

use std::time::Duration;

use tidegate_algorithms::Time;

use super::demand::{Demand, HOT};

/// Slots of one table. A key that shares its slot with a busier one is found hot later, or never, and
/// asked for strictly until then. All tables are 5 MB; twice as many slots gained nothing with 100,000 callers.
const SLOTS: usize = 1 << 11;

/// Keys that were seen lately.
#[derive(Debug)]
pub(super) struct Heat {
    slots: Box<[Option<Seen>]>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    tag: u64,
    since: Time,
    asks: u32,
    asked: u64,
}

// === impl Heat ===

impl Heat {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![None; SLOTS].into_boxed_slice(),
        }
    }

    /// Notes a request; gives the demand of the key once that is hot, and forgets it.
    pub(super) fn note(
        &mut self,
        tag: u64,
        cost: u64,
        now: Time,
        life: Duration,
    ) -> Option<Demand> {
        let place = usize::try_from(tag % SLOTS as u64).unwrap_or(0);
        let slot = self.slots.get_mut(place)?;
        let new = Seen {
            tag,
            since: now,
            asks: 1,
            asked: cost,
        };
        match slot {
            Some(seen) if now.since(seen.since) < life && seen.tag == tag => {
                seen.asks += 1;
                seen.asked = seen.asked.saturating_add(cost);
                let Seen {
                    since, asks, asked, ..
                } = *seen;
                let asks = u64::from(asks);
                if asks >= HOT {
                    *slot = None;
                    return Some(Demand::seen(since, asks, asked));
                }
            }
            // Whoever comes more often than the others of its slot prevails.
            Some(seen) if now.since(seen.since) < life && seen.asks > 1 => seen.asks -= 1,
            _ => *slot = Some(new),
        }
        None
    }
}
