//! Numbers at the edges: wide limits, long idleness, strange costs, allowances.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, Retry,
    Standing, Time,
};

use super::Subject;
use super::bench::{
    ALGORITHMS, Bench, MINUTE, START, TOKEN_BUCKET, enforce, key, per_minute, quota,
};
use crate::{Admission, Charge, Charging};

const TEN_YEARS: Duration = Duration::from_hours(3_653 * 24);

/// A look at a full limit is denied for as long as a request of cost 1 is.
pub fn a_look_is_denied_until_a_cost_of_1_fits<S: Subject>() {
    for algorithm in ALGORITHMS {
        let mut bench = Bench::<S>::new();
        let (five, ann) = (per_minute(5, algorithm), key(1, &["ann"]));
        bench.advance(Duration::from_secs(7));
        let capacity = bench.peek(ann, &five).limit;
        assert!(bench.peek(ann, &five).is_allowed(), "{algorithm:?}");
        for _ in 0..capacity {
            assert!(bench.take(ann, &five, 1).is_allowed(), "{algorithm:?}");
        }
        let looked = bench.peek(ann, &five);
        let Outcome::Denied {
            retry: Retry::After(wait),
        } = looked.outcome
        else {
            panic!("{algorithm:?}: {looked:?}");
        };
        // In whole microseconds, which every store can tell apart.
        let moment = Duration::from_micros(1);
        let micros = wait.as_nanos().div_ceil(moment.as_nanos());
        let just_before = u64::try_from(micros - 1).expect("a minute at most");
        bench.advance(Duration::from_micros(just_before));
        assert!(!bench.peek(ann, &five).is_allowed(), "{algorithm:?}");
        bench.advance(moment);
        assert!(bench.peek(ann, &five).is_allowed(), "{algorithm:?}");
        assert!(bench.take(ann, &five, 1).is_allowed(), "{algorithm:?}");
        let none = per_minute(0, algorithm);
        let never = bench.peek(key(2, &["bob"]), &none).outcome;
        let retry = Retry::Never;
        assert_eq!(never, Outcome::Denied { retry }, "{algorithm:?}");
    }
}

/// A look that names the counter of a debit in the same request is allowed if the debit is, whatever the most debt.
pub fn a_look_beside_a_debit_fits_if_the_debit_does<S: Subject>() {
    for algorithm in ALGORITHMS {
        for max_debt in [Some(0), Some(3), None] {
            let five = Quota::new(&QuotaSpec {
                limit: 5,
                window: MINUTE,
                algorithm,
                allowance: Allowance::Postpaid { max_debt },
            });
            // A leaky bucket cannot be postpaid.
            let Ok(five) = five else { continue };
            for (cost, fits) in [(5, true), (7, false)] {
                let bench = Bench::<S>::new();
                let ann = key(1, &["ann"]);
                let charges = [enforce(ann, &five, cost), enforce(ann, &five, 0)];
                let (_, decisions) = bench.charge(&charges, Charging::AllOrNone);
                let is_allowed = [0, 1].map(|n: usize| decisions[n].is_allowed());
                assert_eq!(is_allowed, [fits; 2], "{cost}: {algorithm:?}, {max_debt:?}");
                assert!(!bench.peek(ann, &five).is_allowed(), "{algorithm:?}");
            }
        }
    }
}

