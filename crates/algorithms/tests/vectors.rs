//! The worked examples of the literature, as plain data: the stores' scripts answer to the same.

use std::time::Duration;
use std::{fs, path::Path};

use serde_json::Value;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, Retry,
    Rounding, Standing, Time,
};

/// What a step expects, in microseconds.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    outcome: Expected,
    remaining: u64,
    reset_after_us: u128,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Allowed { standing: String, delay_us: u128 },
    RetryAfter(u128),
    Never,
}

fn spec(quota: &Value) -> QuotaSpec {
    let number = |name: &str| quota.get(name).map(|value| value.as_u64().expect(name));
    let word = |name: &str| quota.get(name).map(|value| value.as_str().expect(name));
    let micros = |name| number(name).map(Duration::from_micros);
    let algorithm = match word("algorithm").expect("an algorithm") {
        "token_bucket" => Algorithm::TokenBucket {
            burst: number("burst"),
            refill: match word("refill").expect("a refill") {
                "interval" => Refill::Interval,
                _ => Refill::Continuous,
            },
        },
        "leaky_bucket" => Algorithm::LeakyBucket {
            queue: number("queue"),
        },
        "fixed_window" => Algorithm::FixedWindow,
        "sliding_log" => Algorithm::SlidingLog {
            log_refused: quota["log_refused"] == true,
        },
        "sliding_counter" => Algorithm::SlidingCounter {
            sub_windows: number("sub_windows")
                .expect("sub-windows")
                .try_into()
                .expect("few"),
            rounding: match word("rounding").expect("a rounding") {
                "up" => Rounding::Up,
                _ => Rounding::Down,
            },
        },
        other => panic!("unknown algorithm {other}"),
    };
    let soft = number("soft_percent").map(|percent| Allowance::Soft {
        over: Percent(percent.try_into().expect("a percentage")),
        only_for: micros("soft_for_us"),
    });
    QuotaSpec {
        limit: number("limit").expect("a limit"),
        window: micros("window_us").expect("a window"),
        algorithm,
        allowance: soft.unwrap_or_default(),
    }
}

fn expected(step: &Value) -> Answer {
    let number = |value: &Value| u128::from(value.as_u64().expect("a number"));
    let outcome = if step["allowed"] == true {
        let standing = step["standing"].as_str().expect("a standing").to_owned();
        Expected::Allowed {
            standing,
            delay_us: number(&step["delay_us"]),
        }
    } else if step["retry_after_us"] == "never" {
        Expected::Never
    } else {
        Expected::RetryAfter(number(&step["retry_after_us"]))
    };
    Answer {
        outcome,
        remaining: step["remaining"].as_u64().expect("a number"),
        reset_after_us: number(&step["reset_after_us"]),
    }
}

fn answer(decision: &Decision) -> Answer {
    let micros = |span: Duration| span.as_nanos().div_ceil(1_000);
    let outcome = match decision.outcome {
        Outcome::Allowed { standing, delay } => {
            let standing = match standing {
                Standing::Within => "within",
                Standing::Over => "over",
            };
            Expected::Allowed {
                standing: standing.to_owned(),
                delay_us: micros(delay),
            }
        }
        Outcome::Denied {
            retry: Retry::After(wait),
        } => Expected::RetryAfter(micros(wait)),
        Outcome::Denied {
            retry: Retry::Never,
        } => Expected::Never,
    };
    let reset_after_us = micros(decision.reset_after);
    Answer {
        outcome,
        remaining: decision.remaining,
        reset_after_us,
    }
}

fn check(name: &str, vector: &Value) {
    let spec = spec(&vector["quota"]);
    let mut counter = Counter::new(Quota::new(&spec).expect("a valid quota"));
    let mut oracle = Oracle::new(&spec).expect("a valid quota");
    let mut admitted = 0;
    for (n, step) in vector["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .enumerate()
    {
        let cost = step["cost"].as_u64().expect("a cost");
        let now = Time::from_micros(step["at_us"].as_u64().expect("a time"));
        let decision = counter.decide(cost, Headroom::Absent, now, Commit::Charge);
        assert_eq!(answer(&decision), expected(step), "{name}: step {n}");
        let by_trying = oracle.decide(cost, Headroom::Absent, now, Commit::Charge);
        assert_eq!(decision, by_trying, "{name}: step {n}");
        admitted += if decision.is_allowed() { cost } else { 0 };
    }
    assert_eq!(vector["admitted"], admitted, "{name}");
}

#[test]
fn the_worked_examples_come_out_as_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut names = Vec::new();
    for file in fs::read_dir(folder).expect("the folder of vectors") {
        let path = file.expect("a file").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = fs::read_to_string(&path).expect("a readable file");
            let vector = serde_json::from_str(&text).expect("JSON");
            check(&path.display().to_string(), &vector);
            names.push(path);
        }
    }
    assert_eq!(names.len(), 17, "all vectors are there: {names:?}");
}
