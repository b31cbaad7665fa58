//! The matcher's walk, written down: what was considered at each level, and why it was not chosen.

use crate::rule::Rule;

/// The walk of one descriptor through a domain.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    /// One step for each entry looked at.
    pub steps: Vec<Step<'a>>,
    /// What [`Domain::find`](crate::Domain::find) answers.
    pub rule: Option<&'a Rule>,
}

/// What happened at one level.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The candidates of that level, in the order they are tried.
    pub candidates: Vec<Candidate<'a>>,
}

/// One sibling at a level.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The sibling as written, such as `plan=free*`.
    pub label: &'a str,
    /// Whether it was chosen, and if not, why.
    pub fate: Fate,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The walk went on from it.
    Chosen,
    /// Its key is another one.
    OtherKey,
    /// Its value does not match.
    NoMatch,
    /// It matches, but an earlier candidate took precedence.
    Outranked,
}
