use std::thread;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Time};

use crate::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, StoreConfig,
};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);
const HOUR: Duration = Duration::from_hours(1);
const SLIDING_LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };
/// Time between two requests. The border moves as time goes by.
const BETWEEN: Duration = Duration::from_micros(500);

fn store<C: Clock>(clock: C) -> EmbeddedStore<C> {
    let config = StoreConfig {
        max_memory: 1 << 20,
    };
    EmbeddedStore::with_clock(config, clock)
}

fn hourly(limit: u64, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: HOUR,
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

fn is_allowed<C: Clock>(store: &EmbeddedStore<C>, caller: &str, quota: &Quota) -> bool {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &[caller],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Shared,
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    let receipt = store.charge_now(&[charge], Charging::AllOrNone, &mut decisions);
    receipt.expect("a decision");
    let stats = store.stats();
    assert!(stats.used_bytes <= stats.max_bytes, "{stats:?}");
    decisions[0].is_allowed()
}

/// Lets callers come round and round, and gives how many of them stay from one round to the next.
fn fitting(store: &EmbeddedStore<ManualClock>, name: &str, callers: u64, quota: &Quota) -> u64 {
    const ROUNDS: u64 = 8;
    let mut evicted = 0;
    for _ in 0..ROUNDS {
        let before = store.stats();
        for n in 0..callers {
            is_allowed(store, &format!("{name} {n}"), quota);
            store.clock().advance(BETWEEN);
        }
        let after = store.stats();
        evicted = after.evicted + after.untracked - before.evicted - before.untracked;
    }
    callers.saturating_sub(evicted)
}

/// What slots do not need any more goes to blocks, and the other way round: as many fit as into a new store, or
/// nearly, whether what was there has expired or is only idle.
#[test]
fn memory_moves_to_the_kind_that_needs_it() {
    let windows = ("window", 40_000, hourly(9, Algorithm::FixedWindow));
    let logs = ("log", 6_000, hourly(100, SLIDING_LOG));
    for pause in [2 * HOUR, Duration::from_mins(1)] {
        for [first, then] in [[&windows, &logs], [&logs, &windows]] {
            let fit = |store: &_, (name, callers, quota): &(&str, u64, Quota)| {
                fitting(store, name, *callers, quota)
            };
            let most = fit(&store(ManualClock::at(START)), then);
            let store = store(ManualClock::at(START));
            fit(&store, first);
            store.clock().advance(pause);
            let moved = fit(&store, then);
            assert!(
                moved >= most / 10 * 9,
                "{moved} of {most} {}s, {pause:?} after {}s",
                then.0,
                first.0
            );
        }
    }
}

/// While memory moves to and fro, on several threads, no counter in use is evicted or written over: what is denied
/// stays so.
#[test]
fn counters_in_use_stay_while_memory_moves() {
    const LIMIT: u64 = 1_000;
    const REQUESTS: u64 = 60_000;
    // Threads meet so often that none which waits for a processor falls back by more than a second of the clock.
    const BETWEEN_MEETINGS: u64 = 500;
    let store = &store(ManualClock::at(START));
    let algorithms = [Algorithm::FixedWindow, SLIDING_LOG];
    let [windows, logs] = &algorithms.map(|algorithm| hourly(9, algorithm));
    let denied = &algorithms.map(|algorithm| hourly(LIMIT, algorithm));
    let is_denied = |quota| !is_allowed(store, "denied", quota);
    for quota in denied {
        let allowed = (0..2 * LIMIT).filter(|_| !is_denied(quota)).count();
        assert_eq!(allowed as u64, LIMIT);
    }
    let request = |n: u64| {
        // A few seconds of the one kind, then of the other.
        let quota = if (n / 10_000).is_multiple_of(2) {
            windows
        } else {
            logs
        };
        let caller = n.wrapping_mul(2_654_435_761) % 50_000;
        is_allowed(store, &format!("caller {caller}"), quota);
        assert!(
            !n.is_multiple_of(16) || denied.iter().all(is_denied),
            "request {n}"
        );
        store.clock().advance(BETWEEN);
    };
    for meeting in 0..REQUESTS / BETWEEN_MEETINGS {
        let first = meeting * BETWEEN_MEETINGS;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (first..first + BETWEEN_MEETINGS).for_each(request));
            }
        });
    }
    assert!(store.stats().evicted > 0, "{:?}", store.stats());
}
