//! The busiest and the most refused keys, against exact counts.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_limiter::{Hits, Time};
use tidegate_observe::{ObserveConfig, Recorder, TopConfig, TopKey, TopKind, TopQuery};

use crate::fixture::{NOON, Watched, rules, watched};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: path
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
  - key: all
    value: one
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
";

const MINUTE: Duration = Duration::from_mins(1);

fn config(top: TopConfig) -> ObserveConfig {
    ObserveConfig {
        top: Some(top),
        ..ObserveConfig::default()
    }
}

fn exact() -> TopConfig {
    TopConfig {
        sample_one_in: NonZeroU32::MIN,
        ..TopConfig::default()
    }
}

fn ask(watched: &Watched, recorder: &Recorder, key: &str, value: &str) {
    let asks: [(&[(&str, &str)], Hits); 1] = [(&[(key, value)], Hits::OfRequest)];
    watched.ask_as(recorder, "test", &asks, 1).unwrap();
}

fn query(kind: TopKind) -> TopQuery<'static> {
    TopQuery {
        kind,
        domain: None,
        rule: None,
        most: usize::MAX,
    }
}

fn top(watched: &Watched, kind: TopKind, now: Time) -> Vec<TopKey> {
    watched.observatory.top_at(&query(kind), now).keys
}

fn short(keys: &[TopKey]) -> Vec<(&str, u64)> {
    keys.iter().map(|it| (it.key.as_str(), it.count)).collect()
}

#[test]
fn the_busiest_come_first() {
    let watched = watched(YAML, config(exact()));
    for (user, n) in [("a", 2), ("b", 5), ("c", 4)] {
        for _ in 0..n {
            watched.ask(&[("user", user)], 1);
        }
    }
    watched.ask(&[("all", "one")], 1);
    let busiest = top(&watched, TopKind::Busiest, NOON);
    let expected = [("user=b", 5), ("user=c", 4), ("user=a", 2), ("", 1)];
    assert_eq!(short(&busiest), expected);
    assert!(busiest.iter().all(|key| key.error == 0));
    let refused = top(&watched, TopKind::Refused, NOON);
    assert_eq!(short(&refused), [("user=b", 2), ("user=c", 1)]);
    let of_all = TopQuery {
        rule: Some("all=one"),
        ..query(TopKind::Busiest)
    };
    assert_eq!(watched.observatory.top_at(&of_all, NOON).keys.len(), 1);
    let elsewhere = TopQuery {
        domain: Some("elsewhere"),
        ..query(TopKind::Busiest)
    };
    assert_eq!(watched.observatory.top_at(&elsewhere, NOON).keys, []);
    let first = TopQuery {
        most: 1,
        ..query(TopKind::Busiest)
    };
    let report = watched
        .observatory
        .top_at(&first, NOON.plus(Duration::from_secs(7)));
    assert_eq!(short(&report.keys), [("user=b", 5)]);
    assert_eq!(report.span, Duration::from_secs(67));
}

#[test]
fn what_was_seen_is_forgotten_after_two_windows() {
    let watched = watched(YAML, config(exact()));
    let at = |minutes: u32| NOON.plus(MINUTE * minutes);
    watched.ask(&[("path", "/old")], 1);
    watched.limiter.store().clock().set(at(1));
    watched.ask(&[("path", "/new")], 1);
    let busiest = |minutes| top(&watched, TopKind::Busiest, at(minutes));
    assert_eq!(short(&busiest(1)), [("path=/new", 1), ("path=/old", 1)]);
    assert_eq!(short(&busiest(2)), [("path=/new", 1)]);
    assert_eq!(busiest(3), []);
    watched.limiter.store().clock().set(at(9));
    watched.ask(&[("path", "/newest")], 1);
    assert_eq!(short(&busiest(9)), [("path=/newest", 1)]);
    // A clock that steps back does not wipe what is there.
    watched.limiter.store().clock().set(at(1));
    watched.ask(&[("path", "/newest")], 1);
    assert_eq!(short(&busiest(9)), [("path=/newest", 2)]);
}

