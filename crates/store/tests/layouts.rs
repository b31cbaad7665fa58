//! Reloads with ever other windows: the numbers of layouts that are gone are used again.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, Refill, RefundTo, Rounding, Time,
};
use tidegate_store::{
    Admission, Charge, Charging, Clock as _, Consistency, CounterKey, Decisions, EmbeddedStore,
    LimitId, ManualClock, Mode, OldCounters, OnFull, Store as _, StoreConfig, StoreError,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Pairs of algorithm and window that the store tells apart.
const LAYOUTS: u64 = 1_022;

/// One of each kind, but for the buckets whose state is an instant.
const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::FixedWindow,
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 6,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingLog { log_refused: false },
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    },
];

fn store() -> EmbeddedStore<ManualClock> {
    let config = StoreConfig {
        max_memory: 1 << 20,
    };
    EmbeddedStore::with_clock(config, ManualClock::at(START))
}

/// 2 in so many milliseconds.
fn quota(millis: u64, algorithm: Algorithm) -> Quota {
    quota_of(2, millis, algorithm)
}

fn quota_of(limit: u64, millis: u64, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_millis(millis),
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

fn windows(millis: std::ops::Range<u64>) -> Vec<Quota> {
    millis.map(|it| quota(it, Algorithm::FixedWindow)).collect()
}

fn reserve(store: &EmbeddedStore<ManualClock>, quotas: &[Quota]) -> Result<(), StoreError> {
    reserve_with(store, quotas, OldCounters::Keep)
}

fn reserve_with(
    store: &EmbeddedStore<ManualClock>,
    quotas: &[Quota],
    old: OldCounters,
) -> Result<(), StoreError> {
    let mut limits = quotas.iter().map(|quota| (quota, Consistency::Strict));
    store.reserve(&mut limits, old)
}

fn charge(
    store: &EmbeddedStore<ManualClock>,
    caller: &str,
    quota: &Quota,
) -> Result<Decision, StoreError> {
    let (values, mut decisions) = ([caller], Decisions::new());
    let charge = charge_of(&values, quota);
    store.charge_now(&[charge], Charging::AllOrNone, &mut decisions)?;
    Ok(decisions[0])
}

fn charge_of<'a>(values: &'a [&'a str], quota: &'a Quota) -> Charge<'a> {
    Charge {
        key: CounterKey {
            limit: LimitId(1),
            values,
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    }
}

/// Counters of as many windows as there are numbers, each of another caller, because the layout of a key does not choose
/// its set.
fn use_all_numbers(store: &EmbeddedStore<ManualClock>) {
    for quota in windows(100_000..100_000 + LAYOUTS) {
        charge(store, &format!("{:?}", quota.window()), &quota).expect("counted");
    }
}

/// However often rules with other windows are loaded, each limit counts.
#[test]
fn windows_of_rules_that_are_gone_are_used_again() {
    let store = store();
    for reload in 0..20 {
        let first = 1_000 + reload * 500;
        let quotas = windows(first..first + 500);
        reserve(&store, &quotas).expect("room for those in use");
        for quota in &quotas {
            // Another caller for each, because the layout of a key does not choose its set.
            let caller = format!("{:?}", quota.window());
            let ask = |()| {
                charge(&store, &caller, quota)
                    .expect("counted")
                    .is_allowed()
            };
            assert_eq!([(); 3].map(ask), [true, true, false], "{caller}");
        }
        store.clock().advance(Duration::from_mins(1));
    }
}

/// The same when nobody reserved anything: a request finds a number for its limit.
#[test]
fn a_request_finds_a_number() {
    let store = store();
    for millis in 1_000..4_000 {
        let quota = quota(millis, Algorithm::FixedWindow);
        let allowed =
            [(); 3].map(|()| charge(&store, "ann", &quota).expect("counted").is_allowed());
        assert_eq!(allowed, [true, true, false], "{millis} ms");
        store.clock().advance(Duration::from_secs(1));
    }
}

/// A number that a live counter names is kept, so that no state is read as that of another layout;
/// rules that would need it are rejected, and nothing changes.
#[test]
fn a_number_of_a_live_counter_is_kept() {
    let store = store();
    let day = 24 * 3_600_000;
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: false },
    ] {
        charge(&store, "ann", &quota(day, algorithm)).expect("counted");
        charge(&store, "ann", &quota(day, algorithm)).expect("counted");
    }
    let error = || Err(StoreError::TooManyWindows { most: 1_022 });
    assert_eq!(reserve(&store, &windows(1_000..1_000 + LAYOUTS)), error());
    assert_eq!(
        reserve(&store, &windows(5_000..5_000 + LAYOUTS - 1)),
        error()
    );
    reserve(&store, &windows(9_000..9_000 + LAYOUTS - 2)).expect("two are in use");
    for algorithm in [
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: false },
    ] {
        let third = charge(&store, "ann", &quota(day, algorithm)).expect("counted");
        assert!(!third.is_allowed(), "{algorithm:?}");
    }
    // A day later nothing names them, and all the numbers can be had.
    store.clock().advance(Duration::from_hours(48));
    reserve(&store, &windows(1_000..1_000 + LAYOUTS)).expect("all are free");
}