/// A limit raised beyond what its counter had room for goes on from the old count; lowered again,
/// it refuses what was admitted above it.
pub fn a_wider_limit_goes_on_from_the_old_count<S: Subject>() {
    for (narrow, wide, algorithm) in [
        (10, 40_000_000_000, Algorithm::FixedWindow),
        (10, 40_000_000_000, ALGORITHMS[5]),
        (10, 40_000_000_000, ALGORITHMS[6]),
        (10, 40_000_000_000, ALGORITHMS[1]),
        // 1.5 ns each: no whole number of nanoseconds.
        (10, 40_000_000_000, TOKEN_BUCKET),
        (10, 200, ALGORITHMS[4]),
    ] {
        let bench = Bench::<S>::new();
        let ann = key(1, &["ann"]);
        let (narrow, wide) = (per_minute(narrow, algorithm), per_minute(wide, algorithm));
        bench.take(ann, &narrow, 5);
        let listed = bench.list(10);
        bench.take(ann, &wide, u64::MAX);
        assert_eq!(
            listed.len(),
            bench.list(10).len(),
            "{algorithm:?}: and lives on"
        );
        let before = bench.peek(ann, &wide).remaining;
        assert!(before < wide.limit(), "{algorithm:?}: the old count counts");
        let after = bench.take(ann, &wide, 100);
        assert_eq!(after.remaining, before - 100, "{algorithm:?}");
        // To a bucket a request of the wide limit is a moment of the narrow one.
        let is_refused = !bench.take(ann, &narrow, 1).is_allowed();
        assert!(is_refused || algorithm == TOKEN_BUCKET, "{algorithm:?}");
    }
}

/// A clock that steps back finds the window that is ahead of it, and forwards again the same.
pub fn a_window_ahead_of_the_clock_stands<S: Subject>() {
    for algorithm in ALGORITHMS {
        let mut bench = Bench::<S>::new();
        let (five, ann) = (per_minute(5, algorithm), key(1, &["ann"]));
        bench.take(ann, &five, 5);
        for back in [1, 59, 61, 3_600] {
            bench.set_time(Time::from_nanos(START.nanos() - back * 1_000_000_000));
            assert!(
                !bench.take(ann, &five, 1).is_allowed(),
                "{back} s back, {algorithm:?}"
            );
        }
        bench.set_time(START);
        if !matches!(algorithm, Algorithm::LeakyBucket { .. }) && algorithm != TOKEN_BUCKET {
            // A bucket ahead by more than its capacity counts as used up when it was seen.
            assert!(!bench.take(ann, &five, 1).is_allowed(), "{algorithm:?}");
        }
        bench.advance(2 * MINUTE);
        assert!(bench.take(ann, &five, 5).is_allowed(), "{algorithm:?}");
    }
}

/// Ten years later a counter is as good as new, and no index or instant has come round.
pub fn nothing_wraps_in_ten_years_of_idleness<S: Subject>() {
    let windows = [Duration::from_millis(1), MINUTE, Duration::from_hours(24)];
    for (window, algorithm) in windows.iter().flat_map(|&it| ALGORITHMS.map(|a| (it, a))) {
        let five = quota(&QuotaSpec {
            limit: 5,
            window,
            algorithm,
            allowance: Allowance::Hard,
        });
        if !S::fits(&five) {
            continue;
        }
        let ann = key(1, &["ann"]);
        // Sub-windows of a millisecond have an index of their own length.
        for powers in [
            TEN_YEARS,
            TEN_YEARS * 2,
            window * (1 << 20),
            window * (1 << 16),
        ] {
            let mut bench = Bench::<S>::new();
            bench.take(ann, &five, 5);
            assert!(!bench.take(ann, &five, 1).is_allowed());
            bench.advance(powers.min(TEN_YEARS * 5));
            assert_eq!(
                bench.peek(ann, &five).remaining,
                5,
                "{algorithm:?} {window:?}"
            );
            assert!(bench.take(ann, &five, 5).is_allowed());
            assert!(!bench.take(ann, &five, 1).is_allowed(), "{algorithm:?}");
        }
    }
}

/// The textbook's log at 2 a minute: 1:00:01, 1:00:30, 1:00:50 (refused, and kept), 1:01:40.
pub fn a_log_may_remember_refusals<S: Subject>() {
    let seconds = |n: u64| Duration::from_secs(n);
    for log_refused in [true, false] {
        let mut bench = Bench::<S>::new();
        let two = per_minute(2, Algorithm::SlidingLog { log_refused });
        let ann = key(1, &["ann"]);
        let answers = [1, 30, 50, 100].map(|at| {
            bench.set_time(START.plus(seconds(at)));
            bench.take(ann, &two, 1).is_allowed()
        });
        assert_eq!(answers, [true, true, false, true]);
        // At 1:01:40 the log holds the refused one of 1:00:50 and itself, or itself alone.
        let remaining = bench.peek(ann, &two).remaining;
        assert_eq!(remaining, u64::from(!log_refused));
    }
}

