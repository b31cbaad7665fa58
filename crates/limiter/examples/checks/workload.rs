//! The rules and requests that the cost of a check is measured with: 200 rules on three levels.

use std::fmt::Write;

use tidegate_limiter::{Entry, Limiter, LimiterConfig, RuleSet, Store};
use tidegate_rules::{CompileOptions, Source, compile};

const SERVICES: usize = 10;
const PLANS: usize = 5;

/// What stands below each plan of each service: four rules, of which the last has two limits.
const LEAVES: &str = "
          - key: user_id
            rate_limit: {unit: second, requests_per_unit: 1000000, algorithm: token_bucket}
          - key: path
            value: /v1/search*
            rate_limit: {unit: minute, requests_per_unit: 1000000000}
          - key: path
            value: /v1/login
            rate_limit: {unit: hour, requests_per_unit: 1, algorithm: sliding_counter}
          - key: remote_address
            rate_limits:
              - {unit: second, requests_per_unit: 1000000, algorithm: token_bucket}
              - {unit: day, requests_per_unit: 1000000000}
";

/// A limiter with 200 rules over `store`.
pub(crate) fn limiter<S: Store>(store: S) -> Limiter<S> {
    let rules = rules();
    assert_eq!(rules.rules().count(), SERVICES * PLANS * 4);
    Limiter::new(store, rules, LimiterConfig::default())
}

/// A descriptor of three entries. The rules are searched to their last level.
pub(crate) fn entries<'a>(key: &'a str, value: &'a str) -> [Entry<'a>; 3] {
    let entry = |key, value| Entry { key, value };
    [
        entry("service", "service7"),
        entry("plan", "plan3"),
        entry(key, value),
    ]
}

fn rules() -> RuleSet {
    let mut yaml = "domain: api\ndescriptors:\n".to_owned();
    for service in 0..SERVICES {
        // Writing to a string does not fail.
        let _ = write!(
            yaml,
            "  - key: service\n    value: service{service}\n    descriptors:\n"
        );
        for plan in 0..PLANS {
            let _ = write!(
                yaml,
                "      - key: plan\n        value: plan{plan}\n        descriptors:"
            );
            yaml.push_str(LEAVES);
        }
    }
    let source = Source {
        name: "workload.yaml".to_owned(),
        bytes: yaml.into_bytes(),
    };
    compile(&[source], &CompileOptions::default())
        .expect("the workload's rules are valid")
        .rules
}
