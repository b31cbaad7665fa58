//! Floods in simulated time: no limit is switched off for other callers.

use std::time::Duration;

use tidegate_algorithms::{Meter, Quota};

use crate::attack::Attack;
use crate::target::Target;

/// Two million keys with one request each, 20,000 in a second, against 4 MiB: an offender stays denied, a fresh caller
/// gets at most twice its quota, honest ones get theirs, and a minute later every caller is counted exactly.
#[test]
fn a_flood_of_keys_switches_no_limit_off() {
    check_held(|_| Attack {
        keys: 2_000_000,
        requests_per_key: 1,
        rounds: 1,
        rate: 20_000,
        max_memory: 4 << 20,
        threads: 1,
    });
}

/// The same with two million keys that are driven over their limit, 10,000 keys in a second, of a log of 100 fewer: each
/// is in use for two seconds, so there is room for those of the largest state as well.
#[test]
fn a_flood_of_denied_keys_switches_no_limit_off() {
    check_held(|target| Attack {
        keys: 2_000_000,
        requests_per_key: target.to_be_denied(),
        rounds: 1,
        rate: 40_000 / target.quota.limit() * target.to_be_denied(),
        max_memory: 4 << 20,
        threads: 1,
    });
}

/// A flood that keeps four fifths of all counters in use leaves room for new callers: the idle fifth makes room for
/// them, wherever it lies.
#[test]
fn a_flood_that_keeps_four_fifths_in_use_leaves_room() {
    let names = ["fixed_window", "sliding_log", "sliding_log of 100"];
    let max_memory = 4 << 20;
    for target in Target::all() {
        if !names.contains(&target.name) {
            continue;
        }
        let keys = target.most_in_use(max_memory) * 4 / 5;
        let attack = Attack {
            keys,
            requests_per_key: 1,
            rounds: 12,
            rate: keys,
            max_memory,
            threads: 1,
        };
        let outcome = attack.on(&target);
        println!("{}: {outcome:?}", target.name);
        assert!(outcome.is_held(), "{}: {outcome:?}", target.name);
    }
}

/// A flood that keeps every slot of 1 MiB in use, with two requests of each key in every second, so that `on_full`
/// decides on new callers: an offender stays denied, a fresh caller gets at most twice its quota, and a minute later
/// every caller is counted exactly. Honest callers are denied with the keys of the flood that share their counters.
#[test]
fn a_flood_that_keeps_memory_in_use_switches_no_limit_off() {
    for target in Target::all() {
        // More than there are slots, or blocks.
        let keys = if needs_blocks(&target.quota) {
            20_000
        } else {
            70_000
        };
        let attack = Attack {
            keys,
            requests_per_key: 2,
            rounds: 26,
            rate: 2 * keys,
            max_memory: 1 << 20,
            threads: 1,
        };
        let outcome = attack.on(&target);
        println!("{}: {outcome:?}", target.name);
        assert!(outcome.is_limited(), "{}: {outcome:?}", target.name);
        assert_eq!(outcome.inexact, [""; 0], "{}", target.name);
        assert!(outcome.stats.untracked > 100_000, "on_full decided");
    }
}

fn check_held(attack: impl Fn(&Target) -> Attack) {
    for target in Target::all() {
        let outcome = attack(&target).on(&target);
        println!("{}: {outcome:?}", target.name);
        assert!(outcome.is_held(), "{}: {outcome:?}", target.name);
        let is_short = target.quota.window() < Duration::from_mins(1);
        assert!(is_short || outcome.stats.evicted > 0, "the store was full");
    }
}

/// Whether the counters of a limit take a block each.
fn needs_blocks(quota: &Quota) -> bool {
    let is_long = matches!(quota.meter(), Meter::SlidingLog(_) | Meter::SubWindows(_));
    is_long || quota.tracks_soft_period()
}