/// While the numbers are in use, a limit that comes with a request gets none. It is counted as a bucket: never an
/// error, never without a limit.
#[test]
fn a_limit_without_a_number_is_counted() {
    let store = store();
    use_all_numbers(&store);
    for algorithm in ALGORITHMS {
        let quota = quota(3_600_000, algorithm);
        let caller = format!("{algorithm:?}");
        let allowed = || {
            charge(&store, &caller, &quota)
                .expect("counted")
                .is_allowed()
        };
        assert_eq!(
            [(); 3].map(|()| allowed()),
            [true, true, false],
            "{algorithm:?}"
        );
        let look = store
            .peek_now(&charge_of(&[&caller], &quota))
            .expect("counted");
        assert_eq!((look.limit, look.remaining), (2, 0), "{algorithm:?}");
        let values = [caller.as_str()];
        let key = charge_of(&values, &quota).key;
        let refunded = store.refund_now(key, &quota, 1, RefundTo::Current);
        assert_eq!(refunded, Ok(()));
        assert_eq!([(); 2].map(|()| allowed()), [true, false], "{algorithm:?}");
        assert_eq!(store.reset_now(key, &quota), Ok(true));
        assert!(allowed(), "{algorithm:?}");
    }
}

/// A request that has limits with and without a number is charged for all of them or for none.
#[test]
fn a_limit_without_a_number_is_charged_with_the_others() {
    let store = store();
    use_all_numbers(&store);
    let [numbered, not] = [100_000, 50_000].map(|it| quota(it, Algorithm::FixedWindow));
    let mut decisions = Decisions::new();
    let mut admitted = |caller: &str| {
        let (values, other) = ([caller], [caller, "other"]);
        let charges = [charge_of(&values, &numbered), charge_of(&other, &not)];
        let receipt = store.charge_now(&charges, Charging::AllOrNone, &mut decisions);
        receipt.expect("counted").admission
    };
    charge(&store, "ann", &numbered).expect("counted");
    assert_eq!(admitted("ann"), Admission::Admitted);
    assert_eq!(admitted("ann"), Admission::Refused);
    assert_eq!(
        [(); 3].map(|()| admitted("bob")),
        [Admission::Admitted, Admission::Admitted, Admission::Refused]
    );
    let other = store
        .peek_now(&charge_of(&["ann", "other"], &not))
        .expect("counted");
    assert_eq!(
        other.remaining, 1,
        "nothing was charged for the denied request"
    );
}

/// Limits that come with requests never take the numbers of the rules in force, even while no caller has a counter of
/// those.
#[test]
fn limits_of_requests_leave_the_rules_their_numbers() {
    let store = store();
    let rules = windows(1_000..1_500);
    reserve(&store, &rules).expect("they fit");
    use_all_numbers(&store);
    // The number of a layout without counters is looked for once in a second.
    store.clock().advance(Duration::from_secs(2));
    use_all_numbers(&store);
    for (millis, quota) in (1_000..).zip(&rules) {
        let caller = format!("{millis}");
        // A bucket would have refilled half of it.
        for _ in 0..2 {
            assert!(
                charge(&store, &caller, quota)
                    .expect("counted")
                    .is_allowed()
            );
        }
        // To the end of the window.
        let window = 1_000_000 * millis;
        let passed = store.clock().now().nanos() % window;
        store
            .clock()
            .advance(Duration::from_nanos(window - passed - 1));
        assert!(
            !charge(&store, &caller, quota)
                .expect("counted")
                .is_allowed(),
            "{caller}"
        );
    }
}

/// Rules that do not fit take nothing from those in force.
#[test]
fn rules_that_are_rejected_take_no_numbers() {
    let store = store();
    let (first, second) = (windows(1_000..1_500), windows(2_000..2_000 + LAYOUTS));
    reserve(&store, &first).expect("they fit");
    charge(&store, "ann", &first[0]).expect("counted");
    assert!(reserve(&store, &second).is_err());
    // All that are left.
    use_all_numbers(&store);
    reserve(&store, &first).expect("they still have theirs");
}

/// At the start counters of rules that are gone make way for the rules, and only as far as needed. Those that share
/// a number with a rule go on.
#[test]
fn at_the_start_old_counters_make_way() {
    let store = store();
    let day = 24 * 3_600_000;
    for quota in windows(day..day + LAYOUTS) {
        let caller = format!("{:?}", quota.window());
        charge(&store, &caller, &quota).expect("counted");
        charge(&store, &caller, &quota).expect("counted");
    }
    let new: Vec<_> = windows(day + LAYOUTS - 100..day + LAYOUTS + 100);
    assert!(reserve(&store, &new).is_err());
    reserve_with(&store, &new, OldCounters::Drop).expect("the rules come first");
    let is_denied = |quota: &&Quota| {
        let caller = format!("{:?}", quota.window());
        !charge(&store, &caller, quota)
            .expect("counted")
            .is_allowed()
    };
    let denied = new.iter().filter(is_denied).count();
    assert_eq!(denied, 100, "what the rules still name is still counted");
    let too_many = windows(day..day + LAYOUTS + 1);
    assert!(reserve_with(&store, &too_many, OldCounters::Drop).is_err());
}

/// Of limits with one algorithm and window, the small ones have other shared counters than the large ones. Rules whose
/// shared counters do not fit are rejected, although their own counters would.
#[test]
fn shared_counters_have_to_fit_too() {
    let algorithm = Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    };
    let pairs = |windows: u64| -> Vec<Quota> {
        (1_000..1_000 + windows)
            .flat_map(|millis| [2, 1 << 40].map(|limit| quota_of(limit, millis, algorithm)))
            .collect()
    };
    let store = store();
    let error = Err(StoreError::TooManyWindows { most: 1_022 });
    assert_eq!(reserve(&store, &pairs(LAYOUTS / 2 + 1)), error);
    reserve(&store, &pairs(LAYOUTS / 2)).expect("two for each window");
    // A sliding counter stands in for a log among the shared counters.
    let log = Algorithm::SlidingLog { log_refused: false };
    let logs: Vec<_> = (1_000..1_000 + LAYOUTS).map(|it| quota(it, log)).collect();
    reserve(&store, &logs).expect("one for each window");
}
