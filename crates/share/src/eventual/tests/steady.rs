//! Nodes that tell their totals as they should.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, QuotaSpec, Refill};

use super::world::{Fate, KEY, World, poll};
use super::{quota, quotas};
use crate::eventual::overshoot_bound;

/// All nodes at full speed, telling in turn, ten times in a window.
fn flood(world: &mut World, windows: u32) {
    for _ in 0..windows * 100 {
        for node in 0..world.nodes.len() {
            world.exhaust(node);
            world.sync_node(node);
            world.advance(Duration::from_millis(25));
        }
    }
}

/// Four nodes that tell in turn admit less than one in a hundred too much, and use the limit up.
#[test]
fn nodes_in_step_keep_to_the_limit() {
    for quota in quotas(10_000) {
        let mut world = World::new(&[0; 4], quota.clone());
        flood(&mut world, 1);
        let all = match quota.algorithm() {
            // Full at first, and filled once since.
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => 20_000,
            _ => 10_000,
        };
        let total = world.total();
        assert!(total <= all + 100, "{total} of {all}: {quota:?}");
        assert!(total >= all - all / 10, "{total} of {all}: {quota:?}");
    }
}

/// What was admitted above the limit is paid for: over many windows it comes to nothing.
#[test]
fn the_rate_is_right_in_the_long_run() {
    for quota in quotas(100) {
        let mut world = World::new(&[0; 4], quota.clone());
        flood(&mut world, 20);
        let bound = overshoot_bound(&quota, 4, world.config.slack, 1);
        let most = 21 * 100 + bound;
        let total = world.total();
        assert!(total <= most, "{total} of {most}: {quota:?}");
        assert!(total >= 1_700, "{total}: {quota:?}");
    }
}

/// The bound is not far off: nodes that do not tell for long have their budgets all the same.
#[test]
fn silent_nodes_come_near_the_bound() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 3], quota.clone());
        // All know the counter as it is before anything is spent.
        world.look_all();
        while world.exhaust(0) > 0 {
            world.sync_node(0);
        }
        assert_eq!(world.total(), 1_000, "{quota:?}");
        let budget = 84;
        assert_eq!(world.exhaust(1), budget, "{quota:?}");
        assert_eq!(world.exhaust(2), budget, "{quota:?}");
        let bound = overshoot_bound(&quota, 3, world.config.slack, 1);
        assert_eq!(bound, 3 * budget);
    }
}

/// Two nodes that admit at the same time without a word pay for it later.
#[test]
fn debt_is_paid_before_anything_is_admitted() {
    let bucket = Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    };
    let mut world = World::new(&[0; 2], quota(2, bucket));
    // Each node admits one before it tells, and one more that nobody has heard of.
    for node in [0, 1] {
        assert_eq!(world.exhaust(node), 1);
    }
    world.sync_node(0);
    assert_eq!(world.exhaust(0), 1);
    world.sync_node(1);
    world.sync_node(0);
    let report = world.nodes[0].eventual.report();
    assert_eq!(report.overshoot, 1);
    assert_eq!(report.worst_overshoot, 1);
    // One token is refilled, and is owed. It is dated to within a 16th of the window.
    world.advance(Duration::from_millis(5_625));
    assert_eq!(world.exhaust(0), 0);
    world.advance(Duration::from_secs(5));
    assert_eq!(world.exhaust(0), 1);
}

/// When all have told and heard, all see the same.
#[test]
fn nodes_converge() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 3], quota.clone());
        for node in 0..3 {
            for _ in 0..=10 * node {
                world.take(node, 1);
            }
        }
        world.look_all();
        world.look_all();
        let left: Vec<u64> = (0..3).map(|node| world.take(node, 0).remaining).collect();
        assert_eq!(left, [1_000 - 33; 3], "{quota:?}");
    }
}

/// A node that comes later takes over what is used.
#[test]
fn a_newcomer_learns_what_is_used() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 2], quota.clone());
        for _ in 0..20 {
            world.exhaust(0);
            world.exhaust(1);
            world.sync_all();
        }
        world.look_all();
        let left = world.take(0, 0).remaining;
        assert!(left < 20, "{left} left: {quota:?}");
        world.start(0);
        world.take(2, 0);
        world.sync_node(2);
        assert_eq!(world.take(2, 0).remaining, left, "{quota:?}");
    }
}

