//! The contract of a store in which nodes find each other, and in which they settle who has what part
//! of a limit.
//!
//! Time is cut into epochs, by the store's clock. For each epoch of a limit there is at most one plan.
//! It is made once, in the store, and never changed, so that all who read it read the same.

#[cfg(feature = "test-util")]
pub mod model;

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tidegate_algorithms::Time;

use crate::{LimitId, StoreError};

/// The most limits that one heartbeat tells of.
pub const MAX_WANTS: usize = 32;

/// The most nodes that can be members together. Who comes when there are so many is told how many there
/// are, and is no member.
pub const MAX_MEMBERS: u32 = 256;

/// The most parts that a limit is divided into.
pub const MAX_PARTS: u32 = 1 << 20;

/// A store in which nodes find each other.
pub trait Members: Send + Sync {
    /// Says that a node is there and what it wants of some limits, and hears who else is there and what
    /// it was given, in one atomic step. What it says twice counts once.
    fn beat(&self, beat: &Beat<'_>) -> impl Future<Output = Result<Pulse, StoreError>> + Send;

    /// Says that a node is no longer there. What plans have given it is its own until they end.
    fn leave(&self, node: NodeId) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Names a node among those that share a store: random, made when it starts, so that one that starts
/// again is somebody else and spends nothing twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// What a node says in a heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Beat<'a> {
    /// Who it is.
    pub node: NodeId,
    /// How long it is a member without another heartbeat.
    pub expiry: Duration,
    /// How long epochs are at the least. Who is there first settles it for all.
    pub pace: Duration,
    /// What it wants of limits, no more than [`MAX_WANTS`].
    pub wants: &'a [Want],
}

/// What a node wants of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Which limit.
    pub limit: LimitId,
    /// Its window: epochs are whole numbers of them, and begin where one begins.
    pub window: Duration,
    /// How long a counter remembers what was before an epoch's edge; zero if nothing. Epochs are no
    /// shorter, and then a part grows an epoch later than it is given, for whoever had it before may
    /// have spent it just before the edge.
    pub memory: Duration,
    /// How many parts the limit is divided into, from 1 to [`MAX_PARTS`].
    pub parts: u32,
    /// How many parts the node could use in an epoch.
    pub demand: u32,
}

/// What a node hears in answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The store's time.
    pub now: Time,
    /// How many members there are.
    pub members: u32,
    /// The time of this node's previous heartbeat; `None` if the store has none that has not expired. Any
    /// other time than the store itself reported then means that it lost data.
    pub previous: Option<Time>,
    /// What is planned for each want, in order.
    pub plans: Vec<Plans>,
}

/// What is planned for one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plans {
    /// For the epoch that is now, if there is a plan for it.
    pub current: Option<Plan>,
    /// For the epoch after it, if there is one yet.
    pub next: Option<Plan>,
}

/// Who has what part of a limit during one epoch, as one node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// When the epoch begins, by the store's time.
    pub starts: Time,
    /// When it ends.
    pub ends: Time,
    /// How many parts there are.
    pub parts: u32,
    /// How many of them are this node's; 0 if the plan does not know it.
    pub share: u32,
    /// How many are kept in the store, to be asked for there, by any node.
    pub reserve: u32,
    /// The fewest that any member was given; 0 if all are in the store.
    pub least: u32,
}

// === impl NodeId ===

impl NodeId {
    /// A name that no other node has.
    pub fn random() -> Self {
        // `RandomState` draws its keys from the operating system.
        Self(RandomState::new().hash_one(0_u64))
    }
}

// === impl Plan ===

impl Plan {
    /// How many parts every plan keeps in the store at the least, so that a node that knows no plan can
    /// ask for those.
    pub const fn least_reserve(parts: u32) -> u32 {
        let reserve = parts / 32;
        if reserve == 0 { 1 } else { reserve }
    }
}
