//! The busiest and the most refused keys, lately.

mod key;
mod lately;
mod looker;
mod merge;
mod space_saving;
mod tally;

use std::time::Duration;

pub(crate) use key::Key;
pub(crate) use lately::Lately;
pub(crate) use looker::Looker;
pub(crate) use merge::merge;
pub(crate) use tally::Sketches;

/// What keys are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKind {
    /// All their requests.
    Busiest,
    /// Their requests that a rule refused, or would have refused.
    Refused,
}

/// Which keys to show.
#[derive(Clone, Copy, Debug)]
pub struct TopQuery<'a> {
    /// What they are counted by.
    pub kind: TopKind,
    /// Those of this domain; of all if `None`.
    pub domain: Option<&'a str>,
    /// Those of the rule with this path; of all if `None`.
    pub rule: Option<&'a str>,
    /// At most so many.
    pub most: usize,
}

/// The keys that were counted most, and how sure that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopReport {
    /// The keys, the greatest count first.
    pub keys: Vec<TopKey>,
    /// The time that the counts cover.
    pub span: Duration,
    /// After the first thousand of a core and a window, one request in so many was looked at; it
    /// stands for as many.
    pub sampled_one_in: u32,
}

/// One key with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopKey {
    /// The domain.
    pub domain: String,
    /// The path of the rule.
    pub rule: String,
    /// The entries that tell callers apart, as `key=value`, clipped; empty if the rule has one counter
    /// for all.
    pub key: String,
    /// About how many requests. Sampling aside, never less than there were.
    pub count: u64,
    /// By how many at most the count is too great, sampling aside.
    pub error: u64,
}
