//! What the contract says, case by case.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Outcome, Retry};

use super::Subject;
use super::bench::{
    ALGORITHMS, Bench, MINUTE, SLIDING_LOG, START, TOKEN_BUCKET, enforce, in_mode, key, per_minute,
    quota,
};
use crate::{Admission, Charging, Counter, ErrorKind, MAX_CHARGES, Mode};

/// All or none: one limit refuses, so none is charged, in whatever order they stand.
pub fn a_refused_request_charges_nothing<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (wide, tight) = (
            per_minute(5, algorithm),
            per_minute(1, Algorithm::FixedWindow),
        );
        let (ann, all) = (key(1, &["ann"]), key(2, &[]));
        bench.take(all, &tight, 1);
        for charges in [
            [enforce(ann, &wide, 2), enforce(all, &tight, 1)],
            [enforce(all, &tight, 1), enforce(ann, &wide, 2)],
        ] {
            let (admission, _) = bench.charge(&charges, Charging::AllOrNone);
            assert_eq!(admission, Admission::Refused);
        }
        let untouched = bench.peek(ann, &wide);
        assert_eq!(untouched.remaining, 5, "{algorithm:?}");
        assert_eq!(bench.list(10).len(), 1, "no counter for {algorithm:?}");
    }
}

/// All or none: what an admitting limit says remains, remains, for the request was not charged.
pub fn a_refused_request_reports_what_truly_remains<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (wide, none) = (
            per_minute(5, algorithm),
            per_minute(0, Algorithm::FixedWindow),
        );
        let ann = key(1, &["ann"]);
        bench.take(ann, &wide, 1);
        let looked = bench.peek(ann, &wide);
        let charges = [enforce(ann, &wide, 2), enforce(key(2, &[]), &none, 1)];
        let (_, decisions) = bench.charge(&charges, Charging::AllOrNone);
        assert!(decisions[0].is_allowed() && !decisions[1].is_allowed());
        assert_eq!(decisions[0].remaining, looked.remaining, "{algorithm:?}");
        assert_eq!(
            decisions[0].reset_after, looked.reset_after,
            "{algorithm:?}"
        );
        assert_eq!(bench.peek(ann, &wide), looked, "{algorithm:?}");
    }
}

/// All or none: of the quota limits one is enough, and those that refuse are not charged.
pub fn one_admitting_quota_limit_is_enough<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (five, one) = (
            per_minute(5, algorithm),
            per_minute(1, Algorithm::FixedWindow),
        );
        let (team, user) = (key(1, &["team"]), key(2, &["user"]));
        let charges = [
            in_mode(enforce(team, &five, 1), Mode::Quota),
            in_mode(enforce(user, &one, 1), Mode::Quota),
        ];
        let admitted = (0..7)
            .filter(|_| bench.charge(&charges, Charging::AllOrNone).0 == Admission::Admitted)
            .count();
        assert_eq!(
            admitted, 5,
            "{algorithm:?}: as long as one of the two admits"
        );
        assert_eq!(bench.peek(user, &one).remaining, 0);
    }
}

/// A shadow limit counts what passes and refuses nobody.
pub fn a_shadow_limit_refuses_nobody<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (five, many) = (
            per_minute(5, algorithm),
            per_minute(9, Algorithm::FixedWindow),
        );
        let charges = [
            in_mode(enforce(key(1, &["a"]), &five, 2), Mode::Shadow),
            enforce(key(2, &["a"]), &many, 2),
        ];
        let answers: Vec<_> = (0..5)
            .map(|_| {
                let (admission, decisions) = bench.charge(&charges, Charging::AllOrNone);
                (admission, decisions[0].is_allowed())
            })
            .collect();
        let (yes, no) = (Admission::Admitted, Admission::Refused);
        let expected = [
            (yes, true),
            (yes, true),
            (yes, false),
            (yes, false),
            (no, false),
        ];
        assert_eq!(answers, expected, "{algorithm:?}");
        assert_eq!(bench.peek(key(1, &["a"]), &five).remaining, 1);
    }
}

