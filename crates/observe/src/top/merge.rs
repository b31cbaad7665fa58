//! The keys of all cores, added up.

use std::collections::{BTreeSet, HashMap};

use super::TopKey;
use super::tally::{SketchedKey, Sketches};
use crate::ledger::RuleName;

/// The `most` keys with the greatest counts.
pub(crate) fn merge(sketches: &[Sketches], most: usize) -> Vec<TopKey> {
    let names: BTreeSet<&RuleName> = sketches.iter().flat_map(Sketches::names).collect();
    let mut keys: Vec<TopKey> = names
        .into_iter()
        .flat_map(|name| keys_of(name, sketches))
        .collect();
    keys.sort_by(|left, right| {
        let sure = |key: &TopKey| key.count - key.error;
        let by_count = (right.count, sure(right)).cmp(&(left.count, sure(left)));
        by_count.then_with(|| (&left.rule, &left.key).cmp(&(&right.rule, &right.key)))
    });
    keys.truncate(most);
    keys
}

/// All keys of one rule. A key that one sketch does not hold may have been counted there up to its
/// floor: that goes to the count, which is never to be too small, and to the error.
fn keys_of(name: &RuleName, sketches: &[Sketches]) -> Vec<TopKey> {
    let mut sums: HashMap<u64, SketchedKey> = HashMap::new();
    for (hash, key) in sketches
        .iter()
        .filter_map(|it| it.of(name).0)
        .flat_map(|sketch| &sketch.keys)
    {
        sums.entry(*hash).or_insert_with(|| SketchedKey {
            text: key.text.clone(),
            count: 0,
            error: 0,
        });
    }
    for (hash, sum) in &mut sums {
        for sketch in sketches {
            let (sketch, floor) = sketch.of(name);
            let known = sketch.and_then(|sketch| sketch.keys.get(hash));
            let (count, error) = known.map_or((floor, floor), |key| (key.count, key.error));
            sum.count = sum.count.saturating_add(count);
            sum.error = sum.error.saturating_add(error);
        }
    }
    let top_key = |sum: SketchedKey| TopKey {
        domain: name.0.to_string(),
        rule: name.1.to_string(),
        key: sum.text,
        count: sum.count,
        error: sum.error,
    };
    sums.into_values().map(top_key).collect()
}
