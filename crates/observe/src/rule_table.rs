//! The counters of each rule of one rule set, as one core writes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_limiter::RuleSet;
use tidegate_rules::RuleId;

use crate::MetricNames;
use crate::counter::Counter;
use crate::counts::{Counts, ReferenceCounts, RuleCounts};

/// What a rule made of a request, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Allowed,
    Near,
    Over,
    Shadowed,
    Refused,
}

/// The counters of the rules of one set. It holds on to the set, so that no other set can lie at the
/// same address while somebody compares.
#[derive(Debug)]
pub(crate) struct RuleTable {
    rules: Arc<RuleSet>,
    /// Of each rule that is counted apart, and of all others together.
    cells: Box<[RuleCells]>,
    /// The same, if the names of the reference are asked for; else empty.
    reference: Box<[ReferenceCells]>,
    /// The number by which kept decisions name each rule that is counted apart.
    names: Box<[NameNumber]>,
}

/// The number by which kept decisions name a rule; 0 while it has none. Only its core writes it.
#[derive(Debug, Default)]
pub(crate) struct NameNumber(AtomicU32);

/// The counters of one rule: a cache line, so that a request touches one.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct RuleCells {
    outcomes: [Counter; 5],
    hits: Counter,
}

/// The counters that envoyproxy/ratelimit has of a rule, all in hits.
#[derive(Debug, Default)]
pub(crate) struct ReferenceCells {
    over_limit: Counter,
    near_limit: Counter,
    within_limit: Counter,
    shadow_mode: Counter,
}

// === impl RuleTable ===

impl RuleTable {
    pub(crate) fn new(rules: Arc<RuleSet>, max_rules: usize, names: MetricNames) -> Self {
        let n_cells = rules.rules().count().min(max_rules) + 1;
        let n_reference = match names {
            MetricNames::Own => 0,
            MetricNames::WithReference => n_cells,
        };
        Self {
            rules,
            cells: (0..n_cells).map(|_| RuleCells::default()).collect(),
            reference: (0..n_reference)
                .map(|_| ReferenceCells::default())
                .collect(),
            names: (1..n_cells).map(|_| NameNumber::default()).collect(),
        }
    }

    /// Whether it is that of `rules`.
    #[inline]
    pub(crate) fn is_of(&self, rules: &Arc<RuleSet>) -> bool {
        Arc::ptr_eq(&self.rules, rules)
    }

    pub(crate) fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    #[inline]
    pub(crate) fn cells(&self, rule: RuleId) -> &RuleCells {
        &self.cells[rule.index().min(self.n_own())]
    }

    /// `None` unless the names of the reference are asked for.
    #[inline]
    pub(crate) fn reference(&self, rule: RuleId) -> Option<&ReferenceCells> {
        self.reference.get(rule.index().min(self.n_own()))
    }

    /// `None` for a rule that is not counted apart.
    pub(crate) fn name_number(&self, rule: RuleId) -> Option<&NameNumber> {
        self.names.get(rule.index())
    }

    /// The domain and the path of every rule that is counted apart, with its counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, &str, Counts)> {
        let named = self
            .rules
            .domains()
            .flat_map(|domain| domain.rules().map(|rule| (domain.name(), rule.path())));
        named
            .take(self.n_own())
            .enumerate()
            .map(|(index, (domain, path))| (domain, path, self.count(index)))
    }

    /// The counts of one rule; none if it is not counted apart.
    pub(crate) fn of(&self, rule: RuleId) -> Counts {
        if rule.index() < self.n_own() {
            self.count(rule.index())
        } else {
            Counts::default()
        }
    }

    /// The counts of all other rules.
    pub(crate) fn other(&self) -> Counts {
        self.count(self.n_own())
    }

    /// How many rules are counted apart.
    pub(crate) fn n_own(&self) -> usize {
        self.cells.len() - 1
    }

    fn count(&self, index: usize) -> Counts {
        Counts {
            own: self.cells[index].counts(),
            reference: self
                .reference
                .get(index)
                .map(ReferenceCells::counts)
                .unwrap_or_default(),
        }
    }
}

// === impl NameNumber ===

impl NameNumber {
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, number: u32) {
        self.0.store(number, Ordering::Relaxed);
    }
}

// === impl RuleCells ===

impl RuleCells {
    #[inline]
    pub(crate) fn add(&self, outcome: Outcome, hits: u64) {
        self.outcomes[outcome as usize].add(1);
        self.hits.add(hits);
    }

    pub(crate) fn counts(&self) -> RuleCounts {
        let of = |outcome: Outcome| self.outcomes[outcome as usize].get();
        RuleCounts {
            allowed: of(Outcome::Allowed),
            near: of(Outcome::Near),
            over: of(Outcome::Over),
            shadowed: of(Outcome::Shadowed),
            refused: of(Outcome::Refused),
            hits: self.hits.get(),
        }
    }
}

// === impl ReferenceCells ===

impl ReferenceCells {
    pub(crate) fn add(&self, counts: &ReferenceCounts) {
        self.over_limit.add(counts.over_limit);
        self.near_limit.add(counts.near_limit);
        self.within_limit.add(counts.within_limit);
        self.shadow_mode.add(counts.shadow_mode);
    }

    fn counts(&self) -> ReferenceCounts {
        ReferenceCounts {
            over_limit: self.over_limit.get(),
            near_limit: self.near_limit.get(),
            within_limit: self.within_limit.get(),
            shadow_mode: self.shadow_mode.get(),
        }
    }
}