/// A request that is refused as a whole does not start the time that a soft limit has.
pub fn a_refused_request_is_over_no_limit<S: Subject>() {
    let mut bench = Bench::<S>::new();
    let soft = quota(&QuotaSpec {
        limit: 1,
        window: MINUTE,
        algorithm: Algorithm::SlidingLog { log_refused: true },
        allowance: Allowance::Soft {
            over: Percent(100),
            only_for: Some(Duration::from_secs(10)),
        },
    });
    let ann = key(1, &["ann"]);
    bench.take(ann, &soft, 1);
    bench.advance(Duration::from_secs(30));
    // The first of the two is admitted over the limit, the second is not, so neither is charged; but
    // the log remembers the second.
    let twice = [enforce(ann, &soft, 1), enforce(ann, &soft, 1)];
    let (admission, _) = bench.charge(&twice, Charging::AllOrNone);
    assert_eq!(admission, Admission::Refused);
    bench.advance(Duration::from_secs(45));
    assert_eq!(standing(bench.take(ann, &soft, 1)), Some(Standing::Over));
}

/// 100 a minute and 10 % over, for 10 s: then hard, until a minute has passed without a request above the limit.
pub fn a_soft_limit_hardens_after_its_time<S: Subject>() {
    let grain = Duration::from_nanos(S::grain());
    let mut bench = Bench::<S>::new();
    let soft = quota(&QuotaSpec {
        limit: 100,
        window: MINUTE,
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Soft {
            over: Percent(10),
            only_for: Some(Duration::from_secs(10)),
        },
    });
    let ann = key(1, &["ann"]);
    assert_eq!(
        standing(bench.take(ann, &soft, 100)),
        Some(Standing::Within)
    );
    assert_eq!(standing(bench.take(ann, &soft, 5)), Some(Standing::Over));
    bench.advance(Duration::from_secs(10).saturating_sub(grain));
    assert_eq!(standing(bench.take(ann, &soft, 1)), Some(Standing::Over));
    bench.advance(grain);
    assert_eq!(
        standing(bench.take(ann, &soft, 1)),
        None,
        "its time is over"
    );
    bench.advance(Duration::from_secs(50));
    assert_eq!(
        standing(bench.take(ann, &soft, 100)),
        Some(Standing::Within)
    );
    assert_eq!(standing(bench.take(ann, &soft, 10)), None, "it is hard");
    // A minute after that denial.
    bench.advance(MINUTE);
    assert_eq!(
        standing(bench.take(ann, &soft, 100)),
        Some(Standing::Within)
    );
    assert_eq!(standing(bench.take(ann, &soft, 10)), Some(Standing::Over));
    assert_eq!(standing(bench.take(ann, &soft, 1)), None);
}

/// 20 a minute and 50 % over, for 30 s, asked every 1.4 s for four minutes: soft for 30 s, and from the third minute on
/// as a hard limit.
pub fn soft_for_ends_under_steady_load<S: Subject>() {
    let soft = Allowance::Soft {
        over: Percent(50),
        only_for: Some(Duration::from_secs(30)),
    };
    for algorithm in ALGORITHMS {
        let [(hard, _), (soft, over)] = [Allowance::Hard, soft].map(|allowance| {
            steady_load::<S>(&quota(&QuotaSpec {
                limit: 20,
                window: MINUTE,
                algorithm,
                allowance,
            }))
        });
        assert!(over.len() >= 2, "{algorithm:?}");
        let lasted = over[over.len() - 1].saturating_sub(over[0]);
        assert!(lasted < Duration::from_secs(30), "{algorithm:?}: {over:?}");
        assert_eq!(soft[2..], hard[2..], "{algorithm:?}");
    }
}

