//! Postpaid limits: the cost is charged when it is known, whether or not it fits.

use std::time::Duration;

use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Quota, QuotaError, QuotaSpec, Refill,
    RefundTo, Retry, Rounding, Time,
};

const MINUTE: Duration = Duration::from_mins(1);

fn every_algorithm() -> [Algorithm; 7] {
    let rounding = Rounding::Down;
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding,
    };
    [
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: false },
        Algorithm::SlidingLog { log_refused: true },
        counter(1),
        counter(12),
    ]
}

fn bucket(refill: Refill) -> Algorithm {
    let burst = None;
    Algorithm::TokenBucket { burst, refill }
}

/// 20 a minute.
fn spec(algorithm: Algorithm, max_debt: Option<u64>) -> QuotaSpec {
    QuotaSpec {
        limit: 20,
        window: MINUTE,
        algorithm,
        allowance: Allowance::Postpaid { max_debt },
    }
}

fn counter(algorithm: Algorithm, max_debt: Option<u64>) -> Counter {
    Counter::new(Quota::new(&spec(algorithm, max_debt)).expect("valid"))
}

/// A time at the start of a minute, so many seconds later.
fn at(seconds: u64) -> Time {
    Time::from_micros(1_800_000_000_000_000).plus(Duration::from_secs(seconds))
}

fn debit(counter: &mut Counter, cost: u64, now: Time) -> Decision {
    counter.decide(cost, Headroom::Absent, now, Commit::Charge)
}

fn look(counter: &Counter, now: Time) -> Decision {
    counter
        .clone()
        .decide(0, Headroom::Absent, now, Commit::Nothing)
}

fn wait(decision: &Decision) -> Duration {
    match decision.outcome {
        Outcome::Denied {
            retry: Retry::After(wait),
        } => wait,
        _ => panic!("{decision:?} does not say when to come back"),
    }
}

/// A caller who looks first and debits 7 afterwards is stopped after the third time, for every algorithm.
#[test]
fn a_look_before_each_debit_ends() {
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, None);
        let mut used = 0;
        for _ in 0..60 {
            if look(&counter, at(0)).is_allowed() {
                debit(&mut counter, 7, at(0));
                used += 7;
            }
        }
        assert_eq!(used, 21, "{algorithm:?}");
        let denied = look(&counter, at(0));
        let then = at(0).plus(wait(&denied));
        assert!(look(&counter, then).is_allowed(), "{algorithm:?}");
        let early = Time::from_nanos(then.nanos() - 1);
        assert!(!look(&counter, early).is_allowed(), "{algorithm:?}");
    }
}

/// A debit of 25 at 20 a minute: the debt is repaid before anything else, or forgotten at the edge.
#[test]
fn debt_is_repaid_as_the_algorithm_has_it() {
    let expected = [
        // Six tokens of three seconds each: five of debt, and the one asked for.
        (bucket(Refill::Continuous), Duration::from_secs(18)),
        (bucket(Refill::Interval), MINUTE),
        (Algorithm::FixedWindow, MINUTE),
        (Algorithm::SlidingLog { log_refused: false }, MINUTE),
    ];
    for (algorithm, expected) in expected {
        let mut counter = counter(algorithm, None);
        let denied = debit(&mut counter, 25, at(0));
        assert_eq!(wait(&denied), expected, "{algorithm:?}");
        assert_eq!(denied.remaining, 0, "{algorithm:?}");
        let later = look(&counter, at(60));
        assert_eq!(
            later.remaining,
            if algorithm == bucket(Refill::Continuous) {
                15
            } else {
                20
            }
        );
    }
}

#[test]
fn debt_is_bounded() {
    for (max_debt, expected) in [(Some(0), 3), (Some(10), 33), (None, 63)] {
        let mut counter = counter(bucket(Refill::Continuous), max_debt);
        for _ in 0..3 {
            debit(&mut counter, u64::MAX, at(0));
        }
        assert_eq!(wait(&look(&counter, at(0))), Duration::from_secs(expected));
    }
}

#[test]
fn a_refund_repays() {
    for algorithm in every_algorithm() {
        let mut counter = counter(algorithm, None);
        debit(&mut counter, 20, at(0));
        debit(&mut counter, 7, at(0));
        counter.refund(7, RefundTo::Current, at(0));
        // A log forgot the oldest seven for the newest.
        let forgets = matches!(algorithm, Algorithm::SlidingLog { .. });
        assert_eq!(look(&counter, at(0)).is_allowed(), forgets, "{algorithm:?}");
        counter.refund(1, RefundTo::Current, at(0));
        assert!(look(&counter, at(0)).is_allowed(), "{algorithm:?}");
    }
}

#[test]
fn a_queue_cannot_be_postpaid() {
    let queue = Algorithm::LeakyBucket { queue: None };
    assert_eq!(
        Quota::new(&spec(queue, None)),
        Err(QuotaError::PostpaidQueue)
    );
    let fixed = spec(Algorithm::FixedWindow, Some((1 << 56) + 1));
    assert_eq!(Quota::new(&fixed), Err(QuotaError::DebtTooLarge));
}
