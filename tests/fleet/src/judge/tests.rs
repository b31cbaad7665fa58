use super::*;
use crate::scenario::Role;
use crate::yaml;

/// When every run here begins: at the edge of a minute.
const START: u64 = 60_000_000_000;

/// A run of 12 seconds of one scenario.
fn check(scenario: &str, judge: &Judge, judged: Vec<Record>, twin: Vec<Record>) -> Finding {
    check_with(scenario, judge, judged, twin, Vec::new())
}

/// The same, with faults.
fn check_with(
    scenario: &str,
    judge: &Judge,
    judged: Vec<Record>,
    twin: Vec<Record>,
    faults: Vec<FaultSpan>,
) -> Finding {
    let text = format!("{{ name: run, judges: [], {scenario} }}");
    let scenario: Scenario = serde_json::from_value(yaml::parse(&text).unwrap()).unwrap();
    judge.judge(&Measured {
        scenario: &scenario,
        nodes: 2,
        start: START,
        end: START + micros(12.0),
        judged,
        twin,
        faults,
        probes: Vec::new(),
        overshoot: vec![0.0, 0.0],
        script_calls: 0,
    })
}

/// An allowed request that was sent so many milliseconds after the start and took so many.
fn allowed(at: u64, took: u64) -> Record {
    let sent = START + at * 1_000;
    Record {
        role: Role::Honest,
        is_twin: false,
        node: 0,
        cost: 1,
        due: sent,
        sent,
        received: sent + took * 1_000,
        outcome: Outcome::Allowed,
        is_degraded: false,
        remaining: None,
        retry_after: None,
    }
}

/// `count` allowed requests in each second, from 10 ms after the edge.
fn each_second(count: u64) -> Vec<Record> {
    let in_second = |second: u64| (0..count).map(move |n| allowed(second * 1_000 + 10 + n, 1));
    (0..12).flat_map(in_second).collect()
}

/// An outage between two times, in seconds.
fn outage(from: f64, to: f64) -> FaultSpan {
    FaultSpan {
        to: START + micros(to),
        ..FaultSpan::new(Action::StallRedis, START + micros(from))
    }
}

const PER_SECOND: &str = "limit: { limit: 100, window: 1 }, warm_up: 0";

#[test]
fn a_window_with_one_too_many_breaks_the_promise() {
    let kept = check(PER_SECOND, &Judge::NeverOver, each_second(100), Vec::new());
    assert_eq!(kept.verdict, Verdict::Kept);
    let over = check(PER_SECOND, &Judge::NeverOver, each_second(101), Vec::new());
    assert_eq!(over.verdict, Verdict::Broken);
    assert_eq!(over.details.len(), 12);
}

#[test]
fn a_request_across_an_edge_is_not_too_many_and_not_missing() {
    let mut records = each_second(100);
    records.insert(100, allowed(995, 10));
    let over = check(PER_SECOND, &Judge::NeverOver, records, Vec::new());
    assert_eq!(over.verdict, Verdict::Kept);
    let mut records = each_second(99);
    for second in 1..=12 {
        records.push(allowed(second * 1_000 - 1, 2));
    }
    records.sort_by_key(|record| record.sent);
    let judge = Judge::EveryWindow(100.0);
    let used = check(PER_SECOND, &judge, records, each_second(100));
    assert_eq!(used.verdict, Verdict::Kept);
}

#[test]
fn what_a_node_allowed_without_redis_is_judged_by_outages_only() {
    let mut records = each_second(100);
    let mut alone = allowed(500, 1);
    alone.is_degraded = true;
    records.push(alone);
    records.sort_by_key(|record| record.sent);
    let without = check(PER_SECOND, &Judge::NeverOver, records.clone(), Vec::new());
    assert_eq!(without.verdict, Verdict::Kept);
    for (from, expected) in [(0.2, Verdict::Broken), (2.0, Verdict::Kept)] {
        let (judge, faults) = (Judge::OutageBound(1.0), vec![outage(from, 3.0)]);
        let with = check_with(PER_SECOND, &judge, records.clone(), Vec::new(), faults);
        assert_eq!(with.verdict, expected, "{from}");
    }
}

