//! REMEMBER TOGETHER, from memory: how the nodes that have one store in common share a limit without
//! asking it for every request.
//!
//! [`SharedStore`] is the store of one node among many: it decides on each limit by its
//! [`Consistency`](tidegate_store::Consistency), and on all limits of a request together.

mod capacity;
mod edge;
mod eventual;
mod leased;
mod membership;
mod memory;
mod node;
mod noted;
mod numbers;
mod reckoning;
mod replies;
mod request;
mod saved;
mod shared;
mod split;
mod standby;

pub use eventual::{Eventual, EventualConfig, overshoot_bound};
pub use leased::{LeaseConfig, lease_life};
pub use membership::{KnownMembers, Membership};
pub use saved::{CounterGroup, RestoreResult, SavedCounters};
pub use shared::{SharedConfig, SharedStore};
pub use split::{Indivisible, LONGEST_SPLIT_WINDOW, Split, SplitConfig, divisible, strict_from};
pub use standby::StandbyLimit;
