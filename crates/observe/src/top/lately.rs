//! What one core saw lately: in the current window of time and in the one before.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_limiter::{RuleSet, Time};
use tidegate_rules::RuleId;

use super::TopKind;
use super::tally::{Bounds, PLACE_BYTES, Sighting, Sketches, Tally};
use crate::TopConfig;
use crate::ledger::{RuleName, rule_name};

/// What one core saw lately.
#[derive(Debug)]
pub(crate) struct Lately {
    bounds: Bounds,
    window_nanos: u64,
    /// The number of the current window since the epoch.
    number: u64,
    current: Window,
    before: Window,
    /// By which the rules are numbered.
    rules: Arc<RuleSet>,
}

/// Whether time has moved on to another window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// It has.
    Yes,
    /// It has not.
    No,
}

/// What was seen in one window.
#[derive(Debug, Default)]
struct Window {
    busiest: Tally,
    refused: Tally,
}

// === impl Lately ===

impl Lately {
    pub(crate) fn new(config: &TopConfig, rules: Arc<RuleSet>) -> Self {
        // Two windows, each with two tallies.
        let n_places = config.max_memory / PLACE_BYTES / 4;
        let keys_per_rule = config.keys_per_rule.clamp(1, (n_places / 2).max(1));
        let nanos = u64::try_from(config.window.as_nanos()).unwrap_or(u64::MAX);
        Self {
            bounds: Bounds {
                keys_per_rule,
                places: n_places.saturating_sub(keys_per_rule),
            },
            window_nanos: nanos.max(1),
            number: 0,
            current: Window::default(),
            before: Window::default(),
            rules,
        }
    }

    /// Moves on to the window of `now`. A clock that steps back stays in the window it was in.
    pub(crate) fn turn(&mut self, now: Time) -> Turned {
        let number = now.nanos() / self.window_nanos;
        if number <= self.number {
            return Turned::No;
        }
        let last = std::mem::take(&mut self.current);
        self.before = if number == self.number + 1 {
            last
        } else {
            Window::default()
        };
        self.number = number;
        Turned::Yes
    }

    pub(crate) fn add(&mut self, kind: TopKind, seen: &Sighting<'_>) {
        let bounds = self.bounds;
        self.current.tally_mut(kind).add(seen, bounds);
    }

    /// Numbers rules by another set from now on.
    pub(crate) fn turn_over(&mut self, rules: &Arc<RuleSet>) {
        let old = std::mem::replace(&mut self.rules, Arc::clone(rules));
        let listed: HashMap<RuleName, RuleId> = self
            .tallies()
            .flat_map(Tally::listed)
            .map(|rule| (rule_name(&old, rule), rule))
            .collect();
        let mut numbers = HashMap::with_capacity(listed.len());
        for domain in rules.domains() {
            for rule in domain.rules() {
                let name = (domain.name().into(), rule.path().into());
                if let Some(number) = listed.get(&name) {
                    numbers.insert(*number, rule.id());
                }
            }
        }
        for window in [&mut self.current, &mut self.before] {
            window.busiest.renumber(&numbers);
            window.refused.renumber(&numbers);
        }
    }

    /// What was seen of the rules that are `wanted` in the window of `now` and in the one before.
    pub(crate) fn sketches(
        &self,
        kind: TopKind,
        now: Time,
        wanted: impl Fn(&RuleName) -> bool,
    ) -> Vec<Sketches> {
        let of = |window: &Window| window.tally(kind).sketches(&self.rules, &wanted);
        let number = now.nanos() / self.window_nanos;
        match number.saturating_sub(self.number) {
            0 => vec![of(&self.current), of(&self.before)],
            1 => vec![of(&self.current)],
            _ => Vec::new(),
        }
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        let windows = [&self.current, &self.before];
        windows
            .into_iter()
            .flat_map(|window| [&window.busiest, &window.refused])
    }
}

// === impl Window ===

impl Window {
    fn tally(&self, kind: TopKind) -> &Tally {
        match kind {
            TopKind::Busiest => &self.busiest,
            TopKind::Refused => &self.refused,
        }
    }

    fn tally_mut(&mut self, kind: TopKind) -> &mut Tally {
        match kind {
            TopKind::Busiest => &mut self.busiest,
            TopKind::Refused => &mut self.refused,
        }
    }
}
