//! Totals that nodes exchange, so that each can decide by itself.
//!
//! Time is cut into slots, and some slots make an epoch. For each counter and slot every node has one
//! total, which only that node writes: what it admitted in the slot, and what it refunded of it. Both
//! numbers only grow, so updates of one node that arrive twice, late or out of order change nothing. Several nodes may
//! have refunded the same: no refund takes the sum of an epoch, with what was in use when it began, below zero.

use std::future::Future;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::Time;

use crate::{NodeId, StoreError};

/// A store in which nodes exchange their totals.
pub trait Totals: Send + Sync {
    /// Writes the totals of `sender` and reads the sums of all nodes, for all `updates`, in one round
    /// trip to each server that is involved. Writes one reply per update, in order, to `replies`,
    /// which is cleared first. Ends within the store's own deadline.
    ///
    /// After an error any part of it may have been written.
    fn exchange(
        &self,
        sender: TotalsSender,
        updates: &[CounterUpdate<'_>],
        replies: &mut Vec<CounterSums>,
    ) -> impl Future<Output = Result<ExchangeReply, StoreError>> + Send;
}

/// The node that sends its totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TotalsSender {
    /// Its identifier, another one after each start.
    pub node: NodeId,
    /// The time for which it counts as a member without another exchange.
    pub life: Duration,
}

/// The name of a counter among all nodes: a digest of its limit and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterId(pub u128);

/// Totals of one node for one counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterUpdate<'a> {
    /// The counter.
    pub counter: CounterId,
    /// Nanoseconds in a slot, not zero. Slots count from the Unix epoch by the store's time.
    pub slot_nanos: u64,
    /// Slots in an epoch, not zero.
    pub epoch_slots: u64,
    /// The slot that is now, as the node sees it.
    pub current: u64,
    /// The first slot to read the sums of; not before the epoch before the current one.
    pub first: u64,
    /// The totals that changed; none is before the epoch before the current one.
    pub totals: &'a [SlotTotal],
    /// How much was in use when the current epoch began, apart from what the slots say.
    pub base: u64,
}

/// Total of one node in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTotal {
    /// The slot.
    pub slot: u64,
    /// The node's admissions in it.
    pub admitted: u64,
    /// The node's refunds in it, of its own admissions and others'.
    pub refunded: u64,
}

/// Sums of all nodes for one counter, this update included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSums {
    /// The current epoch.
    pub current: EpochInfo,
    /// The epoch before.
    pub before: EpochInfo,
    /// Slots and what was admitted in each less what was refunded, oldest first, without those that
    /// were never written.
    pub sums: SmallVec<[(u64, i64); 2]>,
}

/// What is stored about one epoch of a counter besides its slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochInfo {
    /// When the first total of this epoch was written, in microseconds; 0 if none is stored. A number
    /// that changes shows that the store lost its data.
    pub created: u64,
    /// The largest [`CounterUpdate::base`] that a node sent in this epoch.
    pub base: u64,
}

/// The part of a reply that is not about counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeReply {
    /// The store's time.
    pub now: Time,
    /// The number of nodes that exchange totals here, this one included.
    pub members: u32,
    /// The time of this node's previous exchange, as in [`Pulse::previous`](crate::Pulse::previous).
    pub previous: Option<Time>,
}

// === impl CounterUpdate ===

impl CounterUpdate<'_> {
    /// The current epoch.
    pub const fn epoch(&self) -> u64 {
        // Not zero by contract.
        self.current
            / if self.epoch_slots == 0 {
                1
            } else {
                self.epoch_slots
            }
    }

    /// How long what is written is of use: two epochs.
    pub fn expiry(&self) -> Duration {
        let slots = self.epoch_slots.saturating_mul(2);
        Duration::from_nanos(self.slot_nanos.saturating_mul(slots))
    }
}
