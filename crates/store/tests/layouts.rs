//! Reloads with ever other windows: the numbers of layouts that are gone are used again.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, Store as _, StoreConfig, StoreError,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Pairs of algorithm and window that the store tells apart.
const LAYOUTS: u64 = 1_023;

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
    store.reserve(&mut quotas.iter().map(|quota| (quota, Consistency::Strict)))
}

fn charge(
    store: &EmbeddedStore<ManualClock>,
    caller: &str,
    quota: &Quota,
) -> Result<Decision, StoreError> {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &[caller],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    store.charge_now(&[charge], Charging::AllOrNone, &mut decisions)?;
    Ok(decisions[0])
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
    let error = || Err(StoreError::TooManyWindows { most: 1_023 });
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
    let late = charge(&store, "ann", &quota(day, Algorithm::FixedWindow));
    assert_eq!(late.map(|_| ()), error());
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
    let error = Err(StoreError::TooManyWindows { most: 1_023 });
    assert_eq!(reserve(&store, &pairs(LAYOUTS / 2 + 1)), error);
    reserve(&store, &pairs(LAYOUTS / 2)).expect("two for each window");
    // A sliding counter stands in for a log among the shared counters.
    let log = Algorithm::SlidingLog { log_refused: false };
    let logs: Vec<_> = (1_000..1_000 + LAYOUTS).map(|it| quota(it, log)).collect();
    reserve(&store, &logs).expect("one for each window");
}