/// How many are allowed in each minute, and when those were that are over the limit.
fn steady_load<S: Subject>(limit: &Quota) -> ([u32; 4], Vec<Duration>) {
    let mut bench = Bench::<S>::new();
    let (mut allowed, mut over) = ([0; 4], Vec::new());
    for request in 0..171_u64 {
        let since = Duration::from_millis(request * 1_400);
        bench.set_time(START.plus(since));
        let standing = standing(bench.take(key(1, &["ann"]), limit, 1));
        let minute = usize::try_from(since.as_secs() / 60).expect("four minutes");
        allowed[minute] += u32::from(standing.is_some());
        if standing == Some(Standing::Over) {
            over.push(since);
        }
    }
    (allowed, over)
}

/// An elastic limit stretches only while the caller says there is headroom.
pub fn an_elastic_limit_stretches_with_headroom<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let elastic = quota(&QuotaSpec {
            limit: 5,
            window: MINUTE,
            algorithm,
            allowance: Allowance::Elastic { over: Percent(20) },
        });
        let ask = |headroom| {
            let charge = enforce(key(1, &["ann"]), &elastic, 1);
            let charge = Charge { headroom, ..charge };
            standing(bench.charge(&[charge], Charging::AllOrNone).1[0])
        };
        for _ in 0..5 {
            assert_eq!(ask(Headroom::Absent), Some(Standing::Within));
        }
        assert_eq!(ask(Headroom::Absent), None, "{algorithm:?}");
        assert_eq!(ask(Headroom::Available), Some(Standing::Over));
        assert_eq!(
            ask(Headroom::Available),
            None,
            "{algorithm:?}: 20 % are one"
        );
    }
}

/// A bucket for one token is a pace: one at a time, the next after a full interval.
pub fn a_burst_of_one_admits_one_at_a_time<S: Subject>() {
    let grain = Duration::from_nanos(S::grain());
    let mut bench = Bench::<S>::new();
    let burst = Some(1);
    let refill = Refill::Continuous;
    let paced = per_minute(60, Algorithm::TokenBucket { burst, refill });
    let ann = key(1, &["ann"]);
    for _ in 0..3 {
        assert!(bench.take(ann, &paced, 1).is_allowed());
        let refused = bench.take(ann, &paced, 1);
        let retry = Retry::After(Duration::from_secs(1));
        assert_eq!(refused.outcome, Outcome::Denied { retry });
        bench.advance(Duration::from_secs(1).saturating_sub(grain));
        assert!(!bench.take(ann, &paced, 1).is_allowed());
        bench.advance(grain);
    }
}

/// A limit of 0 refuses everything, says so for ever, and needs no memory for it.
pub fn a_limit_of_zero_refuses_for_ever<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let none: Quota = per_minute(0, algorithm);
        for cost in [1, u64::MAX] {
            let refused = bench.take(key(1, &["ann"]), &none, cost);
            let retry = Retry::Never;
            assert_eq!(refused.outcome, Outcome::Denied { retry }, "{algorithm:?}");
            assert_eq!((refused.limit, refused.remaining), (0, 0));
        }
        assert!(
            bench.take(key(1, &["ann"]), &none, 0).is_allowed(),
            "a look"
        );
        assert_eq!(bench.list(10), [], "{algorithm:?}");
    }
}

/// A cost above the limit never fits, whatever it is, and is not charged.
pub fn a_cost_above_the_limit_never_fits<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (five, ann) = (per_minute(5, algorithm), key(1, &["ann"]));
        for cost in [6, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let refused = bench.take(ann, &five, cost);
            let retry = Retry::Never;
            assert_eq!(refused.outcome, Outcome::Denied { retry }, "{algorithm:?}");
        }
        assert_eq!(bench.take(ann, &five, 4).remaining, 1, "{algorithm:?}");
        assert!(!bench.take(ann, &five, u64::MAX).is_allowed());
        assert!(bench.take(ann, &five, 1).is_allowed(), "{algorithm:?}");
    }
}

fn standing(decision: Decision) -> Option<Standing> {
    match decision.outcome {
        Outcome::Allowed { standing, .. } => Some(standing),
        Outcome::Denied { .. } => None,
    }
}