/// What was idle for long leaves memory.
#[test]
fn idle_counters_are_forgotten() {
    let mut world = World::new(&[0], quota(10, Algorithm::FixedWindow));
    world.take(0, 1);
    world.sync_node(0);
    assert_eq!(world.nodes[0].eventual.report().counters, 1);
    world.advance(Duration::from_mins(1));
    for _ in 0..64 {
        world.sync_node(0);
    }
    assert_eq!(world.nodes[0].eventual.report().counters, 0);
}

/// What a refused request puts back is spent again, told or not.
#[test]
fn what_is_put_back_is_there_again() {
    use crate::memory::FromMemory;
    let mut world = World::new(&[0; 2], quota(1_000, Algorithm::FixedWindow));
    for is_told in [false, true] {
        let before = world.take(0, 0).remaining;
        let took = world.request(0, 5);
        if is_told {
            world.sync_node(0);
        }
        world.put_back(0, 5, &took);
        let mut decision = world.take(0, 0);
        assert_eq!(decision.remaining, before);
        decision.remaining = 0;
        let charge = world.charge(5);
        let eventual = &world.nodes[0].eventual;
        eventual.correct(&charge, &took, &mut decision);
        assert_eq!(decision.remaining, before);
    }
    // The other has not looked before, and goes by how much is used, not by what was told.
    world.take(0, 5);
    world.sync_all();
    world.take(1, 0);
    world.sync_node(1);
    assert_eq!(world.take(1, 0).remaining, 995);
}

/// What was told and put back is not spent without a word in a window that knows nothing of it.
#[test]
fn all_that_is_spent_is_told() {
    let mut world = World::new(&[0; 2], quota(1_000, Algorithm::FixedWindow));
    let took = [(); 3].map(|()| world.request(0, 40));
    world.sync_node(0);
    for took in took {
        assert!(took.decision.is_allowed());
        world.put_back(0, 40, &took);
    }
    world.advance(Duration::from_secs(10));
    world.look_all();
    for _ in 0..3 {
        assert!(world.take(0, 40).is_allowed());
        world.sync_node(0);
    }
    world.look(1);
    assert_eq!(world.take(1, 0).remaining, 880);
}

/// What was taken in one window is not given back in the next, where it would be others'.
#[test]
fn nothing_is_put_back_after_an_edge() {
    let mut world = World::new(&[0; 2], quota(100, Algorithm::FixedWindow));
    world.advance(Duration::from_millis(9_999));
    let took = world.request(0, 5);
    world.advance(Duration::from_millis(2));
    assert!(world.take(0, 8).is_allowed());
    world.put_back(0, 5, &took);
    assert_eq!(world.take(0, 0).remaining, 92);
    // Nor are the others told of it.
    world.sync_node(0);
    world.look(1);
    assert_eq!(world.take(1, 0).remaining, 92);
}

/// With other numbers a bucket may have longer epochs. Nodes that told something in different ones find
/// each other in those.
#[test]
fn nodes_hear_of_each_other_after_a_reload() {
    let bucket = |burst| {
        quota(
            100,
            Algorithm::TokenBucket {
                burst,
                refill: Refill::Continuous,
            },
        )
    };
    for (old, new) in [(None, Some(1_000)), (Some(1_000), None)] {
        let mut world = World::new(&[0; 2], bucket(old));
        for node in [0, 1] {
            world.take(node, 1);
            world.sync_node(node);
            world.advance(Duration::from_secs(30));
        }
        world.quota = bucket(new);
        world.look_all();
        let before = world.take(0, 0).remaining;
        assert!(world.take(1, 10).is_allowed());
        world.sync_node(1);
        world.look(0);
        assert_eq!(world.take(0, 0).remaining, before - 10, "{new:?}");
    }
}

