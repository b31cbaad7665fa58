use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::pattern::Subject;

fn compiled(texts: &[impl AsRef<str>]) -> Vec<(Pattern, NodeId)> {
    let pattern = |text: &str| Pattern::Wildcard(Wildcard::new(text));
    let patterns = texts.iter().map(|text| pattern(text.as_ref()));
    patterns.enumerate().map(|(at, it)| (it, at)).collect()
}

/// Finds the first pattern that matches, by holding each of them against the value.
fn one_by_one(patterns: &[(Pattern, NodeId)], value: &str) -> Option<usize> {
    let subject = Subject::new(value);
    patterns.iter().position(|(it, _)| it.matches(&subject))
}

/// The place of the first pattern, and the number of steps.
fn indexed(patterns: &[(Pattern, NodeId)], value: &str) -> (Option<usize>, usize) {
    let subject = Subject::new(value);
    let index = PatternIndex::new(patterns).expect("enough patterns with literals");
    let mut n_steps = 0;
    let matches = |place: usize| patterns[place].0.matches(&subject);
    let found = index.find_counting(value, matches, &mut n_steps);
    (found, n_steps)
}

fn check(texts: &[String], value: &str, most_steps: usize) {
    let patterns = compiled(texts);
    let (found, n_steps) = indexed(&patterns, value);
    assert_eq!(found, one_by_one(&patterns, value));
    assert!(n_steps <= most_steps, "{n_steps} steps");
}

/// The longest value that Envoy hands on.
const LONG: usize = 64 * 1024;

/// When the first pattern is found, the rest of the value cannot change the answer.
#[test]
fn the_value_is_not_read_on_when_the_first_pattern_is_found() {
    let mut texts: Vec<String> = ["*x*".to_owned(), "*y*z*".to_owned()].into();
    texts.extend((0..20).map(|it| format!("*{it}y*")));
    check(&texts, &format!("x{}", "y".repeat(LONG)), 1);
    // A pattern without a literal that stands before all others.
    texts.insert(0, "x*".to_owned());
    check(&texts, &format!("x{}", "y".repeat(LONG)), 0);
    // One that stands behind them changes nothing.
    texts.remove(0);
    texts.push("y*".to_owned());
    check(&texts, &format!("yyy{}", "x".repeat(LONG)), 8);
}

#[test]
fn few_patterns_need_no_index() {
    assert!(PatternIndex::new(&compiled(&["*a*"; LEAST_PATTERNS - 1])).is_none());
    assert!(PatternIndex::new(&compiled(&["a*"; 100])).is_none());
    assert!(PatternIndex::new(&compiled(&["*a*"; LEAST_PATTERNS])).is_some());
}

/// The steps are a few for each byte, not one for each byte and pattern.
#[test]
fn a_long_value_takes_few_steps_against_many_patterns() {
    let texts: Vec<String> = (0..2_000).map(|it| format!("*/v{it}/*")).collect();
    check(&texts, &"x".repeat(LONG), 0);
    check(&texts, &"/v7/".repeat(LONG / 4), LONG);
    let all: Vec<String> = (0..2_000).map(|it| format!("/v{it}/")).collect();
    let all = all.concat();
    check(&texts, &all, 2 * all.len());
}

/// All literals are there, and the last one of each pattern never where it would have to be.
#[test]
fn a_value_that_has_all_literals_takes_few_steps() {
    let texts: Vec<String> = (0..2_000)
        .map(|it| format!("a*/v{it}/*/w{it}/*#*z"))
        .collect();
    let literals = (0..2_000).flat_map(|it| [format!("/v{it}/"), format!("/w{it}/")]);
    let value = format!("a#{}z", literals.collect::<String>());
    // Each literal is found once, each pattern is looked at once and walks its three literals.
    check(&texts, &value, 4_000 + 1 + 2_000 + 3 * 2_000);
    // The shortest literal is everywhere.
    let value = format!("a{}z", "#".repeat(LONG));
    check(&texts, &value, LONG);
}

/// Parts that patterns share, nest and overlap.
fn patterns() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof!["[ab*]{0,7}", "(a|ab|ba|b)?\\*(a|ab|aba)\\*(b|bb|é)?(\\*a)?"];
    vec(text, 0..40)
}

proptest! {
    /// The index and the patterns one by one agree, the order included.
    #[test]
    fn agrees_with_the_patterns_one_by_one(texts in patterns(), value in "[abé]{0,12}") {
        let mut texts = texts;
        // Enough patterns for an index, behind the others and without a match.
        texts.extend((0..LEAST_PATTERNS).map(|it| format!("*never{it}*")));
        let patterns = compiled(&texts);
        prop_assert_eq!(indexed(&patterns, &value).0, one_by_one(&patterns, &value));
    }
}