#[test]
fn overshoot_must_be_told_unless_it_is_forgotten_when_redis_is_back() {
    let expectations = [
        (1, Verdict::Broken),
        (3, Verdict::Kept),
        (4, Verdict::Kept),
        (5, Verdict::Broken),
        (7, Verdict::Broken),
    ];
    for (at, expected) in expectations {
        let mut records = each_second(100);
        records.extend((0..50).map(|n| allowed(at * 1_000 + 10 + n, 1)));
        records.sort_by_key(|record| record.sent);
        let (judge, faults) = (Judge::Overshoot(2.0), vec![outage(3.5, 6.5)]);
        let finding = check_with(PER_SECOND, &judge, records, Vec::new(), faults);
        assert_eq!(finding.verdict, expected, "{at}: {finding:?}");
    }
}

#[test]
fn an_outage_excuses_nothing_before_it_and_nothing_long_after_it() {
    let algorithms = ["fixed_window", "sliding_log", "token_bucket"];
    for algorithm in algorithms {
        let scenario =
            format!("limit: {{ limit: 100, window: 1, algorithm: {algorithm} }}, warm_up: 0");
        // Fifty too many in the second of each row; Redis is away from 3 to 5 s.
        for (at, expected) in [
            (1, Verdict::Broken),
            (4, Verdict::Kept),
            (11, Verdict::Broken),
        ] {
            let mut records = each_second(100);
            records.extend((0..50).map(|n| allowed(at * 1_000 + 10 + n, 1)));
            records.sort_by_key(|record| record.sent);
            let (judge, faults) = (Judge::OutageBound(2.0), vec![outage(3.0, 5.0)]);
            let finding = check_with(&scenario, &judge, records, Vec::new(), faults);
            assert_eq!(
                finding.verdict, expected,
                "{algorithm} at {at} s: {finding:?}"
            );
        }
    }
}

#[test]
fn use_is_judged_beside_the_twin() {
    let judge = Judge::Use(98.0);
    let kept = check(PER_SECOND, &judge, each_second(98), each_second(100));
    assert_eq!(kept.verdict, Verdict::Kept);
    let broken = check(PER_SECOND, &judge, each_second(97), each_second(100));
    assert_eq!(broken.verdict, Verdict::Broken);
    let both_slow = check(PER_SECOND, &judge, each_second(80), each_second(80));
    assert_eq!(both_slow.verdict, Verdict::Kept);
}

#[test]
fn one_bad_window_is_found() {
    let mut records = each_second(100);
    records.drain(300..310);
    let judge = Judge::EveryWindow(95.0);
    let finding = check(PER_SECOND, &judge, records, each_second(100));
    assert_eq!(finding.details, ["window at 3.0 s: 90, strict 100"]);
}

#[test]
fn a_log_is_judged_in_any_span() {
    let log = "limit: { limit: 100, window: 1, algorithm: sliding_log }";
    let across = |gap: u64| {
        let first = (0..60).map(|n| allowed(900 + n, 1));
        let second = (0..60).map(move |n| allowed(900 + gap + n, 1));
        first.chain(second).collect()
    };
    let apart = check(log, &Judge::NeverOver, across(1_100), Vec::new());
    assert_eq!(apart.verdict, Verdict::Kept);
    let together = check(log, &Judge::NeverOver, across(200), Vec::new());
    assert_eq!(together.verdict, Verdict::Broken);
}

#[test]
fn a_bucket_is_judged_by_what_is_above_its_rate() {
    let bucket =
        "limit: { limit: 100, window: 1, algorithm: token_bucket, burst: 20 }, consistency: strict";
    // One each 10 ms is the rate; so many come at once on top of it.
    let with_burst = |burst: u64| {
        let steady = (0..500).map(|n| allowed(n * 10, 0));
        let burst = (0..burst).map(|_| allowed(2_000, 0));
        let mut records: Vec<Record> = steady.chain(burst).collect();
        records.sort_by_key(|record| record.sent);
        records
    };
    let kept = check(bucket, &Judge::NeverOver, with_burst(19), Vec::new());
    assert_eq!(kept.verdict, Verdict::Kept);
    let over = check(bucket, &Judge::NeverOver, with_burst(21), Vec::new());
    assert_eq!(over.verdict, Verdict::Broken);
}

