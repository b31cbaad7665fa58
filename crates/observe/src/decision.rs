//! The latest decisions, kept in memory: every denial and a sample of the other requests, so that each can be explained by its id.
//!
//! No text that a client sent is kept, and the memory is bounded. The threads that decide never wait for each other or for a reader.

mod id;
mod log;
mod name_table;
mod packed;
mod ring;

use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{DecisionPath, Retry};

pub use id::{DecisionId, MalformedDecisionId};
pub(crate) use log::{DecisionLog, DecisionWriter};

/// A decision as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDecision {
    /// Its id.
    pub id: DecisionId,
    /// The time since the epoch, by the clock of [`clock`](Self::clock).
    pub time: Duration,
    /// The clock that `time` was read from.
    pub clock: DecisionClock,
    /// The answer to the request.
    pub answer: RecordedAnswer,
    /// The part of the system that decided.
    pub path: DecisionPath,
    /// The rule of the limit that decided; `None` for a limit that came with the request, a ban without a limit, and a rule that has been
    /// forgotten since.
    pub rule: Option<Arc<RecordedRule>>,
    /// The place of that limit among those of its rule.
    pub limit_index: usize,
    /// The number of limits that applied to the request.
    pub n_limits: usize,
    /// The route of a request that came through the gateway.
    pub route: Option<Arc<str>>,
    /// The units that the request asked of that limit.
    pub cost: u64,
    /// The counter of that limit; `None` if no counter was read.
    pub counter: Option<RecordedCounter>,
    /// The end of a denial.
    pub retry: Option<Retry>,
}

/// The counter of a limit at the time of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedCounter {
    /// The largest number of units that the limit can allow at one instant.
    pub limit: u64,
    /// The units that remained before the decision.
    pub remaining_before: u64,
    /// The units that remained after it.
    pub remaining_after: u64,
    /// The time until the whole limit is available again, if nothing more is charged.
    pub reset_after: Duration,
}

/// A rule as it was in force at the time of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedRule {
    /// Its domain.
    pub domain: Box<str>,
    /// Its path, at most 256 characters of it.
    pub path: Box<str>,
    /// The file in which it was written.
    pub file: Box<str>,
    /// The line of that file, from 1.
    pub line: usize,
    /// The descriptions of its limits.
    pub limits: Box<[Box<str>]>,
}

/// The longest path of a rule that is kept, in characters. Rules are the operator's, but their values can have any length.
const MAX_PATH: usize = 256;

/// The answer to a request whose decision was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedAnswer {
    /// The request was allowed.
    Allowed,
    /// The request was denied.
    Denied,
    /// The request would have been denied, but the limiter as a whole is in shadow mode.
    Shadowed,
}

/// The clock of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionClock {
    /// That of the store, by which counters are decided.
    Store,
    /// That of this node, because no counter was read.
    Node,
}

/// The decisions to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionQuery {
    /// Leaves out requests that were allowed.
    pub only_denied: bool,
    /// The largest number of decisions.
    pub most: usize,
}

/// Decisions that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionReport {
    /// The decisions that the query asks for, newest first.
    pub decisions: Vec<RecordedDecision>,
    /// The state of the memory that they are kept in.
    pub retention: DecisionRetention,
}

/// The state of the memory for decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionRetention {
    /// The number of decisions that can be kept; 0 if none are.
    pub capacity: usize,
    /// The number of decisions that are kept now.
    pub kept: usize,
    /// The time for which a decision is kept at the present rate; `None` while fewer than two are kept.
    pub kept_for: Option<Duration>,
    /// One in this many allowed requests is kept; 0 if none is.
    pub sampled_one_in: u32,
}

// === impl RecordedRule ===

impl RecordedRule {
    /// Tells whether a rule with this path, in the same domain, can be the one that was recorded.
    pub fn has_path(&self, path: &str) -> bool {
        path.chars().take(MAX_PATH).eq(self.path.chars())
    }
}
