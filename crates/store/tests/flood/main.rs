//! Memory is bounded whatever arrives: floods of invented keys against the smallest store, and against larger ones in
//! simulated time.

#[path = "../../examples/flood/attack.rs"]
mod attack;
mod attacks;
#[path = "../../examples/flood/mixed.rs"]
mod mixed;
mod mixed_floods;
mod shared;
mod small_store;
#[path = "../../examples/flood/target.rs"]
mod target;

use std::time::Duration;

use small_store::{
    ALGORITHMS, HOUR, MOST_SLOTS, SLIDING_LOG, SUB_WINDOWS, SmallStore, TOKEN_BUCKET, daily, hourly,
};
use tidegate_algorithms::{Algorithm, Decision, Outcome, Retry};
use tidegate_store::OnFull;

/// A caller that was denied is denied again, however many other callers there are.
#[test]
fn an_offender_stays_denied() {
    for algorithm in ALGORITHMS {
        let store = SmallStore::new();
        let three = hourly(3, algorithm);
        while store.charge("offender", &three, OnFull::Allow).is_allowed() {}
        for wave in 0..10 {
            store.flood(&format!("wave {wave}"), MOST_SLOTS / 4, &three);
            let again = store.charge("offender", &three, OnFull::Allow);
            assert!(!again.is_allowed(), "{algorithm:?}, wave {wave}");
        }
        assert!(
            store.stats().evicted > 0,
            "{algorithm:?}: {:?}",
            store.stats()
        );
    }
}

/// The same while the flood drives its own callers over their limit. A new caller is counted then: idle counters are
/// evicted, those of denied callers as well.
#[test]
fn an_offender_stays_denied_among_others() {
    for algorithm in ALGORITHMS {
        let store = SmallStore::new();
        let day = daily(3, algorithm);
        while store.charge("offender", &day, OnFull::Allow).is_allowed() {}
        for second in 0..30 {
            for n in 0..MOST_SLOTS / 16 {
                let key = format!("second {second}, {n}");
                for _ in 0..4 {
                    store.charge(&key, &day, OnFull::Allow);
                }
            }
            store.advance(Duration::from_secs(1));
            let again = store.charge("offender", &day, OnFull::Allow);
            assert!(!again.is_allowed(), "{algorithm:?}, second {second}");
        }
        let admitted = |store: &SmallStore| {
            let asks = [(); 9].map(|()| store.charge("fresh", &day, OnFull::Allow));
            asks.iter().filter(|decision| decision.is_allowed()).count()
        };
        assert_eq!(
            admitted(&store),
            admitted(&SmallStore::new()),
            "{algorithm:?}"
        );
    }
}

/// Each of millions of keys is remembered for a while: the oldest counters are evicted.
#[test]
fn millions_of_keys_come_and_go() {
    let store = SmallStore::new();
    let quota = hourly(3, Algorithm::FixedWindow);
    let remembered = store.flood("caller", 2_000_000, &quota);
    // An eighth is kept for blocks, and a sixteenth for shared counters.
    assert!(remembered > MOST_SLOTS / 10 * 8, "{remembered}");
    let stats = store.stats();
    assert_eq!(stats.untracked, 0);
    assert!(stats.used_bytes > stats.max_bytes / 10 * 8, "{stats:?}");
}

/// No live counter is evicted while there are expired ones.
#[test]
fn expired_state_is_used_first() {
    for algorithm in ALGORITHMS {
        let store = SmallStore::new();
        let quota = hourly(3, algorithm);
        for hour in 0..40 {
            store.flood(&format!("hour {hour}"), 4_000, &quota);
            store.advance(2 * HOUR);
        }
        let stats = store.stats();
        assert_eq!((stats.evicted, stats.untracked), (0, 0), "{algorithm:?}");
    }
}

/// Where one word is enough, memory does not even grow.
#[test]
fn expired_slots_are_used_before_new_ones() {
    let store = SmallStore::new();
    let quota = hourly(3, TOKEN_BUCKET);
    store.flood("first", 5_000, &quota);
    let first = store.stats().used_bytes;
    for hour in 0..20 {
        store.advance(2 * HOUR);
        store.flood(&format!("hour {hour}"), 5_000, &quota);
    }
    // Other keys choose other sets, so a few shards may be fuller than before.
    let last = store.stats().used_bytes;
    assert!(last <= first + first / 4, "{last} after {first}");
}

