//! Running totals that nodes tell each other, so that each can decide by itself.

use std::future::Future;
use std::time::Duration;

use tidegate_algorithms::Time;

use crate::{CounterKey, NodeId, StoreError};

/// Where nodes tell each other how much they have admitted.
///
/// For each counter and epoch there is one total for each node, which only that node writes and
/// which only grows: a total written again, or late, or out of order, changes nothing. Epochs are
/// counted from the Unix epoch by the store's time; what was told in one is forgotten after the next
/// has ended.
pub trait Totals: Send + Sync {
    /// Writes the totals of `teller` and reads the others', for all of `tellings`, in one round trip to
    /// each server that is concerned. Writes one tally per telling, in order, to `tallies`, which is
    /// cleared first. Ends within the store's own deadline.
    ///
    /// After an error any of it may have been written.
    fn exchange(
        &self,
        teller: Teller,
        tellings: &[Telling<'_>],
        tallies: &mut Vec<Tally>,
    ) -> impl Future<Output = Result<Exchanged, StoreError>> + Send;
}

/// Who tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teller {
    /// Which node.
    pub node: NodeId,
    /// How long it counts as a member without another word.
    pub life: Duration,
}

/// What a node tells about one counter.
#[derive(Clone, Copy, Debug)]
pub struct Telling<'a> {
    /// Which counter.
    pub key: CounterKey<'a>,
    /// How long its epochs are, not zero.
    pub length: Duration,
    /// Which epoch it is, as the node sees it.
    pub epoch: u64,
    /// What the node has admitted in this epoch.
    pub total: u64,
    /// What it has admitted in the epoch before, if it does not know that this was written.
    pub late: Option<u64>,
    /// What the counter does with what was told in the epoch before.
    pub edge: Edge,
    /// How often the counter was reset in this epoch, as far as the node knows; one more than it has heard
    /// of resets it for all.
    pub resets: u64,
    /// How much of the limit is used as the node sees it, if it has heard of the others before.
    pub view: Option<View>,
}

/// What a counter does with what was told in the epoch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Forgets it: its windows are the epochs.
    Forgets,
    /// Counts it on.
    Carries,
}

/// How much of a limit is used as one node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// How much, what is above the limit included.
    pub used: u64,
    /// The others' sums that are in it: of this epoch and of the one before.
    pub heard: Sums,
}

/// What there is in two epochs: sums of the totals of all nodes but one, or resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Of this epoch.
    pub current: u64,
    /// Of the epoch before.
    pub before: u64,
}

/// What a node hears about one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What the others have admitted.
    pub others: Sums,
    /// How often the counter was reset, this telling included.
    pub resets: Sums,
    /// How much of the limit was used when somebody told something last, before this telling: in this
    /// epoch, or in the one before if its counter carries over.
    ///
    /// It is the view of whoever told last with all that he had not heard; without a view, or if he had
    /// not heard of a reset, what was known before with what he told.
    pub level: Option<Level>,
}

/// How much of a limit was used some time ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// How much, what was above the limit included.
    pub used: u64,
    /// How long ago.
    pub age: Duration,
}

/// What a node hears besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// The store's time.
    pub now: Time,
    /// How many nodes tell their totals here, this one included.
    pub members: u32,
    /// The time of this node's previous exchange, as in [`Pulse::previous`](crate::Pulse::previous).
    pub previous: Option<Time>,
}
