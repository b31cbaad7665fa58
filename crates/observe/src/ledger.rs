//! The counts of one core by the names of the rules: they outlive the rule set that they were made by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use tidegate_limiter::RuleSet;
use tidegate_rules::RuleId;

use crate::counts::Counts;
use crate::rule_table::RuleTable;

/// The name of a rule: its domain and its path.
pub(crate) type RuleName = (Box<str>, Box<str>);

/// What one core counted by rule.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// What it counts in now.
    table: Arc<RuleTable>,
    /// The set it counted by before. Nothing else can lie at its address while this is held.
    before: Weak<RuleSet>,
    /// What was counted by earlier rule sets.
    past: BTreeMap<RuleName, Counts>,
    /// The same, of all rules that have no name there.
    past_other: Counts,
    max_rules: usize,
}

/// The sums of several ledgers; rules that were never met are not among them.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) by_name: BTreeMap<RuleName, Counts>,
    pub(crate) other: Counts,
}

/// The name of a rule of `rules`.
pub(crate) fn rule_name(rules: &RuleSet, rule: RuleId) -> RuleName {
    let domain = rules.domain_of(rule).name();
    (domain.into(), rules.rule(rule).path().into())
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn new(table: Arc<RuleTable>, max_rules: usize) -> Self {
        Self {
            table,
            before: Weak::new(),
            past: BTreeMap::new(),
            past_other: Counts::default(),
            max_rules,
        }
    }

    /// The table it counts in now.
    pub(crate) fn table(&self) -> &Arc<RuleTable> {
        &self.table
    }

    /// The counts of one rule.
    pub(crate) fn of(&self, name: &RuleName) -> Counts {
        let mut counts = self.past.get(name).copied().unwrap_or_default();
        let rules = self.table.rules().domain(&name.0);
        let rule = rules.and_then(|domain| domain.rules().find(|rule| *rule.path() == *name.1));
        counts += rule.map_or_else(Counts::default, |rule| self.table.of(rule.id()));
        counts
    }

    /// Whether `rules` were replaced by those it counts by now: a verdict that comes late.
    pub(crate) fn is_before(&self, rules: &Arc<RuleSet>) -> bool {
        std::ptr::eq(self.before.as_ptr(), Arc::as_ptr(rules))
    }

    /// Counts in `table` from now on.
    pub(crate) fn turn_over(&mut self, table: Arc<RuleTable>) {
        let old = std::mem::replace(&mut self.table, table);
        self.before = Arc::downgrade(old.rules());
        self.fold(&old);
        self.make_room();
    }

    /// Adds to a rule of a set that is no longer the current one.
    pub(crate) fn add_late(&mut self, rules: &RuleSet, rule: RuleId, counts: Counts) {
        let sum = if rule.index() < self.max_rules {
            let name = rule_name(rules, rule);
            self.past.entry(name).or_default()
        } else {
            &mut self.past_other
        };
        *sum += counts;
    }

    /// Adds what was counted in a table that is no longer the current one.
    fn fold(&mut self, old: &RuleTable) {
        for (domain, path, counts) in old.counts() {
            if counts != Counts::default() {
                *self.past.entry((domain.into(), path.into())).or_default() += counts;
            }
        }
        self.past_other += old.other();
    }

    /// Rules that are gone keep their names while there are names to spare.
    fn make_room(&mut self) {
        let room = self.max_rules.saturating_sub(self.table.n_own());
        if self.past.len() <= room {
            return;
        }
        let current: BTreeSet<(&str, &str)> = self
            .table
            .counts()
            .map(|(domain, path, _)| (domain, path))
            .collect();
        let mut n_gone = 0;
        let other = &mut self.past_other;
        self.past.retain(|(domain, path), counts| {
            let is_current = current.contains(&(&**domain, &**path));
            n_gone += usize::from(!is_current);
            let stays = is_current || n_gone <= room;
            if !stays {
                *other += *counts;
            }
            stays
        });
    }
}

// === impl Sums ===

impl Sums {
    pub(crate) fn add(&mut self, ledger: &Ledger) {
        for (name, counts) in &ledger.past {
            *self.by_name.entry(name.clone()).or_default() += *counts;
        }
        let counted = ledger.table.counts();
        for (domain, path, counts) in counted.filter(|(.., it)| *it != Counts::default()) {
            *self
                .by_name
                .entry((domain.into(), path.into()))
                .or_default() += counts;
        }
        self.other += ledger.past_other;
        self.other += ledger.table.other();
    }
}
