//! The most frequent keys of each rule by one measure, in one window.

use std::collections::{BTreeMap, HashMap};

use tidegate_limiter::RuleSet;
use tidegate_rules::RuleId;

use super::key::{self, Key};
use super::space_saving::{Place, Room, SpaceSaving};
use crate::ledger::{RuleName, rule_name};

/// The most bytes of a place: the text of a key, which may have grown to twice what it holds, and the
/// numbers that go with it.
pub(crate) const PLACE_BYTES: usize = 2 * key::MAX_BYTES + 64;

/// The most frequent keys of each rule.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Those of the rules that came first. Few rules are found sooner in order than by a hash.
    rules: BTreeMap<RuleId, SpaceSaving<String>>,
    /// Those of the rules that came when the memory was used up.
    shared: SpaceSaving<(Option<RuleId>, String)>,
    /// How many places are taken, those that are shared aside. A list costs one too.
    n_taken: usize,
}

/// How much a tally may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Places of each rule, and as many that are shared.
    pub(crate) keys_per_rule: usize,
    /// Places in all, those that are shared aside.
    pub(crate) places: usize,
}

/// A key that was seen, and under which rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting<'a> {
    pub(crate) rule: RuleId,
    pub(crate) key: Key<'a>,
    pub(crate) hash: u64,
    /// For how many requests it stands.
    pub(crate) weight: u64,
}

/// What a tally holds, by the names of the rules.
#[derive(Debug, Default)]
pub(crate) struct Sketches {
    own: HashMap<RuleName, Sketch>,
    shared: HashMap<RuleName, Sketch>,
    shared_floor: u64,
}

/// The most frequent keys of one rule.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    pub(crate) keys: HashMap<u64, SketchedKey>,
    floor: u64,
}

/// One key with its count, and by how much that may be too great.
#[derive(Clone, Debug)]
pub(crate) struct SketchedKey {
    pub(crate) text: String,
    pub(crate) count: u64,
    pub(crate) error: u64,
}

// === impl Tally ===

impl Tally {
    pub(crate) fn add(&mut self, seen: &Sighting<'_>, bounds: Bounds) {
        let n_taken = self.n_taken;
        let list = match self.rules.get_mut(&seen.rule) {
            Some(list) => list,
            None if n_taken >= bounds.places => return self.add_shared(seen, bounds),
            None => {
                self.n_taken += 1;
                self.rules.entry(seen.rule).or_default()
            }
        };
        let has_room = list.len() < bounds.keys_per_rule && self.n_taken < bounds.places;
        let room = if has_room { Room::More } else { Room::Full };
        let place = list.offer(seen.hash, seen.weight, room, |text| seen.key.write(text));
        self.n_taken += usize::from(place == Place::New);
    }

    fn add_shared(&mut self, seen: &Sighting<'_>, bounds: Bounds) {
        let has_room = self.shared.len() < bounds.keys_per_rule;
        let room = if has_room { Room::More } else { Room::Full };
        let hash = seen.hash ^ mark(seen.rule);
        self.shared.offer(hash, seen.weight, room, |(rule, text)| {
            *rule = Some(seen.rule);
            seen.key.write(text);
        });
    }

    /// Rules are numbered anew. What is kept of those that are gone, and what is shared, is forgotten.
    pub(crate) fn renumber(&mut self, number: &HashMap<RuleId, RuleId>) {
        let lists = std::mem::take(&mut self.rules);
        let kept = lists
            .into_iter()
            .filter_map(|(old, list)| Some((*number.get(&old)?, list)));
        self.rules = kept.collect();
        self.shared = SpaceSaving::default();
        self.n_taken = self.rules.values().map(|list| 1 + list.len()).sum();
    }

    /// The rules that have a list of their own.
    pub(crate) fn listed(&self) -> impl Iterator<Item = RuleId> {
        self.rules.keys().copied()
    }

    /// What it holds of the rules that are `wanted`.
    pub(crate) fn sketches(&self, rules: &RuleSet, wanted: impl Fn(&RuleName) -> bool) -> Sketches {
        let mut sketches = Sketches {
            shared_floor: self.shared.floor(),
            ..Sketches::default()
        };
        for (rule, list) in &self.rules {
            let name = rule_name(rules, *rule);
            if wanted(&name) {
                sketches.own.insert(name, Sketch::of(list));
            }
        }
        for (hash, count, kept) in self.shared.iter() {
            let (Some(rule), text) = &kept.key else {
                continue;
            };
            let name = rule_name(rules, *rule);
            if wanted(&name) {
                let sketch = sketches.shared.entry(name).or_default();
                sketch.floor = self.shared.floor();
                sketch.add(hash ^ mark(*rule), count, kept.error, text);
            }
        }
        sketches
    }
}

// === impl Sketches ===

impl Sketches {
    pub(crate) fn names(&self) -> impl Iterator<Item = &RuleName> {
        self.own.keys().chain(self.shared.keys())
    }

    /// The keys of a rule, and what one that is not among them may have been counted at most.
    pub(crate) fn of(&self, rule: &RuleName) -> (Option<&Sketch>, u64) {
        let sketch = self.own.get(rule).or_else(|| self.shared.get(rule));
        let floor = sketch.map_or(self.shared_floor, |sketch| sketch.floor);
        (sketch, floor)
    }
}

// === impl Sketch ===

impl Sketch {
    fn of(list: &SpaceSaving<String>) -> Self {
        let mut sketch = Self {
            floor: list.floor(),
            ..Self::default()
        };
        for (hash, count, kept) in list.iter() {
            sketch.add(hash, count, kept.error, &kept.key);
        }
        sketch
    }

    fn add(&mut self, hash: u64, count: u64, error: u64, text: &str) {
        let key = SketchedKey {
            text: text.to_owned(),
            count,
            error,
        };
        self.keys.insert(hash, key);
    }
}

/// Tells keys of different rules apart in a list they share. Taken twice, it is as if never.
fn mark(rule: RuleId) -> u64 {
    let number = u64::try_from(rule.index()).unwrap_or(u64::MAX);
    // Fibonacci's multiplier spreads small numbers over all bits.
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
