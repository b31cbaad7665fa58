//! REMEMBER TOGETHER: the store contract over Redis or Valkey.
//!
//! Every decision is one script that Redis runs as one step, on Redis' own clock. `scripts/` holds
//! them, `client` speaks to one server, a Sentinel's or a Cluster of them.

pub mod book;
pub mod client;
mod counter;
mod fit;
mod key;
mod members;
mod node;
pub mod report;
mod script;
mod store;
#[cfg(feature = "test-util")]
pub mod test_util;
mod totals;

pub use fit::fits;
pub use members::RedisMembers;
pub use store::RedisStore;
pub use totals::RedisTotals;
