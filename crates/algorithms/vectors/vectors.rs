//! The worked examples of the literature, read from the files beside this one. The tests of the algorithms and
//! of every store include it, and play each example through what they test.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Outcome, Percent, QuotaSpec, Refill, Retry, Rounding, Standing,
    Time,
};

/// One example.
#[derive(Debug)]
pub(crate) struct Vector {
    /// The file that it is in.
    name: String,
    /// The limit.
    pub(crate) spec: QuotaSpec,
    steps: Vec<Step>,
    /// What all steps together are admitted.
    admitted: u64,
}

/// One request, and what is answered.
#[derive(Debug)]
struct Step {
    at: Time,
    cost: u64,
    answer: Answer,
}

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

/// How many files there are, so that none is lost.
const N_FILES: usize = 17;

/// All examples.
pub(crate) fn all() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../algorithms/vectors");
    let files = fs::read_dir(folder).expect("the folder of vectors");
    let paths = files.map(|file| file.expect("a file").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let vectors: Vec<Vector> = paths.map(|path| Vector::read(&path)).collect();
    assert_eq!(vectors.len(), N_FILES, "all vectors are there: {vectors:?}");
    vectors
}

// === impl Vector ===

impl Vector {
    /// Asks `decide` for each step, at its time and cost, and compares.
    pub(crate) fn check(&self, mut decide: impl FnMut(Time, u64) -> Decision) {
        let name = &self.name;
        let mut admitted = 0;
        for (n, step) in self.steps.iter().enumerate() {
            let decision = decide(step.at, step.cost);
            assert_eq!(Answer::from(&decision), step.answer, "{name}: step {n}");
            admitted += if decision.is_allowed() { step.cost } else { 0 };
        }
        assert_eq!(admitted, self.admitted, "{name}");
    }

    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a readable file");
        let vector: Value = serde_json::from_str(&text).expect("JSON");
        let steps = vector["steps"].as_array().expect("steps");
        Self {
            name: path.display().to_string(),
            spec: spec(&vector["quota"]),
            steps: steps.iter().map(Step::from).collect(),
            admitted: vector["admitted"].as_u64().expect("a number"),
        }
    }
}

// === impl Step ===

impl From<&Value> for Step {
    fn from(step: &Value) -> Self {
        Self {
            at: Time::from_micros(step["at_us"].as_u64().expect("a time")),
            cost: step["cost"].as_u64().expect("a cost"),
            answer: Answer::from(step),
        }
    }
}

// === impl Answer ===

impl From<&Value> for Answer {
    fn from(step: &Value) -> Self {
        let number = |value: &Value| u128::from(value.as_u64().expect("a number"));
        let outcome = if step["allowed"] == true {
            Expected::Allowed {
                standing: step["standing"].as_str().expect("a standing").to_owned(),
                delay_us: number(&step["delay_us"]),
            }
        } else if step["retry_after_us"] == "never" {
            Expected::Never
        } else {
            Expected::RetryAfter(number(&step["retry_after_us"]))
        };
        Self {
            outcome,
            remaining: step["remaining"].as_u64().expect("a number"),
            reset_after_us: number(&step["reset_after_us"]),
        }
    }
}

impl From<&Decision> for Answer {
    fn from(decision: &Decision) -> Self {
        let micros = |span: Duration| span.as_nanos().div_ceil(1_000);
        let outcome = match decision.outcome {
            Outcome::Allowed { standing, delay } => Expected::Allowed {
                standing: match standing {
                    Standing::Within => "within".to_owned(),
                    Standing::Over => "over".to_owned(),
                },
                delay_us: micros(delay),
            },
            Outcome::Denied {
                retry: Retry::After(wait),
            } => Expected::RetryAfter(micros(wait)),
            Outcome::Denied {
                retry: Retry::Never,
            } => Expected::Never,
        };
        Self {
            outcome,
            remaining: decision.remaining,
            reset_after_us: micros(decision.reset_after),
        }
    }
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
