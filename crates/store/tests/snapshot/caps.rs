//! More memory than before, and less.

use tidegate_algorithms::Algorithm;

use crate::support::{MIB, START, charge, new_store, per_hour, restore, snapshot};

/// As many counters as a store of a mebibyte has room for.
const MANY: usize = 30_000;

/// Every counter is found in a store of any other size, and again after the way back.
#[test]
fn all_are_found_whatever_the_memory() {
    let quota = per_hour(1_000, Algorithm::FixedWindow);
    let names: Vec<String> = (0..MANY).map(|n| format!("caller {n}")).collect();
    let mut store = new_store(MIB);
    for (n, name) in names.iter().enumerate() {
        charge(&store, (1, name), &quota, 1 + n as u64 % 900);
    }
    assert_eq!(store.stats().evicted, 0, "they fit");
    for memory in [64 * MIB, 16 * MIB, 512 * MIB, 2 * MIB, MIB] {
        let (next, restored) = restore(memory, START, &snapshot(&store)).expect("sound");
        store = next;
        assert_eq!(restored.counters, MANY as u64, "{memory} bytes");
        assert_eq!((restored.dropped, restored.expired), (0, 0));
        for (n, name) in names.iter().enumerate() {
            let left = charge(&store, (1, name), &quota, 0).remaining;
            assert_eq!(left, 999 - n as u64 % 900, "{name} of {memory} bytes");
        }
    }
}

/// What does not fit goes by worth: of those never refused the ones that expire first, and the cap
/// holds.
#[test]
fn too_many_for_less_memory_make_way() {
    let hourly = per_hour(2, Algorithm::FixedWindow);
    let minutely = per_hour(
        1_000_000,
        Algorithm::TokenBucket {
            burst: None,
            refill: tidegate_algorithms::Refill::Continuous,
        },
    );
    let store = new_store(16 * MIB);
    let names: Vec<String> = (0..200_000).map(|n| format!("caller {n}")).collect();
    let (refused, soon) = names.split_at(15_000);
    for name in refused {
        charge(&store, (1, name), &hourly, 2);
        assert!(!charge(&store, (1, name), &hourly, 1).is_allowed());
    }
    for name in soon {
        // Full again in some milliseconds.
        charge(&store, (2, name), &minutely, 5);
    }
    let (small, restored) = restore(MIB, START, &snapshot(&store)).expect("sound");
    assert_eq!(restored.counters + restored.dropped, 200_000);
    assert!(restored.counters > 50_000, "{restored:?}");
    assert!(small.stats().used_bytes <= small.stats().max_bytes);
    let lost = |name: &&String| charge(&small, (1, name), &hourly, 0).remaining > 0;
    // All but the few for which all eight slots have a refused counter.
    let lost = refused.iter().filter(lost).count();
    assert!(lost <= 15, "{lost}");
}

/// Logs that do not fit any more are forgotten, the others go on.
#[test]
fn blocks_make_way_too() {
    let log = per_hour(10, Algorithm::SlidingLog { log_refused: false });
    let store = new_store(16 * MIB);
    let names: Vec<String> = (0..60_000).map(|n| format!("caller {n}")).collect();
    for name in &names {
        charge(&store, (1, name), &log, 3);
    }
    let (small, restored) = restore(MIB, START, &snapshot(&store)).expect("sound");
    assert_eq!(restored.counters + restored.dropped, 60_000);
    assert!(small.stats().used_bytes <= small.stats().max_bytes);
    let kept = |name: &&String| charge(&small, (1, name), &log, 0).remaining == 7;
    assert_eq!(names.iter().filter(kept).count() as u64, restored.counters);
    assert!(restored.counters > 5_000, "{restored:?}");
}

/// What has expired when the store starts is left out.
#[test]
fn the_expired_are_left_out() {
    let store = new_store(MIB);
    for (limit, quota) in crate::support::quotas().iter().enumerate() {
        charge(&store, (limit, "ann"), quota, 3);
    }
    let later = START.plus(std::time::Duration::from_hours(3));
    let (_, restored) = restore(MIB, later, &snapshot(&store)).expect("sound");
    assert_eq!((restored.counters, restored.dropped), (0, 0));
    assert_eq!(restored.expired, 14);
    assert_eq!(restored.written_at, START);
}
