//! The counts of each rule.

use tidegate_limiter::{GlobalShadow, Hits, LimiterConfig};
use tidegate_observe::{ObserveConfig, RuleCounts, Totals};

use crate::fixture::{rules, watched, watched_with};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: soft
    rate_limit: { unit: minute, requests_per_unit: 2, soft: 50% }
  - key: quiet
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: two
    rate_limits:
      - { unit: minute, requests_per_unit: 1 }
      - { unit: hour, requests_per_unit: 100 }
";

#[test]
fn every_request_of_a_rule_has_one_outcome() {
    let watched = watched(YAML, ObserveConfig::default());
    for _ in 0..7 {
        watched.ask(&[("user", "a")], 1);
    }
    let expected = RuleCounts {
        allowed: 4,
        near: 1,
        refused: 2,
        hits: 7,
        ..RuleCounts::default()
    };
    assert_eq!(watched.counts("user"), expected);
    for _ in 0..4 {
        watched.ask(&[("soft", "a")], 1);
        watched.ask(&[("quiet", "a")], 2);
        watched.ask(&[("two", "a")], 1);
    }
    let soft = watched.counts("soft");
    assert_eq!(
        (soft.near + soft.allowed, soft.over, soft.refused),
        (2, 1, 1)
    );
    let quiet = watched.counts("quiet");
    assert_eq!((quiet.shadowed, quiet.refused, quiet.hits), (4, 0, 8));
    let two = watched.counts("two");
    assert_eq!((two.near, two.refused, two.hits), (1, 3, 4));
}

#[test]
fn each_descriptor_counts_by_itself() {
    let watched = watched(YAML, ObserveConfig::default());
    let asks: [(&[(&str, &str)], Hits); 5] = [
        (&[("user", "a")], Hits::OfRequest),
        (&[("user", "b")], Hits::Take(2)),
        (&[("none", "a")], Hits::OfRequest),
        (&[("quiet", "a")], Hits::Refund(9)),
        (&[("two", "a")], Hits::OfRequest),
    ];
    watched.ask_as(&watched.recorder, "test", &asks, 0).unwrap();
    let user = watched.counts("user");
    assert_eq!((user.requests(), user.hits), (2, 3));
    let quiet = watched.counts("quiet");
    assert_eq!((quiet.allowed, quiet.hits), (1, 0));
    assert_eq!(watched.counts("two").requests(), 1);
}

#[test]
fn requests_are_counted_by_their_answer() {
    let watched = watched(YAML, ObserveConfig::default());
    for _ in 0..6 {
        watched.ask(&[("user", "a")], 1);
    }
    watched.ask(&[("nothing", "a")], 1);
    let recorder = &watched.recorder;
    let one: [(&[(&str, &str)], Hits); 1] = [(&[("user", "a")], Hits::OfRequest)];
    watched.ask_as(recorder, "elsewhere", &one, 1).unwrap();
    watched.ask_as(recorder, "", &one, 1).unwrap_err();
    watched.ask_as(recorder, "test", &[], 1).unwrap_err();
    recorder.malformed();
    let expected = Totals {
        allowed: 5,
        refused: 1,
        unmatched: 2,
        unknown_domains: 1,
        rejected: 3,
        ..Totals::default()
    };
    assert_eq!(watched.observatory.totals(), expected);
}

#[test]
fn a_limiter_in_shadow_mode_says_so() {
    let config = LimiterConfig {
        shadow: GlobalShadow::On,
        ..LimiterConfig::default()
    };
    let watched = watched_with(YAML, ObserveConfig::default(), config);
    watched.ask(&[("user", "a")], 6);
    let totals = watched.observatory.totals();
    assert_eq!((totals.shadowed, totals.refused), (1, 0));
    assert_eq!(watched.counts("user").refused, 1);
}

#[test]
fn cores_add_up() {
    let watched = watched(YAML, ObserveConfig::default());
    let other = watched.observatory.recorder();
    let one: [(&[(&str, &str)], Hits); 1] = [(&[("user", "a")], Hits::OfRequest)];
    watched.ask(&[("user", "a")], 1);
    watched.ask_as(&other, "test", &one, 1).unwrap();
    drop(other);
    assert_eq!(watched.counts("user").requests(), 2);
    assert_eq!(watched.observatory.totals().allowed, 2);
}

#[test]
fn counts_outlive_a_reload_by_the_name_of_the_rule() {
    let watched = watched(YAML, ObserveConfig::default());
    watched.ask(&[("user", "a")], 1);
    watched.ask(&[("quiet", "a")], 1);
    // The rules are numbered anew, `quiet` is gone.
    watched.limiter.replace_rules(rules(
        "
domain: test
descriptors:
  - key: new
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 9 }
",
    ));
    assert_eq!(watched.counts("user").requests(), 1);
    watched.ask(&[("user", "a")], 1);
    watched.ask(&[("new", "a")], 1);
    let met = [("new", 1), ("quiet", 1), ("user", 2)].map(|(rule, n)| (rule.to_owned(), n));
    assert_eq!(watched.met(), met);
}

#[test]
fn rules_past_the_bound_are_counted_together() {
    let config = ObserveConfig {
        max_rules: 2,
        ..ObserveConfig::default()
    };
    let watched = watched(YAML, config);
    for key in ["user", "soft", "quiet", "two"] {
        watched.ask(&[(key, "a")], 1);
    }
    let met = [("soft", 1), ("user", 1), ("_other", 2)].map(|(rule, n)| (rule.to_owned(), n));
    assert_eq!(watched.met(), met);
    assert_eq!(watched.observatory.rules().last().unwrap().domain, "_other");
}

#[test]
fn names_of_rules_that_are_gone_make_way() {
    let config = ObserveConfig {
        max_rules: 2,
        ..ObserveConfig::default()
    };
    let watched = watched(YAML, config);
    let n_reloads = 20;
    for n in 0..n_reloads {
        let yaml = format!(
            "
domain: test
descriptors:
  - key: rule_{n}
    rate_limit: {{ unit: minute, requests_per_unit: 5 }}
"
        );
        watched.limiter.replace_rules(rules(&yaml));
        watched.ask(&[(&format!("rule_{n}"), "a")], 1);
        let met = watched.met();
        let n_named = met.iter().filter(|(rule, _)| rule != "_other").count();
        assert!(n_named <= 2, "{met:?}");
        assert!(met.contains(&(format!("rule_{n}"), 1)));
        let sum: u64 = met.iter().map(|(_, n)| n).sum();
        assert_eq!(sum, n + 1, "none is lost");
    }
}