/// Every match: each limit is charged whatever the others say.
pub fn every_match_charges_each_limit_alone<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (five, none) = (
            per_minute(5, algorithm),
            per_minute(0, Algorithm::FixedWindow),
        );
        let charges = [
            enforce(key(1, &["a"]), &five, 2),
            enforce(key(2, &["a"]), &none, 1),
        ];
        let remaining: Vec<_> = (0..3)
            .map(|_| {
                let (admission, decisions) = bench.charge(&charges, Charging::EveryMatch);
                assert_eq!(admission, Admission::Refused);
                (decisions[0].is_allowed(), decisions[0].remaining)
            })
            .collect();
        let left = u64::from(algorithm != Algorithm::FixedWindow);
        assert_eq!(remaining[..2], [(true, 3), (true, 1)], "{algorithm:?}");
        assert!(!remaining[2].0, "{algorithm:?}");
        assert_eq!(bench.peek(key(1, &["a"]), &five).remaining, left);
    }
}

/// Every match: a fixed window counts its own refusals, as envoyproxy/ratelimit does.
pub fn every_match_counts_refusals_of_a_fixed_window<S: Subject>() {
    let mut bench = Bench::<S>::new();
    let (five, ann) = (per_minute(5, Algorithm::FixedWindow), key(1, &["ann"]));
    let ask = |bench: &Bench<S>, cost, charging| {
        let (_, decisions) = bench.charge(&[enforce(ann, &five, cost)], charging);
        decisions[0].is_allowed()
    };
    assert!(ask(&bench, 3, Charging::EveryMatch));
    assert!(!ask(&bench, 3, Charging::EveryMatch), "3 + 3 do not fit");
    assert!(!ask(&bench, 1, Charging::EveryMatch), "but were counted");
    bench.advance(MINUTE);
    assert!(ask(&bench, 3, Charging::AllOrNone));
    assert!(!ask(&bench, 3, Charging::AllOrNone));
    assert!(ask(&bench, 2, Charging::AllOrNone), "nothing was counted");
}

/// A counter that a request names twice is asked for the sum.
pub fn a_counter_named_twice_adds_up<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let five = per_minute(5, algorithm);
        let ask = |key, costs: [u64; 2]| {
            let charges = costs.map(|cost| enforce(key, &five, cost));
            let (admission, decisions) = bench.charge(&charges, Charging::AllOrNone);
            let denied = decisions.iter().filter(|it| !it.is_allowed()).count();
            (admission, denied, decisions[1])
        };
        let (yes, no) = (Admission::Admitted, Admission::Refused);
        let (admission, denied, second) = ask(key(1, &["a"]), [2, 3]);
        assert_eq!((admission, denied, second.remaining), (yes, 0, 0));
        let (admission, denied, second) = ask(key(1, &["b"]), [3, 3]);
        assert_eq!((admission, denied), (no, 1), "{algorithm:?}");
        let retry = Retry::Never;
        assert_eq!(second.outcome, Outcome::Denied { retry }, "6 never fit 5");
        assert_eq!(bench.peek(key(1, &["b"]), &five).remaining, 5);
    }
}

/// A counter that a request names twice, with two numbers, is held to each: overrides may do so.
pub fn a_counter_named_twice_keeps_to_both_numbers<S: Subject>() {
    for (first, second) in [
        (3, 1),
        (1, 3),
        (1, u64::from(u32::MAX)),
        (u64::from(u32::MAX), 1),
    ] {
        let bench = Bench::<S>::new();
        let quotas = [first, second].map(|limit| per_minute(limit, Algorithm::FixedWindow));
        let charges = quotas
            .each_ref()
            .map(|quota| enforce(key(1, &["a"]), quota, 1));
        let (admission, decisions) = bench.charge(&charges, Charging::EveryMatch);
        let allowed: Vec<bool> = decisions.iter().map(Decision::is_allowed).collect();
        // The first is the first hit, the second is the second one.
        assert_eq!(allowed, [true, second >= 2], "{first}, {second}");
        let is_admitted = admission == Admission::Admitted;
        assert_eq!(is_admitted, second >= 2, "{first}, {second}");
        let largest = per_minute(first.max(second), Algorithm::FixedWindow);
        let left = bench.peek(key(1, &["a"]), &largest).remaining;
        assert_eq!(left, first.max(second) - 2, "both were counted");
    }
}

