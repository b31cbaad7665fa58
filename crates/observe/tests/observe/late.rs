//! Verdicts by rules that were replaced while they were made.

use tidegate_limiter::{Descriptor, Entry};
use tidegate_observe::{LimiterRequest, ObserveConfig, TraceHeaders};

use crate::fixture::{TOOK, rules, watched};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: gone
    rate_limit: { unit: minute, requests_per_unit: 5 }
";

#[test]
fn a_late_verdict_counts_for_its_own_rule() {
    let watched = watched(YAML, ObserveConfig::default());
    watched.ask(&[("gone", "a")], 1);
    let entries = [Entry {
        key: "gone",
        value: "a",
    }];
    let descriptors = [Descriptor::new(&entries)];
    let request = LimiterRequest {
        domain: "test",
        descriptors: &descriptors,
        hits: 3,
        route: None,
        trace: TraceHeaders::default(),
    };
    let late = watched.limiter.check_now("test", &descriptors, 3).unwrap();
    let user = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
";
    watched.limiter.replace_rules(rules(user));
    watched.ask(&[("user", "a")], 1);
    watched.recorder.judged(&request, &late, TOOK);
    watched.ask(&[("user", "a")], 1);
    let gone = watched.counts("gone");
    assert_eq!((gone.requests(), gone.hits), (2, 4));
    assert_eq!(watched.counts("user").requests(), 2);
}
