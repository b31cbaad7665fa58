//! The worked examples of the literature through the scripts.

use std::time::Duration;
use std::{fs, path::Path};

use serde_json::{Value, json};
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, Retry,
    Rounding, Standing, Time,
};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull, Store,
};

use crate::joined::at_once;
use crate::subject::Single;

fn quota(spec: &Value) -> Quota {
    let number = |name: &str| spec.get(name).and_then(Value::as_u64);
    let is = |name: &str, word: &str| spec[name] == word;
    let algorithm = match spec["algorithm"].as_str().expect("an algorithm") {
        "token_bucket" => Algorithm::TokenBucket {
            burst: number("burst"),
            refill: if is("refill", "interval") {
                Refill::Interval
            } else {
                Refill::Continuous
            },
        },
        "leaky_bucket" => Algorithm::LeakyBucket {
            queue: number("queue"),
        },
        "fixed_window" => Algorithm::FixedWindow,
        "sliding_log" => Algorithm::SlidingLog {
            log_refused: spec["log_refused"] == true,
        },
        "sliding_counter" => Algorithm::SlidingCounter {
            sub_windows: number("sub_windows").map_or(1, |n| n.try_into().expect("few")),
            rounding: if is("rounding", "up") {
                Rounding::Up
            } else {
                Rounding::Down
            },
        },
        other => panic!("unknown algorithm {other}"),
    };
    let soft = number("soft_percent").map(|percent| Allowance::Soft {
        over: Percent(percent.try_into().expect("a percentage")),
        only_for: number("soft_for_us").map(Duration::from_micros),
    });
    Quota::new(&QuotaSpec {
        limit: number("limit").expect("a limit"),
        window: Duration::from_micros(number("window_us").expect("a window")),
        algorithm,
        allowance: soft.unwrap_or_default(),
    })
    .expect("a valid quota")
}

/// The step as its file would tell it.
fn told(at: &Value, cost: u64, decision: &Decision) -> Value {
    let micros = |span: Duration| u64::try_from(span.as_nanos().div_ceil(1_000)).expect("small");
    let mut step = json!({
        "at_us": at,
        "cost": cost,
        "allowed": decision.is_allowed(),
        "remaining": decision.remaining,
        "reset_after_us": micros(decision.reset_after),
    });
    match decision.outcome {
        Outcome::Allowed { standing, delay } => {
            step["standing"] = match standing {
                Standing::Within => json!("within"),
                Standing::Over => json!("over"),
            };
            step["delay_us"] = json!(micros(delay));
        }
        Outcome::Denied { retry } => {
            step["retry_after_us"] = match retry {
                Retry::After(wait) => json!(micros(wait)),
                Retry::Never => json!("never"),
            };
        }
    }
    step
}

/// Several callers who do the same at the same times: alone, a caller's decisions are calls of their own;
/// together, they are joined.
fn check(name: &str, vector: &Value, callers: &[[&str; 1]]) {
    let quota = quota(&vector["quota"]);
    let subject = Single::new(Time::ZERO);
    for (n, step) in vector["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .enumerate()
    {
        let now = Time::from_micros(step["at_us"].as_u64().expect("a time"));
        subject.set_time(now);
        let cost = step["cost"].as_u64().expect("a cost");
        let asked = callers.iter().map(async |values| {
            let charge = Charge {
                key: CounterKey {
                    limit: LimitId(1),
                    values,
                },
                quota: &quota,
                cost,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Deny,
                consistency: Consistency::Strict,
            };
            let (charges, mut decisions) = ([charge], Decisions::new());
            let store = subject.store();
            let answer = store.charge(&charges, Charging::AllOrNone, &mut decisions);
            answer.await.expect("a decision");
            decisions[0]
        });
        for decision in subject.wait(at_once(asked)) {
            let told = told(&step["at_us"], cost, &decision);
            assert_eq!(told, *step, "{name}: step {n}");
        }
    }
}

#[test]
fn the_worked_examples_come_out_as_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../algorithms/vectors");
    let mut checked = 0;
    for file in fs::read_dir(folder).expect("the folder of vectors") {
        let path = file.expect("a file").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = fs::read_to_string(&path).expect("a readable file");
            let vector = serde_json::from_str(&text).expect("valid JSON");
            let name = path.display().to_string();
            check(&name, &vector, &[["caller"]]);
            check(&name, &vector, &[["one"], ["other"], ["third"]]);
            checked += 1;
        }
    }
    assert!(checked >= 17, "only {checked} files");
}
