//! The latest decisions, by id.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_limiter::{DecisionPath, Descriptor, Entry, Retry};
use tidegate_observe::{
    DecisionClock, DecisionConfig, DecisionId, DecisionQuery, LimiterRequest, ObserveConfig,
    RecordedAnswer, RecordedCounter, RecordedDecision, Recorder, TraceHeaders,
};

use crate::fixture::{NOON, TOOK, Watched, rules, watched};

const YAML: &str = "
domain: test
descriptors:
  - key: user
    rate_limits:
      - { unit: day, requests_per_unit: 1000 }
      - { unit: minute, requests_per_unit: 5, name: per_minute }
  - key: nobody
    rate_limit: { unit: minute, requests_per_unit: 0 }
";

/// Keeps every denial and every allowed request.
const ALL: DecisionConfig = DecisionConfig {
    capacity: 256,
    sample_one_in: Some(NonZeroU32::MIN),
};

fn with(decisions: Option<DecisionConfig>) -> Watched {
    let config = ObserveConfig {
        decisions,
        ..ObserveConfig::default()
    };
    watched(YAML, config)
}

/// Asks for `hits` on one route, and returns the id of the decision.
fn ask(watched: &Watched, recorder: &Recorder, key: &str, hits: u64) -> Option<DecisionId> {
    let entries = [Entry {
        key,
        value: "secret",
    }];
    let descriptors = [Descriptor::new(&entries)];
    let verdict = watched
        .limiter
        .check_now("test", &descriptors, hits)
        .unwrap();
    let request = LimiterRequest {
        domain: "test",
        descriptors: &descriptors,
        hits,
        route: Some("orders"),
        trace: TraceHeaders::default(),
    };
    recorder.judged(&request, &verdict, TOOK)
}

/// The newest `most` decisions.
fn newest(watched: &Watched, most: usize, only_denied: bool) -> Vec<RecordedDecision> {
    let query = DecisionQuery { only_denied, most };
    watched.observatory.decisions(query).decisions
}

#[test]
fn a_denial_is_found_by_its_id() {
    let watched = with(Some(ALL));
    ask(&watched, &watched.recorder, "user", 4);
    let id = ask(&watched, &watched.recorder, "user", 2).unwrap();
    let decision = watched.observatory.decision(id).unwrap();
    let rule = decision.rule.as_deref().unwrap();
    assert_eq!((&*rule.domain, &*rule.path), ("test", "user"));
    assert_eq!((&*rule.file, rule.line), ("test.yaml", 4));
    assert_eq!(
        &*rule.limits[decision.limit_index],
        "5 per minute, fixed_window"
    );
    assert_eq!(decision.id, id);
    assert_eq!(decision.time, Duration::from_nanos(NOON.nanos()));
    assert_eq!(decision.clock, DecisionClock::Store);
    assert_eq!(decision.answer, RecordedAnswer::Denied);
    assert_eq!(decision.path, DecisionPath::Memory);
    assert_eq!(decision.n_limits, 2);
    assert_eq!(decision.route.as_deref(), Some("orders"));
    assert_eq!(decision.cost, 2);
    let counter = RecordedCounter {
        limit: 5,
        remaining_before: 1,
        remaining_after: 1,
        reset_after: Duration::from_mins(1),
    };
    assert_eq!(decision.counter, Some(counter));
    assert_eq!(decision.retry, Some(Retry::After(Duration::from_mins(1))));
}

#[test]
fn an_allowed_request_tells_the_counter_before_and_after() {
    let watched = with(Some(ALL));
    let id = ask(&watched, &watched.recorder, "user", 2).unwrap();
    let decision = watched.observatory.decision(id).unwrap();
    assert_eq!(decision.answer, RecordedAnswer::Allowed);
    let counter = decision.counter.unwrap();
    assert_eq!((counter.remaining_before, counter.remaining_after), (5, 3));
    assert_eq!(decision.retry, None);
}

#[test]
fn a_denial_that_never_ends_says_so() {
    let watched = with(Some(ALL));
    let id = ask(&watched, &watched.recorder, "nobody", 1).unwrap();
    let decision = watched.observatory.decision(id).unwrap();
    assert_eq!(decision.retry, Some(Retry::Never));
}

#[test]
fn requests_without_a_limit_are_not_kept() {
    let watched = with(Some(ALL));
    assert_eq!(ask(&watched, &watched.recorder, "unmatched", 1), None);
    assert!(newest(&watched, 10, false).is_empty());
}

