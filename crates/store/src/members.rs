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

/// The largest demand of a node. Its product with [`MAX_PARTS`] stays exact in a script.
pub const MAX_DEMAND: u32 = 1 << 24;

/// The fewest parts for each member with which a limit is divided.
pub const LEAST_PARTS: u32 = 4;

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

/// A heartbeat of a node.
#[derive(Clone, Copy, Debug)]
pub struct Beat<'a> {
    /// The node that sends it.
    pub node: NodeId,
    /// How long the node stays a member without another heartbeat.
    pub expiry: Duration,
    /// The shortest length of an epoch. The first member sets it for all.
    pub pace: Duration,
    /// The number of nodes by which this node divided limits because its previous heartbeat failed; 0 if that
    /// was answered. A plan that is made now for the present epoch then gives each member no more than it may
    /// have admitted alone.
    pub alone_among: u32,
    /// The demand for limits, no more than [`MAX_WANTS`].
    pub wants: &'a [Want],
}

/// The demand of a node for one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The limit.
    pub limit: LimitId,
    /// Its window: epochs are whole numbers of windows, and begin where one begins.
    pub window: Duration,
    /// How long a counter remembers admissions from before an epoch's edge; zero if it does not. Epochs are
    /// no shorter. A share then grows only by parts that nobody had in the epoch before, because another
    /// holder may have spent them just before the edge.
    pub memory: Duration,
    /// The number of parts that the limit is divided into, from 1 to [`MAX_PARTS`].
    pub parts: u32,
    /// The number of parts that requests asked of this node in a window, all callers together; no more than
    /// [`MAX_DEMAND`].
    pub demand: u32,
}

/// The reply to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The store's time.
    pub now: Time,
    /// The number of members.
    pub members: u32,
    /// The time of this node's previous heartbeat; `None` if the store has none that has not expired. Any
    /// other time than the store itself reported then means that it lost data.
    pub previous: Option<Time>,
    /// The plans for each want, in order.
    pub plans: Vec<Plans>,
}

/// The plans for one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plans {
    /// The plan of the present epoch, if there is one.
    pub current: Option<Plan>,
    /// The plan of the next epoch, if there is one yet.
    pub next: Option<Plan>,
}

/// The division of a limit during one epoch, as one node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The start of the epoch, by the store's time.
    pub starts: Time,
    /// Its end.
    pub ends: Time,
    /// The number of parts in all.
    pub parts: u32,
    /// The parts of this node; 0 if the plan does not name it.
    pub share: u32,
    /// The parts that stay in the store, where any node may ask for them.
    pub reserve: u32,
    /// The number of members that the plan was made for.
    pub members: u32,
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
    /// The smallest reserve of any plan, so that a node that knows no plan can ask for that much.
    pub const fn least_reserve(parts: u32) -> u32 {
        let reserve = parts / 32;
        if reserve == 0 { 1 } else { reserve }
    }

    /// Whether a limit of so many parts is too small for shares: the store then decides every request. With
    /// fewer parts for each member, what is lost to rounding would be more than a share is worth.
    pub const fn is_too_small(parts: u32, members: u32) -> bool {
        parts < members.saturating_mul(LEAST_PARTS)
    }
}
