//! Measures the search for the rule of a value of 64 KiB among 20,000 patterns:
//!
//! `cargo run --release -p tidegate-rules --example long_values`
//!
//! Fails if the median of any search takes more processor time than its bound.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_rules::{CompileOptions, Domain, Entry, RuleSet, Source, compile};

const PATTERNS: usize = 20_000;
const VALUE_BYTES: usize = 64 * 1024;
const ROUNDS: usize = 100;

/// The longest search among patterns with one literal each.
const ONE_LITERAL: Duration = Duration::from_millis(1);

/// The longest search for a value that is made to hit the literals of all patterns.
const ALL_LITERALS: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    println!(
        "{PATTERNS} patterns, values of at most {VALUE_BYTES} bytes: least and median processor time of {ROUNDS}"
    );
    let verdicts = [
        one_literal_each(),
        one_character_each(),
        several_stars(),
        common_literals(),
    ];
    if verdicts.concat().into_iter().all(|is_within| is_within) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn one_literal_each() -> Vec<bool> {
    let one = rules(|it| format!("*/v{it}/*"));
    let report = |name, value: &str| report(name, &one, value, ONE_LITERAL);
    vec![
        report("one literal each, none is there", &filled("x")),
        report("one literal each, nearly there", &filled("/v/v1/v19999")),
    ]
}

/// A character is so short that a value has room for the literals of all patterns.
fn one_character_each() -> Vec<bool> {
    let last_first: String = (0..PATTERNS + 2).rev().map(character).collect();
    let report = |name, pattern: fn(usize) -> String| {
        report(name, &rules(pattern), &last_first, ALL_LITERALS)
    };
    vec![
        report(
            "one literal each, all are there, the last one first",
            |it| format!("*{}*", character(it)),
        ),
        report("two literals each, all first ones are there", |it| {
            format!("*{}*#*", character(it))
        }),
        report(
            "two literals each, all are there in the wrong order",
            |it| format!("*{}*{}*", character(it), character(it + 1)),
        ),
        report(
            "three literals each, all are there, the last two in the wrong order",
            |it| {
                format!(
                    "*{}*{}*{}*",
                    character(it + 1),
                    character(it),
                    character(it + 2)
                )
            },
        ),
    ]
}

fn several_stars() -> Vec<bool> {
    let several = rules(|it| format!("/*v{it}.*w*.{it}y*#*"));
    let report = |name, value: &str| report(name, &several, value, ALL_LITERALS);
    vec![
        report("several stars, none is there", &filled("/x")),
        report(
            "several stars, literals but the last are there, as many as fit",
            &cut(format!("/{}", last_to_first(|it| format!("v{it}.w")))),
        ),
        report(
            "several stars, literals are there in the wrong order, as many as fit",
            &cut(format!("/#{}", last_to_first(|it| format!(".{it}yv{it}.")))),
        ),
    ]
}

fn common_literals() -> Vec<bool> {
    let common = rules(|it| format!("*a*b*c{it}.*"));
    let report = |name, value: &str| report(name, &common, value, ALL_LITERALS);
    let mut wrong = last_to_first(|it| format!("c{it}."));
    wrong.truncate(VALUE_BYTES / 2);
    vec![
        report("common literals, the last is not there", &filled("ab")),
        report(
            "common literals, half of the last ones are before them",
            &cut(wrong + &"ab".repeat(VALUE_BYTES)),
        ),
    ]
}

/// Rules of one key with these patterns.
fn rules(pattern: impl Fn(usize) -> String) -> RuleSet {
    let rule = |number: usize| {
        let pattern = pattern(number);
        format!(
            "- {{key: path, value: '{pattern}', rate_limit: {{unit: hour, requests_per_unit: 9}}}}"
        )
    };
    let head = "domain: api\ndescriptors:".to_owned();
    let lines: Vec<String> = [head].into_iter().chain((0..PATTERNS).map(rule)).collect();
    let source = Source {
        name: "rules.yaml".to_owned(),
        bytes: lines.join("\n").into_bytes(),
    };
    let compiled = compile(&[source], &CompileOptions::default());
    compiled.expect("sound rules").rules
}

/// The ideograph of a number; there are 20,992 of three bytes each in a row.
fn character(number: usize) -> char {
    let code = u32::try_from(number).ok().map(|it| '一' as u32 + it);
    code.and_then(char::from_u32).expect("an ideograph")
}

fn last_to_first(text: fn(usize) -> String) -> String {
    (0..PATTERNS).rev().map(text).collect()
}

fn filled(text: &str) -> String {
    cut(text.repeat(VALUE_BYTES / text.len() + 1))
}

fn cut(mut text: String) -> String {
    text.truncate(VALUE_BYTES);
    text
}

/// Prints the times of a search, and returns true if their median is within the bound.
fn report(name: &str, rules: &RuleSet, value: &str, bound: Duration) -> bool {
    assert!(value.len() <= VALUE_BYTES, "{name}: {} bytes", value.len());
    let domain = rules.domain("api").expect("the domain");
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(domain, value)).collect();
    times.sort_unstable();
    let (least, median) = (times[0], times[ROUNDS / 2]);
    let is_within = median <= bound;
    let verdict = if is_within { "held" } else { "NOT HELD" };
    println!("{least:>9.1?} {median:>9.1?}  at most {bound:?}: {verdict:<8}  {name}");
    is_within
}

fn time(domain: &Domain, value: &str) -> Duration {
    let descriptor = [Entry { key: "path", value }];
    let start = processor_time();
    black_box(domain.find(black_box(&descriptor)));
    processor_time().saturating_sub(start)
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it counts up from zero")
}