/// However often a counter is asked about between two exchanges, it waits once for each region.
#[test]
fn a_counter_waits_once_for_each_of_many_regions() {
    let regions: Vec<usize> = (0..33).collect();
    let mut world = World::new(&regions, quota(100_000, Algorithm::FixedWindow));
    for _ in 0..100 {
        assert!(world.take(0, 1).is_allowed());
    }
    let eventual = &world.nodes[0].eventual;
    let queued = |region: usize| {
        let parts = eventual.table.each();
        parts.map(|part| part.queues[region].len()).sum::<usize>()
    };
    let queued: Vec<usize> = (0..33).map(queued).collect();
    assert_eq!(queued, [1; 33]);
    // Each learns of all.
    world.sync_all();
    world.look_all();
    for node in 0..33 {
        assert_eq!(world.take(node, 0).remaining, 99_900, "{node}");
    }
}

/// A counter that is asked about by two windows in turn keeps both counts.
#[test]
fn another_window_does_not_restart_the_count() {
    for quota in quotas(100) {
        let wide = QuotaSpec {
            limit: quota.limit(),
            window: quota.window() * 2,
            algorithm: quota.algorithm(),
            allowance: quota.allowance(),
        };
        let wide = Quota::new(&wide).unwrap();
        let mut world = World::new(&[0], quota.clone());
        for _ in 0..10 {
            world.quota = quota.clone();
            assert!(world.take(0, 10).is_allowed(), "{quota:?}");
            world.sync_node(0);
            world.quota = wide.clone();
            assert!(world.take(0, 5).is_allowed(), "{quota:?}");
            world.sync_node(0);
        }
        assert_eq!(world.take(0, 0).remaining, 50, "{quota:?}");
        world.quota = quota.clone();
        assert_eq!(world.take(0, 0).remaining, 0, "{quota:?}");
        assert!(!world.take(0, 1).is_allowed(), "{quota:?}");
    }
}

/// A reply that was on its way during a reload is about epochs that nobody counts in any more.
#[test]
fn a_reply_from_before_a_reload_is_not_heard() {
    let bucket = |burst| {
        quota(
            100,
            Algorithm::TokenBucket {
                burst,
                refill: Refill::Continuous,
            },
        )
    };
    let mut world = World::new(&[0; 2], bucket(None));
    let took = world.request(0, 5);
    world.links[0].set_fate(Fate::Slow);
    let mut sync = world.sync(0, 0);
    assert_eq!(poll(&mut sync), None);
    world.links[0].set_fate(Fate::Done);
    world.quota = bucket(Some(1_000));
    world.take(0, 0);
    world.put_back(0, 5, &took);
    assert_eq!(poll(&mut sync), Some(Ok(())));
    world.look(0);
    assert_eq!(world.exhaust(0), 125, "its budget");
}

/// Nor is one about a counter that was forgotten since: what it has admitted in its new life is told.
#[test]
fn a_reply_about_a_forgotten_counter_is_not_heard() {
    let mut world = World::new(&[0, 1], quota(1_000, Algorithm::FixedWindow));
    world.take(0, 50);
    world.links[1].set_fate(Fate::Slow);
    let mut sync = world.sync(0, 1);
    assert_eq!(poll(&mut sync), None);
    world.links[1].set_fate(Fate::Done);
    world.advance(Duration::from_mins(1));
    for _ in 0..64 {
        assert_eq!(poll(&mut world.sync(0, 0)), Some(Ok(())));
    }
    assert_eq!(world.nodes[0].eventual.report().counters, 0);
    world.take(0, 7);
    assert_eq!(poll(&mut sync), Some(Ok(())));
    world.take(0, 3);
    world.sync_node(0);
    world.look(1);
    assert_eq!(world.take(1, 0).remaining, 990);
}

/// A reset on one node is one on all, in every region, also if the node has never seen the caller.
#[test]
fn a_reset_is_for_all() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0, 0, 1], quota.clone());
        world.take(1, 10);
        world.take(2, 20);
        world.sync_all();
        for times in 1..3 {
            world.look(1);
            world.look(2);
            assert!(world.take(1, 0).remaining < 1_000, "{quota:?}");
            world.nodes[0].eventual.reset(KEY, &quota);
            // Once to hear how often it was, once to say one more, once for the others to hear that.
            for _ in 0..3 {
                world.look_all();
            }
            for node in 0..3 {
                assert_eq!(
                    world.take(node, 0).remaining,
                    1_000,
                    "{node}, {times}: {quota:?}"
                );
            }
            world.take(1, 10);
            world.sync_all();
        }
    }
}
