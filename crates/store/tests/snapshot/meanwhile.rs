//! Requests go on while a snapshot is written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_algorithms::Algorithm;

use crate::support::{MIB, START, charge, new_store, per_hour, restore, snapshot};

/// Callers that are charged once before the first snapshot.
const SETTLED: usize = 2_000;

/// Each snapshot has every counter that was there before it, with no less than it had then and no
/// more than it has after, while new callers make the table grow and move them about.
#[test]
fn a_snapshot_has_all_that_was_there_before_it() {
    let store = new_store(4 * MIB);
    let quota = per_hour(1_000_000_000, Algorithm::FixedWindow);
    let names: Vec<String> = (0..SETTLED).map(|n| format!("settled {n}")).collect();
    let left = |store: &crate::support::ManualStore, name: &str| {
        charge(store, (1, name), &quota, 0).remaining
    };
    for name in &names {
        charge(&store, (1, name), &quota, 1);
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (store, stop, names, quota) = (&store, &stop, &names, &quota);
            scope.spawn(move || {
                for turn in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    charge(store, (1, &names[turn * 7 % SETTLED]), quota, 1);
                    if turn < 60_000 {
                        charge(store, (2, &format!("{worker}, {turn}")), quota, 1);
                    }
                }
            });
        }
        for _ in 0..20 {
            let before: Vec<u64> = names.iter().map(|name| left(&store, name)).collect();
            let bytes = snapshot(&store);
            let after: Vec<u64> = names.iter().map(|name| left(&store, name)).collect();
            let (restored, _) = restore(8 * MIB, START, &bytes).expect("sound");
            for ((name, before), after) in names.iter().zip(before).zip(after) {
                let left = left(&restored, name);
                assert!((after..=before).contains(&left), "{name}: {left}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.stats().evicted, 0, "they fit");
}
