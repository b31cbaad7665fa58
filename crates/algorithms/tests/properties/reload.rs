//! A changed limit applies to the old counts.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Outcome, Quota, QuotaSpec, Refill, Retry, Time,
};

use crate::history::{Course, cases, charges, spec, start};

const NOW: Time = Time::from_micros(1_800_000_000_000_000);

fn per_minute(limit: u64, algorithm: Algorithm) -> Quota {
    let (window, allowance) = (Duration::from_mins(1), Allowance::Hard);
    Quota::new(&QuotaSpec {
        limit,
        window,
        algorithm,
        allowance,
    })
    .expect("valid")
}

/// The wait of a request of cost 1 after 100 a minute were used up and the limit became 10.
fn wait_after_lowering(algorithm: Algorithm) -> Retry {
    let mut counter = Counter::new(per_minute(100, algorithm));
    assert!(
        counter
            .decide(100, Headroom::Absent, NOW, Commit::Charge)
            .is_allowed()
    );
    counter.change_quota(per_minute(10, algorithm));
    match counter
        .decide(1, Headroom::Absent, NOW, Commit::Charge)
        .outcome
    {
        Outcome::Denied { retry } => retry,
        Outcome::Allowed { .. } => panic!("{algorithm:?} admits over the limit"),
    }
}

#[test]
fn a_lowered_limit_applies_at_once() {
    let bucket = |refill| Algorithm::TokenBucket {
        burst: None,
        refill,
    };
    let log = Algorithm::SlidingLog { log_refused: false };
    let cases = [
        // The minute until the bucket of 100 is full is what an empty one of 10 takes.
        (bucket(Refill::Continuous), Duration::from_secs(6)),
        (bucket(Refill::Interval), Duration::from_mins(1)),
        (Algorithm::FixedWindow, Duration::from_mins(1)),
        (log, Duration::from_mins(1)),
    ];
    for (algorithm, wait) in cases {
        assert_eq!(
            wait_after_lowering(algorithm),
            Retry::After(wait),
            "{algorithm:?}"
        );
    }
}

/// Ten minutes ahead is further than a bucket of 10 at 10 a minute can be: it is just empty.
#[test]
fn a_bucket_with_a_lowered_burst_is_clamped() {
    let refill = Refill::Continuous;
    let bucket = |burst| Algorithm::TokenBucket {
        burst: Some(burst),
        refill,
    };
    let mut counter = Counter::new(per_minute(100, bucket(1_000)));
    assert!(
        counter
            .decide(1_000, Headroom::Absent, NOW, Commit::Charge)
            .is_allowed()
    );
    counter.change_quota(per_minute(10, bucket(10)));
    let refused = counter.decide(1, Headroom::Absent, NOW, Commit::Charge);
    let retry = Retry::After(Duration::from_secs(6));
    assert_eq!(refused.outcome, Outcome::Denied { retry });
    assert_eq!(refused.reset_after, Duration::from_mins(1));
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Whatever the numbers were and became: the retry stays exact.
    #[test]
    fn the_retry_is_exact_after_a_reload(
        old in spec(), limit in 1..50_u64, start in start(), charges in charges(),
    ) {
        let new = QuotaSpec { limit, ..old.clone() };
        let (Ok(before), Ok(after)) = (Quota::new(&old), Quota::new(&new)) else { return Ok(()) };
        let mut course = Course::new(&before, start);
        let mut counter = Counter::new(before);
        let ask = |counter: &mut Counter, cost, at| {
            counter.decide(cost, Headroom::Absent, at, Commit::Charge)
        };
        for (advance, cost) in &charges {
            course.advance(advance);
            let decision = ask(&mut counter, course.cost(cost), course.now);
            course.learn(decision);
        }
        counter.change_quota(after);
        let now = course.now;
        let Outcome::Denied { retry: Retry::After(wait) } = ask(&mut counter, 1, now).outcome else {
            return Ok(());
        };
        let at = now.plus(wait);
        prop_assume!(at < Time::MAX);
        prop_assert!(ask(&mut counter.clone(), 1, at).is_allowed());
        let early = Time::from_nanos(at.nanos() - 1);
        prop_assert!(!ask(&mut counter.clone(), 1, early).is_allowed());
    }
}
