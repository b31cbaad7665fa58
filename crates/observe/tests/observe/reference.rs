//! The counters of envoyproxy/ratelimit.

use tidegate_limiter::{Charging, LimiterConfig};
use tidegate_observe::{Gauges, MetricNames, ObserveConfig};

use crate::fixture::{Watched, watched_with};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 20 }
    descriptors:
      - key: plan
        value: free
        shadow_mode: true
        rate_limit: { unit: minute, requests_per_unit: 1 }
        descriptors:
          - key: deep
            rate_limit: { unit: minute, requests_per_unit: 9 }
";

fn reference(charging: Charging) -> Watched {
    let config = ObserveConfig {
        names: MetricNames::WithReference,
        ..ObserveConfig::default()
    };
    let limits = LimiterConfig {
        charging,
        ..LimiterConfig::default()
    };
    watched_with(YAML, config, limits)
}

fn stat(watched: &Watched, name: &str) -> u64 {
    let stats = watched.observatory.reference_stats();
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {stats}"))
        .parse()
        .unwrap()
}

/// Total, over, near and within after `batches` of hits.
fn check(charging: Charging, batches: &[u64], expected: [u64; 4]) {
    let watched = reference(charging);
    for hits in batches {
        watched.ask(&[("user", "a")], *hits);
    }
    let names = ["total_hits", "over_limit", "near_limit", "within_limit"];
    let stats = names.map(|name| {
        stat(
            &watched,
            &format!("ratelimit.service.rate_limit.test.user.{name}"),
        )
    });
    assert_eq!(stats, expected, "{batches:?}");
}

#[test]
fn hits_are_split_as_the_reference_splits_them() {
    // A limit of 20 is near above 16.
    check(Charging::AllOrNone, &[5], [5, 0, 0, 5]);
    check(Charging::AllOrNone, &[16], [16, 0, 0, 16]);
    check(Charging::AllOrNone, &[16, 3], [19, 0, 3, 19]);
    check(Charging::AllOrNone, &[15, 3], [18, 0, 2, 18]);
    // Three hits that would end at 22: two are over, one is near.
    check(Charging::AllOrNone, &[19, 3], [22, 2, 3 + 1, 19]);
    // Seven that would end at 22: two over, four near, one neither.
    check(Charging::AllOrNone, &[15, 7], [22, 2, 4, 15]);
    check(Charging::AllOrNone, &[20, 1, 1], [22, 2, 4, 20]);
    check(Charging::EveryMatch, &[20, 1, 1], [22, 2, 4, 20]);
}

#[test]
fn a_refused_batch_that_was_counted_is_over_as_a_whole() {
    check(Charging::EveryMatch, &[15, 7], [22, 7, 0, 15]);
}

#[test]
fn shadow_mode_is_counted_in_hits() {
    let watched = reference(Charging::EveryMatch);
    watched.ask(&[("user", "a"), ("plan", "free")], 1);
    watched.ask(&[("user", "a"), ("plan", "free")], 2);
    let of = |name| {
        stat(
            &watched,
            &format!("ratelimit.service.rate_limit.test.user.plan_free.{name}"),
        )
    };
    assert_eq!((of("total_hits"), of("shadow_mode")), (3, 2));
    assert_eq!((of("over_limit"), of("within_limit")), (2, 1));
}

#[test]
fn levels_below_the_second_are_added_to_it() {
    let watched = reference(Charging::AllOrNone);
    watched.ask(&[("user", "a")], 1);
    watched.ask(&[("user", "a"), ("plan", "free")], 1);
    watched.ask(&[("user", "a"), ("plan", "free"), ("deep", "b")], 4);
    let page = watched.observatory.prometheus(&Gauges::default());
    let name = "ratelimit_service_rate_limit_total_hits";
    let expected = format!(
        "{name}{{domain=\"test\",key1=\"user\"}} 1\n\
         {name}{{domain=\"test\",key1=\"user\",key2=\"plan_free\"}} 5\n"
    );
    assert!(page.contains(&expected), "{page}");
}
