//! The compiled rules, and the walk from a descriptor to the rule that holds it.

use crate::rule::{Rule, RuleId};
use crate::trace::Trace;

/// Every domain's rules, compiled.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    domains: Vec<Domain>,
}

/// The rules of one domain.
#[derive(Clone, Debug)]
pub struct Domain {
    name: Box<str>,
    charging: Option<Charging>,
    rules: Vec<Rule>,
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

// === impl RuleSet ===

impl RuleSet {
    /// The domain of this name.
    pub fn domain(&self, _name: &str) -> Option<&Domain> {
        unimplemented!()
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
    pub fn rule(&self, _id: RuleId) -> &Rule {
        unimplemented!()
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

    /// The rule at the node that the last entry reaches; allocates nothing.
    ///
    /// At each level the exact value goes first, then the patterns in the order of the file, then
    /// the bare key; what was chosen is never taken back. A node without limits is `None` if it has
    /// children, and an allow-list entry (a rule without limits) if it has none.
    pub fn find(&self, _descriptor: &[Entry<'_>]) -> Option<&Rule> {
        unimplemented!()
    }

    /// The same walk as [`Domain::find`], written down.
    pub fn trace(&self, _descriptor: &[Entry<'_>]) -> Trace<'_> {
        unimplemented!()
    }
}