#[test]
fn denials_are_kept_where_no_allowed_request_is() {
    let watched = with(Some(DecisionConfig {
        sample_one_in: None,
        ..ALL
    }));
    assert_eq!(ask(&watched, &watched.recorder, "user", 5), None);
    assert!(ask(&watched, &watched.recorder, "user", 1).is_some());
}

#[test]
fn nothing_is_kept_without_room() {
    for off in [None, Some(DecisionConfig { capacity: 0, ..ALL })] {
        let watched = with(off);
        assert_eq!(ask(&watched, &watched.recorder, "nobody", 1), None);
        assert_eq!(newest(&watched, 10, false), []);
    }
}

#[test]
fn the_newest_come_first_whichever_core_decided() {
    let watched = with(Some(ALL));
    let other = watched.observatory.recorder();
    let mut ids = Vec::new();
    for turn in 0..6 {
        watched
            .limiter
            .store()
            .clock()
            .advance(Duration::from_secs(1));
        let recorder = if turn % 2 == 0 {
            &watched.recorder
        } else {
            &other
        };
        ids.push(ask(&watched, recorder, "user", 1).unwrap());
    }
    ids.reverse();
    let listed = |most, only_denied| -> Vec<DecisionId> {
        let listed = newest(&watched, most, only_denied);
        listed.into_iter().map(|it| it.id).collect()
    };
    assert_eq!(listed(10, false), ids);
    assert_eq!(listed(2, false), ids[..2]);
    assert_eq!(listed(10, true), ids[..1], "the sixth of five is denied");
}

#[test]
fn the_oldest_are_forgotten_and_the_report_says_when() {
    let watched = with(Some(ALL));
    let first = ask(&watched, &watched.recorder, "nobody", 1).unwrap();
    for _ in 0..511 {
        watched
            .limiter
            .store()
            .clock()
            .advance(Duration::from_secs(1));
        ask(&watched, &watched.recorder, "nobody", 1);
    }
    assert_eq!(watched.observatory.decision(first), None);
    let retention = watched
        .observatory
        .decisions(DecisionQuery {
            only_denied: false,
            most: 0,
        })
        .retention;
    assert_eq!((retention.capacity, retention.kept), (256, 256));
    assert_eq!(retention.kept_for, Some(Duration::from_secs(255)));
    assert_eq!(retention.sampled_one_in, 1);
}

#[test]
fn the_names_of_rules_outlive_a_reload() {
    let watched = with(Some(ALL));
    let id = ask(&watched, &watched.recorder, "nobody", 1).unwrap();
    for limit in 0..3 {
        let yaml = format!(
            "domain: test\ndescriptors:\n  - key: user\n    rate_limit: {{ unit: day, requests_per_unit: {limit} }}"
        );
        watched.limiter.replace_rules(rules(&yaml));
        watched.ask(&[("user", "a")], 9);
    }
    let decision = watched.observatory.decision(id).unwrap();
    let rule = decision.rule.unwrap();
    assert_eq!((&*rule.path, rule.line), ("nobody", 8));
    let newest = newest(&watched, 1, true).remove(0).rule.unwrap();
    assert_eq!(&*newest.limits[0], "2 per day, fixed_window");
}

#[test]
fn ids_differ() {
    let watched = with(Some(ALL));
    let ids = (0..200).map(|_| ask(&watched, &watched.recorder, "nobody", 1));
    let mut ids: Vec<String> = ids.map(|id| id.unwrap().to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 200);
}

#[test]
fn one_in_so_many_allowed_requests_is_kept() {
    let config = DecisionConfig {
        capacity: 16_384,
        sample_one_in: NonZeroU32::new(8),
    };
    let watched = with(Some(config));
    let verdict = watched.ask(&[("user", "a")], 1);
    let request = LimiterRequest {
        domain: "test",
        descriptors: &[],
        hits: 1,
        route: None,
        trace: TraceHeaders::default(),
    };
    let keeps = |_: &u32| watched.recorder.judged(&request, &verdict, TOOK).is_some();
    let n_kept = (0..80_000).filter(keeps).count();
    // The gaps are uniform between 1 and 15: the count has a standard deviation of 54, and this is six of them.
    assert!(n_kept.abs_diff(10_000) < 324, "{n_kept}");
}