#[test]
fn keys_outlive_a_reload_that_keeps_their_rule() {
    let watched = watched(YAML, config(exact()));
    watched.ask(&[("user", "a")], 1);
    watched.ask(&[("path", "/")], 1);
    let yaml = "
domain: test
descriptors:
  - key: new
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: path
    rate_limit: { unit: hour, requests_per_unit: 9 }
";
    watched.limiter.replace_rules(rules(yaml));
    watched.ask(&[("path", "/")], 1);
    watched.ask(&[("new", "x")], 1);
    let busiest = top(&watched, TopKind::Busiest, NOON);
    assert_eq!(short(&busiest), [("path=/", 2), ("new=x", 1)]);
}

#[test]
fn nothing_is_kept_unless_asked_for() {
    let off = ObserveConfig {
        top: None,
        ..ObserveConfig::default()
    };
    let watched = watched(YAML, off);
    watched.ask(&[("user", "a")], 1);
    assert_eq!(top(&watched, TopKind::Busiest, NOON), []);
}

#[test]
fn rules_without_memory_of_their_own_share_a_list() {
    // Room for a few keys only.
    let few = TopConfig {
        keys_per_rule: 4,
        max_memory: 4 * 8 * 256,
        ..exact()
    };
    let watched = watched(YAML, config(few));
    for number in 0..50 {
        watched.ask(&[("user", &number.to_string())], 1);
    }
    for number in 0..50 {
        watched.ask(&[("path", &number.to_string())], 1);
        watched.ask(&[("path", "busy")], 1);
        watched.ask(&[("all", "one")], 1);
    }
    let keys = top(&watched, TopKind::Busiest, NOON);
    assert!(keys.len() <= 8, "{keys:?}");
    let busy = keys.iter().find(|it| it.key == "path=busy").unwrap();
    assert!(
        busy.count >= 50 && busy.count - busy.error <= 50,
        "{busy:?}"
    );
}

#[test]
fn sampled_counts_are_near_the_truth() {
    let watched = watched(YAML, config(TopConfig::default()));
    // Every second request is the same: a rhythm that every n-th would fall in with.
    for number in 0..20_000 {
        watched.ask(&[("path", "/hot")], 1);
        watched.ask(&[("path", &number.to_string())], 1);
    }
    let hot = &top(&watched, TopKind::Busiest, NOON)[0];
    assert_eq!(hot.key, "path=/hot");
    // Eight standard deviations of sqrt(15 * 20,000), and the error that is told.
    assert!(hot.count + 4_382 >= 20_000, "{hot:?}");
    assert!(hot.count - hot.error <= 20_000 + 4_382, "{hot:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However requests are spread over cores, rules and windows: a count is at least the truth, at
    /// most its error above it, and no error is above the requests by the number of places.
    #[test]
    fn the_error_bound_holds(
        stream in prop::collection::vec((0_usize..3, 0_u8..30, 0_u32..2), 1..400),
    ) {
        const PLACES: usize = 8;
        let top = TopConfig { keys_per_rule: PLACES, ..exact() };
        let watched = watched(YAML, config(top));
        let recorders: Vec<Recorder> = (0..3).map(|_| watched.observatory.recorder()).collect();
        let mut stream = stream;
        stream.sort_by_key(|(.., minute)| *minute);
        let mut truth: HashMap<String, u64> = HashMap::new();
        for (core, user, minute) in &stream {
            watched.limiter.store().clock().set(NOON.plus(MINUTE * *minute));
            let value = (user % 7 * (user / 7)).to_string();
            ask(&watched, &recorders[*core], "path", &value);
            *truth.entry(format!("path={value}")).or_default() += 1;
        }
        let last = stream.last().map_or(0, |(.., minute)| *minute);
        let keys = self::top(&watched, TopKind::Busiest, NOON.plus(MINUTE * last));
        let bound = u64::try_from(stream.len() / PLACES).unwrap();
        for key in &keys {
            let exact = truth[&key.key];
            prop_assert!(key.count - key.error <= exact && exact <= key.count, "{:?} {}", key, exact);
            prop_assert!(key.error <= bound, "{:?} {}", key, bound);
        }
        for (key, count) in truth {
            let is_there = keys.iter().any(|it| it.key == key);
            prop_assert!(is_there || count <= bound, "{} {}", key, count);
        }
    }
}
