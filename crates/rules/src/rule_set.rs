//! The compiled rules, and the walk from a descriptor to the rule that holds it.

use crate::pattern::{Pattern, Subject};
use crate::pattern_index::PatternIndex;
use crate::rule::{Rule, RuleId};
use crate::table::Table;

/// Every domain's rules, compiled.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    domains: Vec<Domain>,
    by_name: Table<usize>,
}

/// The rules of one domain.
#[derive(Clone, Debug)]
pub struct Domain {
    pub(crate) name: Box<str>,
    pub(crate) charging: Option<Charging>,
    /// The number of its first rule in the set.
    pub(crate) first_rule: usize,
    pub(crate) rules: Vec<Rule>,
    /// The tree; the first node is the root.
    pub(crate) nodes: Vec<Node>,
}

/// How the limits of one request are charged (field `charging` of the domain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charging {
    /// All of them or none: a refused request costs nothing.
    #[default]
    AllOrNone,
    /// Each alone, whatever the others say, as envoyproxy/ratelimit does.
    EveryMatch,
}

/// One entry of a descriptor as it arrives with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: &'a str,
}

/// A place in the tree: where a descriptor stands after some of its entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The node among its siblings, for people.
    pub(crate) label: Box<str>,
    /// Its rule, unless it is only a way to others.
    pub(crate) rule: Option<usize>,
    pub(crate) branches: Table<Branch>,
}

/// The siblings that share a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch {
    pub(crate) exact: Table<NodeId>,
    /// In the order of the file.
    pub(crate) patterns: Vec<(Pattern, NodeId)>,
    /// The patterns made ready to be searched together, if there are many.
    pub(crate) index: Option<PatternIndex>,
    /// The bare key.
    pub(crate) default: Option<NodeId>,
}

/// Index of a node in its domain.
pub(crate) type NodeId = usize;

// === impl RuleSet ===

impl RuleSet {
    pub(crate) fn new(domains: Vec<Domain>) -> Self {
        let mut by_name = Table::default();
        for (at, domain) in domains.iter().enumerate() {
            by_name.insert(&domain.name, at);
        }
        Self { domains, by_name }
    }

    /// The domain of this name.
    pub fn domain(&self, name: &str) -> Option<&Domain> {
        self.by_name.get(name).map(|at| &self.domains[*at])
    }

    /// The domains in the order of the files.
    pub fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.domains.iter()
    }

    /// Every rule, in the order of [`RuleId::index`].
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.domains.iter().flat_map(|domain| domain.rules.iter())
    }

    /// The rule of this number.
    ///
    /// # Panics
    ///
    /// If `id` comes from a larger set.
    #[inline]
    pub fn rule(&self, id: RuleId) -> &Rule {
        let domain = self.domain_of(id);
        &domain.rules[id.index() - domain.first_rule]
    }

    /// The domain of the rule of this number.
    ///
    /// # Panics
    ///
    /// If there is no domain.
    #[inline]
    pub fn domain_of(&self, id: RuleId) -> &Domain {
        // Most sets have one domain, and this is asked several times for each request.
        match &self.domains[..] {
            [only] => only,
            domains => domain_among(domains, id),
        }
    }
}

// === impl Domain ===

impl Domain {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the domain wants its limits charged, if it says so.
    pub const fn charging(&self) -> Option<Charging> {
        self.charging
    }

    /// The rules of the domain in the order of the file, parents first.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The rule at the node that the last entry reaches. Allocates nothing, unless the value holds parts of many patterns of its key
    /// that have several parts each.
    ///
    /// At each level the exact value goes first, then the patterns in the order of the file, then
    /// the bare key; what was chosen is never taken back. A node without limits is `None` if it has
    /// children, and an allow-list entry (a rule without limits) if it has none.
    pub fn find(&self, descriptor: &[Entry<'_>]) -> Option<&Rule> {
        let mut node = self.nodes.first()?;
        for entry in descriptor {
            let branch = node.branches.get(entry.key)?;
            node = &self.nodes[branch.choose(entry.value)?];
        }
        node.rule.map(|rule| &self.rules[rule])
    }
}

impl Domain {
    /// True if a descriptor with these keys, in this order, reaches a rule for some values.
    pub fn has_rule_for<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> bool {
        let mut reached: Vec<&Node> = self.nodes.first().into_iter().collect();
        for key in keys {
            let branches = reached.iter().filter_map(|node| node.branches.get(key));
            let children = branches.flat_map(Branch::children);
            reached = children.map(|child| &self.nodes[child]).collect();
        }
        reached.iter().any(|node| node.rule.is_some())
    }
}

// === impl Branch ===

impl Branch {
    fn children(&self) -> impl Iterator<Item = NodeId> {
        let exact = self.exact.values().copied();
        let patterns = self.patterns.iter().map(|(_, node)| *node);
        exact.chain(patterns).chain(self.default)
    }

    /// The child that takes `value`.
    #[inline]
    pub(crate) fn choose(&self, value: &str) -> Option<NodeId> {
        if let Some(node) = self.exact.get(value) {
            return Some(*node);
        }
        if self.patterns.is_empty() {
            return self.default;
        }
        self.choose_by_pattern(value).or(self.default)
    }

    /// The child of the first pattern that takes `value`. Apart, so that the search without patterns stays short.
    #[inline(never)]
    fn choose_by_pattern(&self, value: &str) -> Option<NodeId> {
        let subject = Subject::new(value);
        let found = match &self.index {
            Some(index) => {
                let matches = |place: usize| self.patterns[place].0.matches(&subject);
                let place = index.find(value, matches);
                place.map(|place| &self.patterns[place])
            }
            None => self
                .patterns
                .iter()
                .find(|(pattern, _)| pattern.matches(&subject)),
        };
        found.map(|(_, node)| *node)
    }
}

/// The domain of the rule of this number among several.
fn domain_among(domains: &[Domain], id: RuleId) -> &Domain {
    // Of domains that begin at the same number all but the last are empty.
    let after = domains.partition_point(|domain| domain.first_rule <= id.index());
    &domains[after - 1]
}
