//! Measures the search for the rule of a value of 64 KiB among 20,000 patterns:
//!
//! `cargo run --release -p tidegate-rules --example long_values`

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidegate_rules::{CompileOptions, Domain, Entry, RuleSet, Source, compile};

const PATTERNS: usize = 20_000;
const VALUE_BYTES: usize = 64 * 1024;
const ROUNDS: usize = 100;

fn main() {
    println!("{PATTERNS} patterns, values of {VALUE_BYTES} bytes: least and median of {ROUNDS}");
    let one = rules(|it| format!("*/v{it}/*"));
    report("one literal each, none is there", &one, &filled("x"));
    report(
        "one literal each, nearly there",
        &one,
        &filled("/v/v1/v19999"),
    );
    let several = rules(|it| format!("/*v{it}.*w*.{it}y*#*"));
    report("several stars, none is there", &several, &filled("/x"));
    let all = |text: fn(usize) -> String| (0..PATTERNS).rev().map(text).collect::<String>();
    report(
        "several stars, all literals but the last are there",
        &several,
        &cut(format!("/{}", all(|it| format!("v{it}.w")))),
    );
    report(
        "several stars, all literals are there in the wrong order",
        &several,
        &cut(format!("/#{}", all(|it| format!(".{it}yv{it}.")))),
    );
    let common = rules(|it| format!("*a*b*c{it}.*"));
    report(
        "common literals, the last is not there",
        &common,
        &filled("ab"),
    );
    let mut wrong = all(|it| format!("c{it}."));
    wrong.truncate(VALUE_BYTES / 2);
    report(
        "common literals, half of the last ones are before them",
        &common,
        &cut(wrong + &"ab".repeat(VALUE_BYTES)),
    );
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

fn filled(text: &str) -> String {
    cut(text.repeat(VALUE_BYTES / text.len() + 1))
}

fn cut(mut text: String) -> String {
    text.truncate(VALUE_BYTES);
    text
}

fn report(name: &str, rules: &RuleSet, value: &str) {
    let domain = rules.domain("api").expect("the domain");
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(domain, value)).collect();
    times.sort_unstable();
    println!("{:>9.1?} {:>9.1?}  {name}", times[0], times[ROUNDS / 2]);
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn time(domain: &Domain, value: &str) -> Duration {
    let descriptor = [Entry { key: "path", value }];
    let start = Instant::now();
    black_box(domain.find(black_box(&descriptor)));
    start.elapsed()
}
