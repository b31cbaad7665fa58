//! What passes over a limit: soft and elastic allowances.

use std::time::Duration;

use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, Retry,
    Rounding, Standing, Time,
};

const MINUTE: Duration = Duration::from_mins(1);

/// 100 a minute, whatever the algorithm: each admits 100 at one instant.
fn every_algorithm() -> [Algorithm; 8] {
    let rounding = Rounding::Down;
    [
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Interval,
        },
        Algorithm::LeakyBucket { queue: Some(99) },
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: false },
        Algorithm::SlidingLog { log_refused: true },
        Algorithm::SlidingCounter {
            sub_windows: 1,
            rounding,
        },
        Algorithm::SlidingCounter {
            sub_windows: 12,
            rounding,
        },
    ]
}

fn counter(algorithm: Algorithm, allowance: Allowance) -> Counter {
    let spec = QuotaSpec {
        limit: 100,
        window: MINUTE,
        algorithm,
        allowance,
    };
    Counter::new(Quota::new(&spec).expect("valid"))
}

/// A time at the start of a minute, so many seconds later.
fn at(seconds: u64) -> Time {
    Time::from_micros(1_800_000_000_000_000).plus(Duration::from_secs(seconds))
}

fn ask(counter: &mut Counter, headroom: Headroom, now: Time) -> Decision {
    counter.decide(1, headroom, now, Commit::Charge)
}

/// How many of 200 requests at one instant are admitted within the limit, and over it.
fn flood(counter: &mut Counter, headroom: Headroom, now: Time) -> (usize, usize) {
    let standings: Vec<Standing> = (0..200)
        .filter_map(|_| match ask(counter, headroom, now).outcome {
            Outcome::Allowed { standing, .. } => Some(standing),
            Outcome::Denied { .. } => None,
        })
        .collect();
    let within = standings
        .iter()
        .filter(|one| **one == Standing::Within)
        .count();
    assert!(
        standings.is_sorted_by_key(|one| *one == Standing::Over),
        "over before within"
    );
    (within, standings.len() - within)
}

#[test]
fn hard_admits_the_limit() {
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, Allowance::Hard);
        assert_eq!(
            flood(&mut counter, Headroom::Available, at(0)),
            (100, 0),
            "{algorithm:?}"
        );
    }
}

#[test]
fn soft_admits_ten_percent_more_and_marks_them() {
    let soft = Allowance::Soft {
        over: Percent(10),
        only_for: None,
    };
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, soft);
        assert_eq!(
            flood(&mut counter, Headroom::Absent, at(0)),
            (100, 10),
            "{algorithm:?}"
        );
    }
}

#[test]
fn elastic_stretches_only_while_there_is_headroom() {
    let elastic = Allowance::Elastic { over: Percent(10) };
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, elastic);
        assert_eq!(
            flood(&mut counter, Headroom::Absent, at(0)),
            (100, 0),
            "{algorithm:?}"
        );
    }
    // Where refusals are not logged, headroom that comes later still helps.
    let mut counter = counter(Algorithm::FixedWindow, elastic);
    assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (100, 0));
    assert_eq!(flood(&mut counter, Headroom::Available, at(0)), (0, 10));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (0, 0));
}

#[test]
fn soft_for_a_while_is_hard_after_it() {
    let only_for = Some(Duration::from_secs(30));
    let mut counter = counter(
        Algorithm::FixedWindow,
        Allowance::Soft {
            over: Percent(10),
            only_for,
        },
    );
    for _ in 0..105 {
        assert!(ask(&mut counter, Headroom::Absent, at(10)).is_allowed());
    }
    let last_moment = Time::from_nanos(at(40).nanos() - 1);
    assert!(ask(&mut counter, Headroom::Absent, last_moment).is_allowed());
    let refused = ask(&mut counter, Headroom::Absent, at(40));
    let until_the_edge = Retry::After(Duration::from_secs(20));
    assert_eq!(
        refused.outcome,
        Outcome::Denied {
            retry: until_the_edge
        }
    );
    // A new window is within the limit, and the stretch begins anew.
    assert_eq!(flood(&mut counter, Headroom::Absent, at(60)), (100, 10));
}

#[test]
fn a_retry_that_the_extra_does_not_live_to_see_is_the_hard_one() {
    let only_for = Some(Duration::from_secs(30));
    let log = Algorithm::SlidingLog { log_refused: false };
    let mut counter = counter(
        log,
        Allowance::Soft {
            over: Percent(10),
            only_for,
        },
    );
    assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (100, 10));
    // All leave after a minute. With the extra, one place would do; without it, so must eleven.
    let mut late = counter.clone();
    for second in 1..=10 {
        assert!(!ask(&mut late, Headroom::Absent, at(second)).is_allowed());
    }
    let refused = ask(&mut counter, Headroom::Absent, at(10));
    let when_they_leave = Retry::After(Duration::from_secs(50));
    assert_eq!(
        refused.outcome,
        Outcome::Denied {
            retry: when_they_leave
        }
    );
}

#[test]
fn a_cost_that_fits_only_the_extra_waits_for_the_whole_limit() {
    let only_for = Some(Duration::from_secs(30));
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    };
    let mut counter = counter(
        bucket,
        Allowance::Soft {
            over: Percent(10),
            only_for,
        },
    );
    let ask = |counter: &mut Counter, seconds| {
        counter
            .decide(110, Headroom::Absent, at(seconds), Commit::Charge)
            .outcome
    };
    let marked = Outcome::Allowed {
        standing: Standing::Over,
        delay: Duration::ZERO,
    };
    assert_eq!(ask(&mut counter, 0), marked);
    // 110 tokens take 66 s to come back; the stretch of 30 s will be over, but a whole bucket
    // begins a new one.
    let retry = Retry::After(Duration::from_secs(56));
    assert_eq!(ask(&mut counter, 10), Outcome::Denied { retry });
    assert_eq!(ask(&mut counter, 66), marked);
}

#[test]
fn debt_stands_when_the_headroom_goes() {
    let elastic = Allowance::Elastic { over: Percent(10) };
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    };
    let mut counter = counter(bucket, elastic);
    assert_eq!(flood(&mut counter, Headroom::Available, at(0)), (100, 10));
    let refused = ask(&mut counter, Headroom::Absent, at(0));
    // Eleven tokens at 600 ms each: ten of debt, and the one asked for.
    let retry = Retry::After(Duration::from_millis(6_600));
    assert_eq!(refused.outcome, Outcome::Denied { retry });
}

/// At the very end of the stretch the extra is gone: a retry that falls on it is the hard one.
#[test]
fn a_retry_at_the_end_of_the_stretch_is_the_hard_one() {
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    };
    let retry_with = |only_for: Duration| {
        let soft = Allowance::Soft {
            over: Percent(10),
            only_for: Some(only_for),
        };
        let mut counter = counter(bucket, soft);
        assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (100, 10));
        ask(&mut counter, Headroom::Absent, at(0)).outcome
    };
    // One token of debt is paid in 600 ms; all ten and one more in 6.6 s.
    let one_token = Duration::from_millis(600);
    let hard = Retry::After(Duration::from_millis(6_600));
    assert_eq!(retry_with(one_token), Outcome::Denied { retry: hard });
    let soft = Retry::After(one_token);
    let just_longer = one_token + Duration::from_nanos(1);
    assert_eq!(retry_with(just_longer), Outcome::Denied { retry: soft });
}
