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
        let subject = Subject::new(entry.value);
        let patterns = branch
            .patterns
            .iter()
            .map(|(pattern, node)| (*node, Rank::Pattern, pattern.matches(&subject)));
        let mut exact: Vec<_> = branch
            .exact
            .iter()
            .map(|(value, node)| (*node, Rank::Exact, value == entry.value))
            .collect();
        exact.sort_unstable_by_key(|(node, _, _)| *node);
        let default = branch.default.map(|node| (node, Rank::BareKey, true));
        let mut candidates: Vec<(NodeId, Rank, bool)> = Vec::new();
        let mut places: HashMap<NodeId, usize> = HashMap::new();
        for candidate in exact.into_iter().chain(patterns).chain(default) {
            // A list of values is one candidate, however many of them there are.
            if let Some(place) = places.get(&candidate.0) {
                candidates[*place].2 |= candidate.2;
            } else {
                places.insert(candidate.0, candidates.len());
                candidates.push(candidate);
            }
        }
        let describe = |(node, rank, matches): (NodeId, Rank, bool)| {
            let fate = match (chosen == Some(node), matches) {
                (true, _) => Fate::Chosen,
                (false, true) => Fate::Outranked,
                (false, false) => Fate::NoMatch,
            };
            Candidate {
                label: &self.nodes[node].label,
                rank,
                fate,
            }
        };
        candidates.into_iter().map(describe).collect()
    }
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
