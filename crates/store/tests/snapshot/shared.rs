//! Restarts during a flood.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Quota, Refill, Rounding};
use tidegate_store::{Clock, OnFull};

use crate::support::{
    MIB, ManualStore, START, charge, charge_on_full, new_store, per_hour, restore, snapshot,
};

/// The time that a restart takes.
const RESTART: Duration = Duration::from_secs(1);

/// One for each kind of shared counter.
const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::FixedWindow,
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingLog { log_refused: false },
];

/// Fills memory with counters in use, each charged and requested again.
fn fill(store: &ManualStore, max_memory: usize, name: &str) {
    let quota = per_hour(100, Algorithm::FixedWindow);
    for n in 0..max_memory / 8 {
        let caller = format!("{name} {n}");
        charge(store, (1, &caller), &quota, 1);
        charge(store, (1, &caller), &quota, 1);
    }
}

/// Sends four requests for each of a number of callers without room, and gives the number of those allowed.
fn allowed(store: &ManualStore, quota: &Quota) -> usize {
    let asks = (0..400).map(|n| {
        let caller = format!("caller {}", n / 4);
        charge_on_full(store, (2, &caller), quota, OnFull::Shared)
    });
    asks.filter(Decision::is_allowed).count()
}

/// Callers that found no room are denied after a restart as before it, also by a store of another size.
#[test]
fn shared_counters_go_on() {
    for algorithm in ALGORITHMS {
        let three = per_hour(3, algorithm);
        let mut store = new_store(MIB);
        fill(&store, MIB, "before");
        assert!(allowed(&store, &three) > 200, "{algorithm:?}");
        let before = store.stats().untracked;
        assert_eq!(allowed(&store, &three), 0, "{algorithm:?}");
        assert!(store.stats().untracked > before + 300, "they found no room");
        let mut now = START;
        for max_memory in [MIB, 2 * MIB, MIB] {
            now = now.plus(RESTART);
            let (next, restored) = restore(max_memory, now, &snapshot(&store)).expect("sound");
            assert!(
                (50..=100).contains(&restored.shared),
                "{algorithm:?}: {restored:?}"
            );
            store = next;
            fill(&store, max_memory, "after");
            let again = allowed(&store, &three);
            assert!(again < 10, "{algorithm:?}, {max_memory} bytes: {again}");
        }
    }
}

/// A caller that is denied every second stays denied if the flood goes on after a restart.
#[test]
fn an_offender_stays_denied() {
    let three = per_hour(3, Algorithm::FixedWindow);
    let store = new_store(MIB);
    while charge(&store, (1, "offender"), &three, 1).is_allowed() {}
    let flood = |store: &ManualStore, name: &str| {
        for n in 0..MIB / 16 {
            charge(store, (1, &format!("{name} {n}")), &three, 1);
        }
    };
    flood(&store, "before");
    assert!(!charge(&store, (1, "offender"), &three, 1).is_allowed());
    let (store, _) = restore(MIB, START.plus(RESTART), &snapshot(&store)).expect("sound");
    flood(&store, "after");
    assert!(!charge(&store, (1, "offender"), &three, 1).is_allowed());
}

/// A counter that was in use is not dropped at a restart for one that was not, wherever the two lie in the file.
#[test]
fn offenders_of_a_full_table_stay_denied() {
    let three = per_hour(3, Algorithm::FixedWindow);
    let store = new_store(MIB);
    let offenders: Vec<String> = (0..500).map(|n| format!("offender {n}")).collect();
    let denied = |store: &ManualStore| {
        let is_denied = |name: &&String| !charge(store, (1, name), &three, 1).is_allowed();
        offenders.iter().filter(is_denied).count()
    };
    for _ in 0..4 {
        denied(&store);
    }
    for part in 0..20 {
        for n in 0..MIB / 160 {
            charge(&store, (1, &format!("flood {part} {n}")), &three, 1);
        }
        store.clock().advance(Duration::from_millis(500));
        assert_eq!(denied(&store), 500, "{part}");
    }
    let now = store.clock().now().plus(RESTART);
    let (store, restored) = restore(MIB, now, &snapshot(&store)).expect("sound");
    assert_eq!(denied(&store), 500, "{restored:?}");
}

/// Counters that were in use are idle two passes after a restart, if nobody requests them.
#[test]
fn restored_counters_make_room() {
    let store = new_store(MIB);
    fill(&store, MIB, "before");
    let (store, _) = restore(MIB, START.plus(RESTART), &snapshot(&store)).expect("sound");
    store.clock().advance(Duration::from_secs(3));
    let one = per_hour(1, Algorithm::FixedWindow);
    let is_allowed = |n: &u32| {
        let caller = format!("new {n}");
        charge(&store, (1, &caller), &one, 1).is_allowed()
    };
    assert_eq!((0..1_000).filter(is_allowed).count(), 1_000);
}
