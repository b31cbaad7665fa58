//! Memory of the counters, and what happens when it is full.

use std::time::Duration;

use tidegate_algorithms::{Allowance, Quota, QuotaSpec};
use tidegate_store::{Charge, Charging, CounterKey, LimitId, OnFull, StoreConfig};

use super::quotas;
use super::world::World;
use crate::memory::FromMemory;

const CALLERS: u64 = 1_000;

/// A node with little memory.
fn world(quota: Quota, max_memory: usize) -> World {
    let mut world = World::new(&[0], quota);
    world.config.memory = StoreConfig { max_memory };
    world.restart(0);
    world.sync_node(0);
    world
}

/// One request of a caller with a long name. Returns whether it was allowed.
fn ask(world: &World, caller: u64, on_full: OnFull) -> bool {
    ask_for(world, caller, 1, on_full)
}

/// The same with a cost.
fn ask_for(world: &World, caller: u64, cost: u64, on_full: OnFull) -> bool {
    let name = format!("{caller:0200}");
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(7),
            values: &[&name],
        },
        on_full,
        ..world.charge(cost)
    };
    let eventual = &world.nodes[0].eventual;
    let took = eventual.take(&charge, Charging::AllOrNone).unwrap();
    took.unwrap().decision.is_allowed()
}

/// A counter takes at most 250 bytes, whatever its name and algorithm.
#[test]
fn a_counter_takes_at_most_250_bytes() {
    for quota in quotas(1_000) {
        let world = world(quota.clone(), 16 << 20);
        for caller in 0..CALLERS {
            assert!(ask(&world, caller, OnFull::Deny));
        }
        world.sync_node(0);
        let report = world.nodes[0].eventual.report();
        assert_eq!(report.counters, CALLERS);
        assert!(report.bytes <= 250 * CALLERS, "{}: {quota:?}", report.bytes);
    }
}

/// Uses limits of each algorithm up all the time. No counter may ever take more than `most` bytes.
fn check_constant_use(limit: u64, window: Duration, most: u64) {
    const CALLERS: u64 = 10;
    const STEPS_IN_WINDOW: u32 = 80;
    let step = window / STEPS_IN_WINDOW;
    for algorithm in quotas(1).map(|quota| quota.algorithm()) {
        let spec = QuotaSpec {
            limit,
            window,
            algorithm,
            allowance: Allowance::Hard,
        };
        // A log of so many is not allowed.
        let Ok(quota) = Quota::new(&spec) else {
            continue;
        };
        let world = world(quota, 16 << 20);
        let mut since_sync = Duration::ZERO;
        for _ in 0..STEPS_IN_WINDOW * 3 {
            for caller in 0..CALLERS {
                ask_for(&world, caller, limit / 60, OnFull::Deny);
            }
            let report = world.nodes[0].eventual.report();
            assert_eq!(report.counters, CALLERS);
            assert!(report.bytes <= most * CALLERS, "{report:?}: {spec:?}");
            world.advance(step);
            since_sync += step;
            if since_sync >= world.config.sync_interval {
                world.sync_node(0);
                since_sync = Duration::ZERO;
            }
        }
    }
}

/// A counter that is used all the time takes no more, though it has up to 17 slots, and several between two
/// exchanges if its window is short.
#[test]
fn a_counter_in_constant_use_takes_at_most_250_bytes() {
    for limit in [1_000, 1_000_000, 1 << 22] {
        check_constant_use(limit, Duration::from_secs(10), 250);
        check_constant_use(limit, Duration::from_secs(1), 250);
    }
}

/// A counter of a limit that is larger than any caller's takes more.
#[test]
fn a_counter_of_a_large_limit_takes_at_most_474_bytes() {
    check_constant_use(1 << 40, Duration::from_secs(1), 474);
}

/// Counters that every region knows all about make room for new ones, and are counted.
#[test]
fn full_memory_evicts_what_the_store_knows() {
    for quota in quotas(1_000) {
        let most = 64 * 1_024;
        let world = world(quota, most);
        for caller in 0..CALLERS {
            assert!(ask(&world, caller, OnFull::Deny));
            world.sync_node(0);
        }
        let report = world.nodes[0].eventual.report();
        assert!(report.bytes <= u64::try_from(most).unwrap());
        assert!(report.counters > 100, "{}", report.counters);
        assert_eq!(report.evicted, CALLERS - report.counters);
        assert_eq!((report.untracked, report.is_full), (0, false));
    }
}

/// Counters that are not known everywhere stay; a new one goes by its rule's `on_full`.
#[test]
fn full_memory_keeps_what_the_store_does_not_know() {
    for quota in quotas(1_000) {
        let most = 64 * 1_024;
        let world = world(quota, most);
        let allowed = (0..CALLERS).filter(|&caller| ask(&world, caller, OnFull::Deny));
        let allowed = u64::try_from(allowed.count()).unwrap();
        let report = world.nodes[0].eventual.report();
        assert_eq!(report.counters, allowed);
        assert_eq!(report.untracked, CALLERS - allowed);
        assert!(report.is_full);
        assert!(report.bytes <= u64::try_from(most).unwrap());
        assert!(ask(&world, CALLERS, OnFull::Allow));
        // What is over makes room, also without the store.
        world.advance(Duration::from_mins(1));
        assert!(!world.nodes[0].eventual.report().is_full);
        for _ in 0..64 {
            world.sync_node(0);
        }
        assert!(ask(&world, CALLERS, OnFull::Deny));
    }
}

/// A caller that was evicted gets one request before its total is read again, not a budget.
#[test]
fn eviction_does_not_renew_a_budget() {
    for quota in quotas(1_000) {
        let world = world(quota, 64 * 1_024);
        for caller in 1..CALLERS {
            ask(&world, caller, OnFull::Deny);
            world.sync_node(0);
        }
        assert!(ask(&world, CALLERS, OnFull::Deny));
        assert!(!ask(&world, CALLERS, OnFull::Deny));
        world.sync_node(0);
        assert!(ask(&world, CALLERS, OnFull::Deny));
    }
}