/// A new caller is decided on by `on_full` when all counters are in use.
#[test]
fn a_store_full_of_offenders_goes_by_on_full() {
    // Enough to leave no set with a free slot; a log takes four times the room of a slot.
    for (algorithm, offenders) in [
        (TOKEN_BUCKET, 4 * MOST_SLOTS),
        (Algorithm::FixedWindow, 4 * MOST_SLOTS),
        (SLIDING_LOG, MOST_SLOTS),
    ] {
        let store = SmallStore::new();
        let one = hourly(1, algorithm);
        for n in 0..offenders {
            let offender = format!("offender {n}");
            store.charge(&offender, &one, OnFull::Deny);
            store.charge(&offender, &one, OnFull::Deny);
        }
        let before = store.stats();
        for n in 0..100 {
            let caller = format!("caller {n}");
            let denied = store.charge(&caller, &one, OnFull::Deny);
            assert!(wait(&denied) > Duration::ZERO, "{algorithm:?}: {denied:?}");
            for _ in 0..3 {
                assert!(store.charge(&caller, &one, OnFull::Allow).is_allowed());
            }
        }
        let after = store.stats();
        assert_eq!(after.evicted, before.evicted, "{algorithm:?}");
        assert_eq!(after.untracked, before.untracked + 400, "{algorithm:?}");
    }
}

/// A caller that is denied because there is no room is allowed after the time in its denial.
#[test]
fn there_is_room_after_the_wait() {
    for algorithm in [TOKEN_BUCKET, Algorithm::FixedWindow] {
        let store = SmallStore::new();
        let one = hourly(1, algorithm);
        for n in 0..4 * MOST_SLOTS {
            let offender = format!("offender {n}");
            store.charge(&offender, &one, OnFull::Deny);
            store.charge(&offender, &one, OnFull::Deny);
            store.advance(Duration::from_micros(1));
        }
        let denied = store.charge("caller", &one, OnFull::Deny);
        store.advance(wait(&denied).saturating_sub(Duration::from_nanos(1)));
        let early = store.charge("caller", &one, OnFull::Deny);
        assert_eq!(wait(&early), Duration::from_nanos(1), "{algorithm:?}");
        store.advance(Duration::from_nanos(1));
        assert!(store.charge("caller", &one, OnFull::Deny).is_allowed());
        assert!(
            !store.charge("caller", &one, OnFull::Deny).is_allowed(),
            "and is counted"
        );
    }
}

/// When all logs (or sub-windows) have expired, as many fit as did at first, again and again.
#[test]
fn blocks_of_the_expired_are_used_again() {
    for algorithm in [SLIDING_LOG, SUB_WINDOWS] {
        let store = SmallStore::new();
        let quota = hourly(20, algorithm);
        let first = store.flood("first", 30_000, &quota);
        let used = store.stats();
        assert!(used.evicted > 0, "the arena is used up: {used:?}");
        for hour in 0..10 {
            store.advance(2 * HOUR);
            let again = store.flood(&format!("hour {hour}"), 30_000, &quota);
            assert!(
                again >= first / 20 * 19,
                "{algorithm:?}, hour {hour}: {again} of {first}"
            );
        }
        // Memory may have moved between slots and blocks.
        let (first, last) = (used.used_bytes, store.stats().used_bytes);
        assert!(last <= first + first / 16, "{last} after {first}");
    }
}

/// The blocks of small logs make large ones when they are free again, and the other way round: no
/// block is lost, and none remains too small for good.
#[test]
fn blocks_are_joined_again() {
    let store = SmallStore::new();
    // More of either than there is room for.
    let sorts = [
        (20_000, hourly(4, SLIDING_LOG)),
        (500, hourly(500, SLIDING_LOG)),
    ];
    let fill = |day: u32| {
        [0, 1].map(|sort: usize| {
            store.advance(2 * HOUR);
            let (callers, quota) = &sorts[sort];
            store.fill(&format!("sort {sort}, day {day}"), *callers, quota)
        })
    };
    let first = fill(0);
    assert!(first[0] > 20 * first[1] && first[1] > 200, "{first:?}");
    for day in 1..6 {
        let again = fill(day);
        // The key of the store is random, and with it which blocks fit side by side. Of 1,200 days
        // the worst had 99 % of the small logs and 87 % of the large ones; none had fewer for age.
        assert!(
            again[0] >= first[0] / 20 * 19 && again[1] >= first[1] / 5 * 4,
            "day {day}: {again:?}, {first:?}"
        );
    }
}

/// Logs that grow and expire, hour by hour, take no more memory than those of two hours do.
#[test]
fn logs_that_come_and_go_take_no_more_memory() {
    let store = SmallStore::new();
    let hundred = hourly(100, SLIDING_LOG);
    let mut used = Vec::new();
    for hour in 0..20 {
        for _ in 0..100 {
            store.flood(&format!("hour {hour}"), 300, &hundred);
        }
        used.push(store.stats().used_bytes);
        store.advance(2 * HOUR);
    }
    // Logs of the hours before hold their blocks until a new key needs their slots.
    assert!(used.iter().all(|&bytes| bytes <= 2 * used[0]), "{used:?}");
    assert_eq!(store.stats().evicted, 0);
}

/// The time after which a denied caller may retry.
fn wait(decision: &Decision) -> Duration {
    match decision.outcome {
        Outcome::Denied {
            retry: Retry::After(wait),
        } => wait,
        _ => panic!("not a denial for now: {decision:?}"),
    }
}