/// A look answers like a charge and leaves no trace: no counter, no count.
pub fn a_look_changes_and_creates_nothing<S: Subject>() {
    for algorithm in ALGORITHMS {
        let mut bench = Bench::<S>::new();
        let (five, ann) = (per_minute(5, algorithm), key(1, &["ann"]));
        assert_eq!(bench.peek(ann, &five).remaining, 5, "{algorithm:?}");
        assert_eq!(bench.take(ann, &five, 0).remaining, 5, "cost 0 is a look");
        assert_eq!(bench.list(10), [], "{algorithm:?}");
        bench.take(ann, &five, 3);
        bench.advance(Duration::from_secs(1));
        let (before, looked) = (bench.list(10), bench.peek(ann, &five));
        assert_eq!(bench.peek(ann, &five), looked);
        assert_eq!(bench.take(ann, &five, 0), looked);
        assert_eq!(bench.list(10), before);
        assert_eq!(looked.remaining, bench.take(ann, &five, 1).remaining + 1);
        // A look that finds more used than a lowered limit admits is refused, and no offence.
        let (before, two) = (bench.list(10), per_minute(2, algorithm));
        bench.peek(ann, &two);
        assert_eq!(bench.list(10), before, "{algorithm:?}");
    }
}

/// A refund makes room for so much more, and never for more than the whole quota.
pub fn a_refund_gives_back_no_more_than_was_taken<S: Subject>() {
    for algorithm in ALGORITHMS {
        let bench = Bench::<S>::new();
        let (five, ann) = (per_minute(5, algorithm), key(1, &["ann"]));
        bench.refund(ann, &five, 3);
        assert_eq!(bench.list(10), [], "{algorithm:?}");
        bench.take(ann, &five, 5);
        assert!(!bench.take(ann, &five, 1).is_allowed());
        bench.refund(ann, &five, 2);
        assert_eq!(bench.peek(ann, &five).remaining, 2, "{algorithm:?}");
        assert!(bench.take(ann, &five, 2).is_allowed());
        bench.refund(ann, &five, u64::MAX);
        assert_eq!(bench.peek(ann, &five).remaining, 5, "{algorithm:?}");
        assert!(!bench.take(ann, &five, 6).is_allowed());
    }
}

/// A reset forgets one counter, says whether there was one, and touches no other.
pub fn a_reset_forgets_one_counter<S: Subject>() {
    for algorithm in ALGORITHMS {
        let mut bench = Bench::<S>::new();
        let five = per_minute(5, algorithm);
        let (ann, bob) = (key(1, &["ann"]), key(1, &["bob"]));
        assert!(!bench.reset(ann, &five), "{algorithm:?}: there is none");
        bench.take(ann, &five, 5);
        bench.take(bob, &five, 5);
        assert!(bench.reset(ann, &five), "{algorithm:?}");
        assert!(!bench.reset(ann, &five), "{algorithm:?}: only once");
        assert_eq!(bench.peek(ann, &five).remaining, 5);
        assert_eq!(bench.peek(bob, &five).remaining, 0);
        bench.advance(3 * MINUTE);
        assert!(!bench.reset(bob, &five), "{algorithm:?}: it has expired");
    }
}

/// The time that a store tells is the one that it decides by.
pub fn the_time_is_the_one_that_decides<S: Subject>() {
    let mut bench = Bench::<S>::new();
    assert_eq!(bench.time(), START);
    bench.advance(MINUTE);
    assert_eq!(bench.time(), START.plus(MINUTE));
}