#[test]
fn remaining_is_compared_with_what_was_allowed() {
    let told = |off: u64| {
        let mut records = each_second(100);
        for (place, record) in records.iter_mut().enumerate() {
            record.remaining = Some((99 - place as u64 % 100).saturating_sub(off));
        }
        records
    };
    let right = check(PER_SECOND, &Judge::Remaining, told(0), Vec::new());
    assert_eq!(right.verdict, Verdict::Kept);
    let wrong = check(PER_SECOND, &Judge::Remaining, told(60), Vec::new());
    assert_eq!(wrong.verdict, Verdict::Broken);
}

#[test]
fn a_run_that_was_late_is_never_a_pass() {
    let mut records = each_second(100);
    for record in &mut records {
        record.due -= 1_000_000;
    }
    let late = check(PER_SECOND, &Judge::Use(98.0), records, each_second(100));
    assert!(matches!(late.verdict, Verdict::Invalid(_)));
}

#[test]
fn a_run_with_degraded_answers_says_nothing_about_use() {
    let mut records = each_second(100);
    for record in records.iter_mut().step_by(20) {
        record.is_degraded = true;
    }
    let judge = Judge::Use(98.0);
    let finding = check(PER_SECOND, &judge, records.clone(), each_second(100));
    assert!(matches!(finding.verdict, Verdict::Invalid(_)));
    let degraded = check(PER_SECOND, &Judge::Degraded(0.1), records, Vec::new());
    assert_eq!(degraded.verdict, Verdict::Broken);
}

#[test]
fn a_recovery_ends_with_the_first_pause_unless_redis_fails_again() {
    let outage = outage(2.0, 4.0);
    for (degraded, expected) in [
        (2_000..4_040, Verdict::Kept),
        (2_000..4_100, Verdict::Broken),
        // One late batch, and a breaker that opens again.
        (6_000..6_012, Verdict::Kept),
        (6_000..6_500, Verdict::Broken),
    ] {
        let records = (0..1_200).map(|n| Record {
            is_degraded: degraded.contains(&(n * 10)),
            ..allowed(n * 10, 1)
        });
        let (judge, faults) = (Judge::Recovery(50.0), vec![outage.clone()]);
        let finding = check_with(PER_SECOND, &judge, records.collect(), Vec::new(), faults);
        assert_eq!(finding.verdict, expected, "{degraded:?}");
    }
}

#[test]
fn several_runs_are_judged_by_their_median_and_too_many_by_each() {
    let finding = |verdict: &Verdict, is_for_every_run| Finding {
        verdict: verdict.clone(),
        is_for_every_run,
        ..Finding::nothing("promise".to_owned(), "")
    };
    let (kept, broken) = (Verdict::Kept, Verdict::Broken);
    let invalid = Verdict::Invalid("noise".to_owned());
    for (runs, median, each) in [
        ([&kept, &kept, &kept], &kept, &kept),
        ([&kept, &broken, &kept], &kept, &broken),
        ([&broken, &kept, &broken], &broken, &broken),
        ([&kept, &invalid, &kept], &kept, &invalid),
        ([&kept, &invalid, &broken], &invalid, &broken),
    ] {
        for (is_for_every_run, expected) in [(false, median), (true, each)] {
            let runs = runs.map(|verdict| finding(verdict, is_for_every_run));
            assert_eq!(Finding::of_runs(&runs).verdict, *expected, "{runs:?}");
        }
    }
}

