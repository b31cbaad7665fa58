use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Percent, Quota, QuotaSpec, Refill, Rounding};
use tidegate_store::Unfit;

use super::fits;

const MINUTE: Duration = Duration::from_mins(1);

fn check(
    limit: u64,
    window: Duration,
    algorithm: Algorithm,
    allowance: Allowance,
    expected: Result<(), Unfit>,
) {
    let spec = QuotaSpec {
        limit,
        window,
        algorithm,
        allowance,
    };
    let quota = Quota::new(&spec).expect("valid");
    assert_eq!(fits(&quota), expected, "{spec:?}");
}

#[test]
fn windows_are_whole_microseconds() {
    let odd = Duration::from_nanos(1_000_001);
    let (hard, grain) = (Allowance::Hard, Err(Unfit::Grain));
    check(5, odd, Algorithm::FixedWindow, hard, grain);
    check(
        5,
        odd + Duration::from_nanos(999),
        Algorithm::FixedWindow,
        hard,
        Ok(()),
    );
    // A seventh of a minute is no whole number of them.
    for (sub_windows, expected) in [(1, Ok(())), (12, Ok(())), (7, grain)] {
        let rounding = Rounding::Down;
        let counter = Algorithm::SlidingCounter {
            sub_windows,
            rounding,
        };
        check(5, MINUTE, counter, hard, expected);
    }
}

#[test]
fn buckets_and_logs_take_any_window() {
    let odd = Duration::from_nanos(1_000_001);
    let (burst, refill) = (None, Refill::Continuous);
    for algorithm in [
        Algorithm::TokenBucket { burst, refill },
        Algorithm::LeakyBucket { queue: None },
        Algorithm::SlidingLog { log_refused: false },
    ] {
        check(5, odd, algorithm, Allowance::Hard, Ok(()));
    }
}

#[test]
fn counts_with_their_extra_stay_below_2_to_the_53() {
    let (fixed, hard) = (Algorithm::FixedWindow, Allowance::Hard);
    let over = Percent(100);
    let doubled = Allowance::Elastic { over };
    let too_many = Err(Unfit::Magnitude);
    check((1 << 53) - 1, MINUTE, fixed, hard, Ok(()));
    check(1 << 53, MINUTE, fixed, hard, too_many);
    check((1 << 52) - 1, MINUTE, fixed, doubled, Ok(()));
    check(1 << 52, MINUTE, fixed, doubled, too_many);
    let (burst, refill) = (Some(1 << 53), Refill::Interval);
    let bucket = Algorithm::TokenBucket { burst, refill };
    check(1 << 40, MINUTE, bucket, hard, too_many);
}
