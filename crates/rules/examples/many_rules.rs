//! Measures the time from the text of 100,000 plain rules to rules that can be put in force:
//!
//! `cargo run --release -p tidegate-rules --example many_rules`
//!
//! Fails if the median is above its bound.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tidegate_rules::{CompileOptions, Source, compile};

const RULES: usize = 100_000;
const ROUNDS: usize = 9;
const BOUND: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let source = Source {
        name: "rules.yaml".to_owned(),
        bytes: text().into_bytes(),
    };
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(&source)).collect();
    times.sort_unstable();
    let (least, median, most) = (times[0], times[ROUNDS / 2], times[ROUNDS - 1]);
    let is_within = median <= BOUND;
    let verdict = if is_within { "held" } else { "NOT HELD" };
    println!(
        "{RULES} plain rules load in {median:.2?} ({least:.2?} to {most:.2?} in {ROUNDS} rounds); at most {BOUND:?}: {verdict}"
    );
    if is_within {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn text() -> String {
    let rule = |number| {
        format!(
            "  - {{key: user_id, value: u{number}, rate_limit: {{unit: minute, requests_per_unit: 10}}}}\n"
        )
    };
    let rules: String = (0..RULES).map(rule).collect();
    format!("domain: shop\ndescriptors:\n{rules}")
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn time(source: &Source) -> Duration {
    let start = Instant::now();
    let compiled = compile(
        black_box(std::slice::from_ref(source)),
        &CompileOptions::default(),
    );
    let time = start.elapsed();
    assert_eq!(compiled.expect("sound rules").rules.rules().count(), RULES);
    time
}
