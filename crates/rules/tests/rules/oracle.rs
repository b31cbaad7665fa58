//! A matcher as plain as its rules can be said, and the compiled one that must agree with it.

use std::collections::HashSet;
use std::fmt::Write as _;

use proptest::prelude::*;
use tidegate_rules::Entry;

use crate::support::compile_ok;

/// A rule of a random tree.
#[derive(Clone, Debug)]
struct Sketch {
    key: String,
    value: Option<String>,
    has_limit: bool,
    children: Vec<Sketch>,
}

fn sketches() -> impl Strategy<Value = Vec<Sketch>> {
    let rule = ("[kl]", proptest::option::of("[ab*]{1,3}"), any::<bool>());
    let leaf = rule.prop_map(|(key, value, has_limit)| Sketch {
        key,
        value,
        has_limit,
        children: Vec::new(),
    });
    let tree = leaf.prop_recursive(3, 24, 5, |inner| {
        let rule = ("[kl]", proptest::option::of("[ab*]{1,3}"), any::<bool>());
        (rule, proptest::collection::vec(inner, 0..5)).prop_map(
            |((key, value, has_limit), children)| Sketch {
                key,
                value,
                has_limit,
                children: distinct(children),
            },
        )
    });
    proptest::collection::vec(tree, 1..6).prop_map(distinct)
}

/// Drops siblings that match the same.
fn distinct(sketches: Vec<Sketch>) -> Vec<Sketch> {
    let mut seen = HashSet::new();
    let is_new = |it: &Sketch| seen.insert((it.key.clone(), it.value.clone()));
    sketches.into_iter().filter(is_new).collect()
}

fn write_yaml(sketches: &[Sketch], indent: usize, yaml: &mut String) {
    let pad = " ".repeat(indent);
    let _ = writeln!(yaml, "{pad}descriptors:");
    for sketch in sketches {
        let _ = writeln!(yaml, "{pad}- key: {}", sketch.key);
        if let Some(value) = &sketch.value {
            let _ = writeln!(yaml, "{pad}  value: \"{value}\"");
        }
        if sketch.has_limit {
            let _ = writeln!(
                yaml,
                "{pad}  rate_limit: {{unit: day, requests_per_unit: 1}}"
            );
        }
        if !sketch.children.is_empty() {
            write_yaml(&sketch.children, indent + 2, yaml);
        }
    }
}

/// The matching rules as plainly as they can be said: the labels down to the rule, if there is one.
fn oracle(level: &[Sketch], descriptor: &[(String, String)]) -> Option<Vec<String>> {
    let ((key, value), rest) = descriptor.split_first()?;
    let siblings: Vec<_> = level.iter().filter(|it| it.key == *key).collect();
    let is_star = |it: &&&Sketch| it.value.as_ref().is_some_and(|value| value.contains('*'));
    let exact = siblings
        .iter()
        .find(|it| !is_star(it) && it.value.as_ref() == Some(value));
    let pattern = || {
        let glob = |it: &&&Sketch| glob(it.value.as_deref().unwrap_or_default(), value);
        siblings.iter().filter(is_star).find(glob)
    };
    let bare = || siblings.iter().find(|it| it.value.is_none());
    let chosen = exact.or_else(pattern).or_else(bare)?;
    let label = match &chosen.value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    };
    if rest.is_empty() {
        let is_rule = chosen.has_limit || chosen.children.is_empty();
        return is_rule.then(|| vec![label]);
    }
    let mut path = oracle(&chosen.children, rest)?;
    path.insert(0, label);
    Some(path)
}

fn glob(pattern: &str, value: &str) -> bool {
    match pattern.chars().next() {
        None => value.is_empty(),
        Some('*') => (0..=value.len()).any(|taken| glob(&pattern[1..], &value[taken..])),
        Some(first) => value.starts_with(first) && glob(&pattern[1..], &value[1..]),
    }
}

proptest! {
    /// The compiled matcher, its trace and the plain rules agree on every tree and descriptor.
    #[test]
    fn agrees_with_the_plain_rules(
        sketches in sketches(),
        descriptors in proptest::collection::vec(
            proptest::collection::vec(("[klm]", "[ab]{0,3}"), 0..5),
            1..20,
        ),
    ) {
        let mut yaml = "domain: d\n".to_owned();
        write_yaml(&sketches, 0, &mut yaml);
        let compiled = compile_ok(&yaml);
        let domain = compiled.rules.domain("d").expect("the domain");
        for descriptor in &descriptors {
            let expected = oracle(&sketches, descriptor).map(|path| path.join(" > "));
            let entries: Vec<_> = descriptor
                .iter()
                .map(|(key, value)| Entry { key, value })
                .collect();
            let found = domain.find(&entries).map(|rule| rule.path().to_owned());
            prop_assert_eq!(&found, &expected, "{}\n{:?}", yaml, descriptor);
            let traced = domain.trace(&entries).rule().map(|rule| rule.path().to_owned());
            prop_assert_eq!(&traced, &expected);
        }
    }
}
