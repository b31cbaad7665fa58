//! The key of a counter: a hash to tell it by, and a text to show.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::IpAddr;

use tidegate_limiter::{Entry, Rule};

/// The most bytes of a key that are shown.
pub(crate) const MAX_BYTES: usize = 96;

/// What takes the place of the part that is not shown.
const CUT: char = '…';

/// The values of a descriptor that tell callers apart under a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    rule: &'a Rule,
    entries: &'a [Entry<'a>],
}

// === impl Key ===

impl<'a> Key<'a> {
    pub(crate) const fn new(rule: &'a Rule, entries: &'a [Entry<'a>]) -> Self {
        Self { rule, entries }
    }

    /// A hash of the whole key, whatever is shown of it. Its seed is random, so nobody outside can
    /// choose two keys that share a count.
    pub(crate) fn hash(&self, seed: &RandomState) -> u64 {
        let mut hasher = seed.build_hasher();
        for (index, entry) in self.counted() {
            match self.address(index, entry) {
                Some(address) => address.hash(&mut hasher),
                None => entry.value.hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// Writes `key=value, …` over `text`, cut short if it is long. What is no printable character is
    /// replaced, for it ends up on terminals.
    pub(crate) fn write(&self, text: &mut String) {
        text.clear();
        for (key, value) in self.values() {
            let between = if text.is_empty() { "" } else { ", " };
            let parts = [between, key, "=", &value];
            for character in parts.iter().flat_map(|part| part.chars()) {
                if text.len() + character.len_utf8() + CUT.len_utf8() > MAX_BYTES {
                    text.push(CUT);
                    return;
                }
                let is_shown = !character.is_control();
                text.push(if is_shown {
                    character
                } else {
                    char::REPLACEMENT_CHARACTER
                });
            }
        }
    }

    /// The entries that tell callers apart; an address in its one spelling, as counters have it.
    fn values(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let key = *self;
        self.counted().map(move |(index, entry)| {
            let value = match key.address(index, entry) {
                Some(address) => address.to_string().into(),
                None => entry.value.into(),
            };
            (entry.key, value)
        })
    }

    /// The entries whose values tell callers apart, with their places.
    fn counted(&self) -> impl Iterator<Item = (usize, &'a Entry<'a>)> {
        let Self { rule, entries } = *self;
        let counted = rule.counted_values().iter();
        counted.filter_map(move |&index| Some((index, entries.get(index)?)))
    }

    /// The address that an entry stands for, if its rule tells addresses apart and not their spellings.
    #[inline]
    fn address(&self, index: usize, entry: &Entry<'_>) -> Option<IpAddr> {
        if !self.rule.counted_addresses().contains(&index) {
            return None;
        }
        Some(entry.value.parse::<IpAddr>().ok()?.to_canonical())
    }
}

#[cfg(test)]
mod tests {
    use tidegate_rules::{CompileOptions, Source, compile};

    use super::*;

    fn check(yaml: &str, entries: &[(&str, &str)], expected: &str) -> u64 {
        let bytes = format!("domain: test\ndescriptors:\n{yaml}").into();
        let source = Source {
            name: "test.yaml".to_owned(),
            bytes,
        };
        let rules = compile(&[source], &CompileOptions::default())
            .unwrap()
            .rules;
        let entries: Vec<Entry<'_>> = entries
            .iter()
            .map(|&(key, value)| Entry { key, value })
            .collect();
        let rule = rules.domain("test").unwrap().find(&entries).unwrap();
        let key = Key::new(rule, &entries);
        let mut text = "what stood here".to_owned();
        key.write(&mut text);
        assert_eq!(text, expected);
        assert!(text.len() <= MAX_BYTES);
        key.hash(&RandomState::new())
    }

    const USER: &str = "  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 1 }\n";

    #[test]
    fn shows_what_tells_callers_apart() {
        check(USER, &[("user", "42")], "user=42");
        check(
            USER,
            &[("user", "a\nb\u{1b}[1m")],
            "user=a\u{fffd}b\u{fffd}[1m",
        );
        let one =
            "  - key: user\n    value: a\n    rate_limit: { unit: minute, requests_per_unit: 1 }\n";
        check(one, &[("user", "a")], "");
    }

    #[test]
    fn cuts_what_is_long_between_characters() {
        let long = "é".repeat(100);
        check(
            USER,
            &[("user", &long)],
            &format!("user={}…", "é".repeat(44)),
        );
    }
}
