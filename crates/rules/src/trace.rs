//! The matcher's walk, written down: what was considered at each level, and why it was not chosen.

use std::collections::HashMap;

use crate::pattern::Subject;
use crate::rule::Rule;
use crate::rule_set::{Branch, Domain, Entry, NodeId};

/// The walk of one descriptor through a domain.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    /// One step for each entry that was looked at.
    pub steps: Vec<Step<'a>>,
    /// How the walk ended.
    pub ending: Ending<'a>,
}

/// What happened at one level.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The entry of the descriptor.
    pub entry: Entry<'a>,
    /// The siblings with its key, in the order in which they are tried.
    pub candidates: Vec<Candidate<'a>>,
    /// How many other keys the level knows.
    pub other_keys: usize,
}

/// One sibling at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The sibling as written, such as `plan=free*`.
    pub label: &'a str,
    /// How it matches.
    pub rank: Rank,
    /// Whether it was chosen, and if not, why.
    pub fate: Fate,
}

/// How a candidate matches; the first rank goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// By the exact value.
    Exact,
    /// By a pattern: a wildcard, or networks.
    Pattern,
    /// By the key alone.
    BareKey,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The walk went on from it.
    Chosen,
    /// It does not match the value.
    NoMatch,
    /// It matches, but one tried before it took the value.
    Outranked,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending<'a> {
    /// At a rule; one without limits is an allow-list entry.
    Rule(&'a Rule),
    /// At a node that has rules below it, but no limit itself: nothing applies.
    NoLimitHere,
    /// No rule of the level takes the last entry looked at: nothing applies.
    NoMatch,
    /// The node has no rules below it, but the descriptor goes on: nothing applies.
    TooDeep,
    /// The descriptor has no entries: nothing applies.
    Empty,
}

/// One value or pattern that was held against the request's value.
struct Tried {
    node: NodeId,
    rank: Rank,
    matches: bool,
}

// === impl Domain ===

impl Domain {
    /// The same walk as [`Domain::find`], written down.
    pub fn trace<'a>(&'a self, descriptor: &[Entry<'a>]) -> Trace<'a> {
        let mut steps = Vec::with_capacity(descriptor.len());
        let mut at: NodeId = 0;
        for entry in descriptor {
            let node = &self.nodes[at];
            if node.branches.is_empty() {
                return Trace {
                    steps,
                    ending: Ending::TooDeep,
                };
            }
            let branch = node.branches.get(entry.key);
            let other_keys = node.branches.len() - usize::from(branch.is_some());
            let chosen = branch.and_then(|branch| branch.choose(entry.value));
            let candidates = branch
                .map(|branch| self.candidates(branch, entry, chosen))
                .unwrap_or_default();
            steps.push(Step {
                entry: *entry,
                candidates,
                other_keys,
            });
            match chosen {
                Some(chosen) => at = chosen,
                None => {
                    return Trace {
                        steps,
                        ending: Ending::NoMatch,
                    };
                }
            }
        }
        let rule = self.nodes[at].rule.map(|rule| &self.rules[rule]);
        let ending = match rule {
            Some(rule) => Ending::Rule(rule),
            None if descriptor.is_empty() => Ending::Empty,
            None => Ending::NoLimitHere,
        };
        Trace { steps, ending }
    }

    fn candidates<'a>(
        &'a self,
        branch: &Branch,
        entry: &Entry<'_>,
        chosen: Option<NodeId>,
    ) -> Vec<Candidate<'a>> {
        let describe = |tried: Tried| Candidate {
            label: &self.nodes[tried.node].label,
            rank: tried.rank,
            fate: match (chosen == Some(tried.node), tried.matches) {
                (true, _) => Fate::Chosen,
                (false, true) => Fate::Outranked,
                (false, false) => Fate::NoMatch,
            },
        };
        let tried = once_each(tries(branch, entry.value));
        tried.into_iter().map(describe).collect()
    }
}

/// Everything that is held against the value, in order.
fn tries(branch: &Branch, value: &str) -> Vec<Tried> {
    let exact = branch.exact.iter().map(|(known, node)| Tried {
        node: *node,
        rank: Rank::Exact,
        matches: known == value,
    });
    let mut tries: Vec<_> = exact.collect();
    // The order of the file, which the table does not keep.
    tries.sort_unstable_by_key(|tried| tried.node);
    let subject = Subject::new(value);
    tries.extend(branch.patterns.iter().map(|(pattern, node)| Tried {
        node: *node,
        rank: Rank::Pattern,
        matches: pattern.matches(&subject),
    }));
    tries.extend(branch.default.map(|node| Tried {
        node,
        rank: Rank::BareKey,
        matches: true,
    }));
    tries
}

/// One try for each node: a rule with a list of values is one candidate, and the value of it that
/// matches counts.
fn once_each(tries: Vec<Tried>) -> Vec<Tried> {
    let mut kept: Vec<Tried> = Vec::new();
    let mut places: HashMap<NodeId, usize> = HashMap::new();
    for tried in tries {
        let place = *places.entry(tried.node).or_insert(kept.len());
        match kept.get_mut(place) {
            None => kept.push(tried),
            Some(earlier) if tried.matches && !earlier.matches => *earlier = tried,
            Some(_) => {}
        }
    }
    kept
}

// === impl Trace ===

impl<'a> Trace<'a> {
    /// What [`Domain::find`] answers.
    pub const fn rule(&self) -> Option<&'a Rule> {
        match self.ending {
            Ending::Rule(rule) => Some(rule),
            _ => None,
        }
    }
}