#[test]
fn a_node_that_waits_for_redis_all_through_an_outage_is_found() {
    // Milliseconds that an answer takes in the first 300 ms of an outage and later; one in 50 later takes the third.
    for (at_first, later, sometimes, expected) in [
        (50, 1, 1, Verdict::Kept),
        (70, 1, 1, Verdict::Broken),
        (50, 50, 50, Verdict::Broken),
        (50, 1, 30, Verdict::Broken),
    ] {
        let records = (0..1_200).map(|n| match n * 10 {
            at @ 2_000..2_300 => allowed(at, at_first),
            at @ 2_300..8_000 if n % 50 == 0 => allowed(at, sometimes),
            at @ 2_300..8_000 => allowed(at, later),
            at => allowed(at, 1),
        });
        let (judge, faults) = (Judge::LongestWait(60.0), vec![outage(2.0, 8.0)]);
        let finding = check_with(PER_SECOND, &judge, records.collect(), Vec::new(), faults);
        assert_eq!(finding.verdict, expected, "{finding:?}");
    }
}

#[test]
fn a_node_in_an_outage_is_compared_with_the_one_without_redis() {
    for (took, expected) in [(2, Verdict::Kept), (4, Verdict::Broken)] {
        let records = (0..1_200).map(|n| {
            let node = n as usize % 2;
            let took = if node == 0 { took } else { 2 };
            Record {
                node,
                ..allowed(n * 10, took)
            }
        });
        let (judge, faults) = (Judge::MemoryGap(1.0), vec![outage(2.0, 8.0)]);
        let finding = check_with(PER_SECOND, &judge, records.collect(), Vec::new(), faults);
        assert_eq!(finding.verdict, expected, "{finding:?}");
    }
}

#[test]
fn permits_that_were_given_back_are_there_and_no_more() {
    let grant = FaultSpan {
        given: Some((20, "run".to_owned())),
        ..FaultSpan::new(Action::Grant, START + micros(3.5))
    };
    let in_that_window = |more: u64| {
        let mut records = each_second(100);
        records.extend((0..more).map(|n| allowed(3_600 + n, 1)));
        records.sort_by_key(|record| record.sent);
        records
    };
    for (more, over, given) in [
        (20, Verdict::Kept, Verdict::Kept),
        (21, Verdict::Broken, Verdict::Kept),
        (10, Verdict::Kept, Verdict::Broken),
    ] {
        let verdict = |judge: &Judge| {
            let (records, faults) = (in_that_window(more), vec![grant.clone()]);
            check_with(PER_SECOND, judge, records, Vec::new(), faults).verdict
        };
        assert_eq!(verdict(&Judge::NeverOver), over, "{more}");
        assert_eq!(verdict(&Judge::Given(98.0)), given, "{more}");
    }
}

#[test]
fn neither_less_nor_more_than_strict_is_as_strict() {
    for (count, expected) in [
        (99, Verdict::Kept),
        (96, Verdict::Broken),
        (104, Verdict::Broken),
    ] {
        let judge = Judge::AsStrict(2.0);
        let finding = check(PER_SECOND, &judge, each_second(count), each_second(100));
        assert_eq!(finding.verdict, expected, "{count}");
    }
}

#[test]
fn a_caller_who_waits_counts_late_answers() {
    let scenario = format!("{PER_SECOND}, waits: 0.1");
    for (took, expected) in [(90, Verdict::Kept), (110, Verdict::Broken)] {
        let records = (0..1_200).map(|n| allowed(n * 10, if n % 100 == 0 { took } else { 1 }));
        let judge = Judge::Degraded(0.1);
        let finding = check(&scenario, &judge, records.collect(), Vec::new());
        assert_eq!(finding.verdict, expected, "{took}");
    }
}

#[test]
fn a_redis_that_was_not_busy_shows_nothing() {
    for (load, is_valid) in [(0.87, false), (0.9, true)] {
        let busy = FaultSpan {
            redis_load: Some(load),
            ..FaultSpan::new(Action::BusyRedis, START)
        };
        let judge = Judge::Degraded(0.1);
        let finding = check_with(PER_SECOND, &judge, each_second(10), Vec::new(), vec![busy]);
        assert_eq!(finding.verdict == Verdict::Kept, is_valid);
    }
}
