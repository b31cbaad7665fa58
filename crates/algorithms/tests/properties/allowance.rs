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

const HALF_A_MINUTE: Allowance = Allowance::Soft {
    over: Percent(10),
    only_for: Some(Duration::from_secs(30)),
};

/// The example of the docs: about 6 requests a second for five minutes. Returns how many are allowed in each
/// minute, and the times of those that are over the limit.
fn steady_load(counter: &mut Counter) -> ([u64; 5], Vec<Duration>) {
    let (mut allowed, mut over) = ([0; 5], Vec::new());
    for request in 0..1_830_u64 {
        let since = Duration::from_millis(request * 164);
        let minute = usize::try_from(since.as_secs() / 60).expect("five minutes");
        let decision = ask(counter, Headroom::Absent, at(0).plus(since));
        allowed[minute] += u64::from(decision.is_allowed());
        if decision.is_allowed() && !is_within(&decision) {
            over.push(since);
        }
    }
    (allowed, over)
}

fn is_within(decision: &Decision) -> bool {
    let standing = Standing::Within;
    matches!(decision.outcome, Outcome::Allowed { standing: it, .. } if it == standing)
}

/// `soft_for` ends under steady load and does not start again, whatever the algorithm.
#[test]
fn soft_for_ends_under_steady_load() {
    for algorithm in every_algorithm() {
        let (allowed, over) = steady_load(&mut counter(algorithm, HALF_A_MINUTE));
        let (hard, _) = steady_load(&mut counter(algorithm, Allowance::Hard));
        assert!(over.len() >= 10, "{algorithm:?}");
        let lasted = over[over.len() - 1].saturating_sub(over[0]);
        assert!(lasted < Duration::from_secs(30), "{algorithm:?}: {over:?}");
        // What was over is repaid in the minute in which it ends at the latest.
        assert_eq!(allowed[2..], hard[2..], "{algorithm:?}");
    }
    let (allowed, _) = steady_load(&mut counter(Algorithm::FixedWindow, HALF_A_MINUTE));
    assert_eq!(allowed, [110, 100, 100, 100, 100]);
}

/// It starts again a whole window after the last request above the limit, not a microsecond earlier.
#[test]
fn soft_for_starts_again_after_a_window_without_requests_above_the_limit() {
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, HALF_A_MINUTE);
        assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (100, 10));
        // After its end one request is denied, which is the last above the limit.
        assert!(
            !counter
                .decide(111, Headroom::Absent, at(50), Commit::Charge)
                .is_allowed()
        );
        let edge = at(110);
        let standing_at = |now| {
            let mut counter = counter.clone();
            // A whole limit at once, where there is room for one.
            let within = counter
                .decide(0, Headroom::Absent, now, Commit::Nothing)
                .remaining;
            counter.decide(within, Headroom::Absent, now, Commit::Charge);
            ask(&mut counter, Headroom::Absent, now).is_allowed()
        };
        let just_before = Time::from_nanos(edge.nanos() - 1_000);
        assert!(!standing_at(just_before), "{algorithm:?}: too early");
        assert!(standing_at(edge), "{algorithm:?}: too late");
    }
}

/// A pause of a whole window ends the period even before `soft_for` is over.
#[test]
fn a_pause_of_a_window_begins_a_new_period() {
    let soft = Allowance::Soft {
        over: Percent(10),
        only_for: Some(Duration::from_mins(3)),
    };
    let mut counter = counter(Algorithm::FixedWindow, soft);
    assert_eq!(flood(&mut counter, Headroom::Absent, at(0)), (100, 10));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(90)), (100, 10));
    // Three minutes after the second flood, not after the first.
    assert_eq!(flood(&mut counter, Headroom::Absent, at(149)), (100, 10));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(200)), (100, 10));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(259)), (100, 10));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(300)), (100, 0));
}

#[test]
fn soft_for_a_while_is_hard_after_it() {
    let mut counter = counter(Algorithm::FixedWindow, HALF_A_MINUTE);
    for _ in 0..105 {
        assert!(ask(&mut counter, Headroom::Absent, at(10)).is_allowed());
    }
    let last_moment = Time::from_nanos(at(40).nanos() - 1);
    assert!(ask(&mut counter, Headroom::Absent, last_moment).is_allowed());
    let denied = ask(&mut counter, Headroom::Absent, at(40));
    let until_the_edge = Retry::After(Duration::from_secs(20));
    assert_eq!(
        denied.outcome,
        Outcome::Denied {
            retry: until_the_edge
        }
    );
    // The next window is hard, and a request denied there keeps it so.
    assert_eq!(flood(&mut counter, Headroom::Absent, at(60)), (100, 0));
    assert_eq!(flood(&mut counter, Headroom::Absent, at(179)), (100, 10));
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
    // 110 tokens take 66 s to come back; by then `soft_for` is over, and it starts again a minute after
    // the denied request, rounded up to a thousandth of `soft_for`.
    let retry = Retry::After(Duration::from_millis(60_020));
    assert_eq!(ask(&mut counter, 10), Outcome::Denied { retry });
    let restart = at(70).plus(Duration::from_millis(20));
    let decision = counter.decide(110, Headroom::Absent, restart, Commit::Charge);
    assert_eq!(decision.outcome, marked);
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

/// At the very end of `soft_for` the extra is gone: a retry that falls on it is the hard one.
#[test]
fn a_retry_at_the_end_of_soft_for_is_the_hard_one() {
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
    let just_longer = one_token + Duration::from_micros(1);
    assert_eq!(retry_with(just_longer), Outcome::Denied { retry: soft });
}
