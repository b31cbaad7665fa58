use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill, Rounding};

use super::*;

fn quota(algorithm: Algorithm) -> Quota {
    let spec = QuotaSpec {
        limit: 5,
        window: Duration::from_mins(1),
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("valid")
}

fn read(algorithm: Algorithm, text: &str) -> Option<Told> {
    Told::read(text.as_bytes(), &quota(algorithm))
}

fn bucket() -> Algorithm {
    let (burst, refill) = (None, Refill::Continuous);
    Algorithm::TokenBucket { burst, refill }
}

fn counter(sub_windows: u16) -> Algorithm {
    let rounding = Rounding::Down;
    Algorithm::SlidingCounter {
        sub_windows,
        rounding,
    }
}

#[test]
fn a_time_is_seconds_and_microseconds() {
    assert_eq!(time(b"12.5"), Some(Time::from_micros(12_000_005)));
    for junk in [
        "",
        "12",
        "12.",
        ".5",
        "12.x",
        "-1.0",
        "99999999999999999999.0",
    ] {
        assert_eq!(time(junk.as_bytes()), None, "{junk}");
    }
}

#[test]
fn a_bucket_has_nanoseconds_ticks_and_marks() {
    let told = |nanos: u64, ticks: u64, soft_period| Told {
        state: State::TokenBucket(token_bucket::State {
            tat: Ticks((u128::from(nanos) << 32) | u128::from(ticks)),
        }),
        soft_period,
    };
    let later = 61_000_000_000;
    let period = SoftPeriod::from_parts(59_000_000, 12);
    for (text, expected) in [
        ("", told(0, 0, None)),
        ("61000000000", told(later, 0, None)),
        ("-61000000000", told(later, 0, None)),
        ("61000000000:7", told(later, 7, None)),
        ("-61000000000:7@590000000012", told(later, 7, period)),
        // No step is that large.
        ("61000000000@590000009999", told(later, 0, None)),
    ] {
        assert_eq!(read(bucket(), text), Some(expected), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_not_read() {
    let log = Algorithm::SlidingLog { log_refused: false };
    for (algorithm, junk) in [
        (bucket(), "x"),
        (bucket(), "1:2:3"),
        (Algorithm::FixedWindow, "1:x"),
        (counter(1), "1:2:3:4"),
        (log, "x"),
        (log, "3"),
        (log, "3 10 -1 0"),
        (counter(12), "3 x -1"),
        (counter(12), "3 4 -1 5"),
    ] {
        assert_eq!(read(algorithm, junk), None, "{junk}");
    }
    assert_eq!(Told::read(b"\xff", &quota(bucket())), None);
}