/// A list, by pages of any size, shows each live counter once, with its window and, if the store remembers it, its last outcome.
pub fn a_list_shows_each_live_counter_once<S: Subject>() {
    for algorithm in ALGORITHMS {
        let mut bench = Bench::<S>::new();
        let five = per_minute(5, algorithm);
        let names: Vec<String> = (0..40).map(|n| format!("caller {n}")).collect();
        for (n, name) in names.iter().enumerate() {
            bench.take(key(1, &[name]), &five, if n < 10 { 5 } else { 1 });
            bench.take(key(1, &[name]), &five, 1);
        }
        for most in [1, 7, 100] {
            let mut counters = bench.list(most);
            assert_eq!(counters.len(), 40, "{algorithm:?}, about {most} a page");
            let is_sound = |it: &Counter| it.window == MINUTE && it.expires_after <= 2 * MINUTE;
            assert!(counters.iter().all(is_sound), "{algorithm:?}");
            let remembered = counters.iter().filter(|it| it.refused.is_some()).count();
            assert!([0, 40].contains(&remembered), "{algorithm:?}: {remembered}");
            if remembered > 0 {
                assert_eq!(
                    counters
                        .iter()
                        .filter(|it| it.refused == Some(true))
                        .count(),
                    10
                );
            }
            counters.dedup_by_key(|counter| counter.fingerprint);
            assert_eq!(counters.len(), 40, "{algorithm:?}");
        }
        bench.advance(3 * MINUTE);
        assert_eq!(bench.list(100), [], "{algorithm:?}: all have expired");
    }
}

/// Values are compared one by one, never as joined text.
pub fn keys_are_structured<S: Subject>() {
    let bench = Bench::<S>::new();
    let one = per_minute(1, Algorithm::FixedWindow);
    let long = "x".repeat(300);
    let callers: [&[&str]; 13] = [
        &[],
        &[""],
        &["", ""],
        &["abc"],
        &["a", "bc"],
        &["ab", "c"],
        &["a", "b", "c"],
        &["abc", ""],
        &["", "abc"],
        &["a_b", "c"],
        &["a", "b_c"],
        &[&long, "y"],
        &[&long[1..], "xy"],
    ];
    for caller in callers {
        assert!(
            bench.take(key(1, caller), &one, 1).is_allowed(),
            "{caller:?}"
        );
    }
    for caller in callers {
        assert!(
            !bench.take(key(1, caller), &one, 1).is_allowed(),
            "{caller:?}"
        );
    }
}

/// The same caller under another limit, algorithm or window is another counter.
pub fn limits_and_windows_have_counters_of_their_own<S: Subject>() {
    let bench = Bench::<S>::new();
    let hourly = |algorithm| {
        quota(&tidegate_algorithms::QuotaSpec {
            limit: 1,
            window: 60 * MINUTE,
            algorithm,
            allowance: tidegate_algorithms::Allowance::Hard,
        })
    };
    for algorithm in [Algorithm::FixedWindow, TOKEN_BUCKET, SLIDING_LOG] {
        // The identities a compiled rule would have: the algorithm is part of them.
        let base = algorithm.name().len() as u128 * 1_000;
        for limit in [base, base + 1, base + (1 << 64), base + (1 << 127)] {
            for quota in [per_minute(1, algorithm), hourly(algorithm)] {
                let counter = key(limit, &["ann"]);
                assert!(
                    bench.take(counter, &quota, 1).is_allowed(),
                    "{limit} {quota:?}"
                );
                assert!(!bench.take(counter, &quota, 1).is_allowed());
            }
        }
    }
}

/// One request charges up to [`MAX_CHARGES`] limits together; more is an error, and charges none.
pub fn too_many_charges_are_an_error<S: Subject>() {
    let bench = Bench::<S>::new();
    let one = per_minute(1, Algorithm::FixedWindow);
    let charges: Vec<_> = (0..=MAX_CHARGES as u128)
        .map(|limit| enforce(key(limit, &["ann"]), &one, 1))
        .collect();
    let error = bench
        .try_charge(&charges, Charging::AllOrNone)
        .expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(bench.list(100), []);
    let (admission, _) = bench.charge(&charges[1..], Charging::AllOrNone);
    assert_eq!(admission, Admission::Admitted);
    assert_eq!(bench.list(100).len(), MAX_CHARGES);
}

/// A request without limits is admitted.
pub fn no_charges_are_admitted<S: Subject>() {
    let bench = Bench::<S>::new();
    for charging in [Charging::AllOrNone, Charging::EveryMatch] {
        assert_eq!(bench.charge(&[], charging).0, Admission::Admitted);
    }
}
