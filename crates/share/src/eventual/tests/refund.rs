//! Requests that are denied by another limit, operators' refunds, and stores that lose their data.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_algorithms::{Allowance, ChargeStamp, Quota, RefundTo};
use tidegate_store::{OnFull, StoreConfig};

use super::world::{KEY, World};
use super::{quota_with, quotas};
use crate::eventual::usage::most;
use crate::memory::FromMemory;

/// What a denied request put back is known to no node after the next exchange, also if it was sent before.
#[test]
fn a_denied_request_costs_nothing() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0, 0, 1], quota.clone());
        world.take(1, 30);
        let took = [(); 3].map(|()| world.request(0, 20));
        world.sync_all();
        world.advance(Duration::from_millis(50));
        for took in &took {
            assert!(took.decision.is_allowed());
            world.put_back(0, 20, took);
        }
        world.look_all();
        world.look_all();
        for node in 0..3 {
            assert_eq!(world.take(node, 0).remaining, 970, "{node}: {quota:?}");
            assert_eq!(world.nodes[node].eventual.report().pending, 0);
        }
    }
}

/// A request that was admitted before the node was cut off was not charged to its share, and is not refunded to it.
#[test]
fn a_share_is_refunded_only_what_it_was_charged() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 2], quota.clone());
        world.look_all();
        let took = [(); 5].map(|()| world.request(0, 20));
        world.links[0].is_cut.store(true, Ordering::Relaxed);
        world.sync_all();
        world.advance(Duration::from_millis(1));
        assert!(world.take(0, 1).is_allowed());
        for took in &took {
            world.put_back(0, 20, took);
        }
        // Half of what was left.
        assert_eq!(world.exhaust(0), 449, "{quota:?}");
    }
}

/// A request that was not counted, because memory is full, is not refunded either.
#[test]
fn a_request_that_was_not_counted_is_not_refunded() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0], quota.clone());
        world.config.memory = StoreConfig { max_memory: 0 };
        world.restart(0);
        let took = world.request(0, 5);
        assert!(took.decision.is_allowed());
        // As if another counter had made room meanwhile.
        world.config.memory = StoreConfig {
            max_memory: 1 << 20,
        };
        world.restart(0);
        world.take(0, 5);
        world.put_back(0, 5, &took);
        assert_eq!(world.take(0, 0).remaining, 995, "{quota:?}");
    }
}

/// A request that was charged to the node's share, because memory is full, is refunded there, and not to a counter that
/// found room meanwhile.
#[test]
fn a_request_that_found_no_room_is_refunded_to_the_share() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0], quota.clone());
        world.config.memory = StoreConfig { max_memory: 0 };
        world.restart(0);
        world.sync_node(0);
        world.on_full = OnFull::Shared;
        world.take(0, 100);
        let took = world.request(0, 300);
        assert!(took.decision.is_allowed());
        let mut corrected = took.decision;
        world.put_back(0, 300, &took);
        let charge = world.charge(300);
        let eventual = &world.nodes[0].eventual;
        eventual.correct(&charge, &took, &mut corrected);
        assert_eq!(corrected.remaining, 400, "{quota:?}");
        // Half of the limit is the share: the node that was restarted is still a member.
        assert_eq!(world.exhaust(0), 400, "{quota:?}");
        world.config.memory = StoreConfig::default();
        world.restart(0);
        world.take(0, 5);
        world.put_back(0, 5, &took);
        assert_eq!(world.take(0, 0).remaining, 995, "{quota:?}");
    }
}

/// However many requests are denied, those that are not find the whole limit.
#[test]
fn a_flood_of_denied_requests_does_not_use_up_the_budget() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 2], quota.clone());
        world.look_all();
        let mut allowed = 0;
        for round in 0..2_000 {
            let took = world.request(0, 1);
            if took.decision.is_allowed() {
                world.put_back(0, 1, &took);
            }
            allowed += u64::from(round % 5 == 0 && world.take(1, 1).is_allowed());
            if round % 10 == 0 {
                world.sync_all();
            }
        }
        assert!(allowed >= 395, "{allowed}: {quota:?}");
    }
}

/// A refund on one node is one on all.
#[test]
fn a_refund_is_for_all() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0, 0, 1], quota.clone());
        world.take(1, 100);
        world.sync_all();
        world.look_all();
        world.nodes[0]
            .eventual
            .refund(KEY, &quota, 60, RefundTo::Current);
        // No more than is used.
        world.nodes[0]
            .eventual
            .refund(KEY, &quota, 1_000, RefundTo::Current);
        world.look_all();
        world.look_all();
        for node in 0..3 {
            assert_eq!(world.take(node, 0).remaining, 1_000, "{node}: {quota:?}");
        }
    }
}

/// A refund repays what is owed above the limit, as much as it says, on all nodes.
#[test]
fn a_refund_repays_debt() {
    let postpaid = Allowance::Postpaid { max_debt: None };
    for algorithm in quotas(1_000).map(|quota| quota.algorithm()) {
        let quota = quota_with(1_000, algorithm, postpaid);
        let most = most(&quota);
        for is_cut in [false, true] {
            let mut world = World::new(&[0], quota.clone());
            world.look_all();
            world.links[0].is_cut.store(is_cut, Ordering::Relaxed);
            world.sync_all();
            // More than is ever charged: the rest is forgotten.
            world.take(0, 1_500);
            world.take(0, 1_500);
            let refund = |world: &World, cost| {
                let eventual = &world.nodes[0].eventual;
                eventual.refund(KEY, &quota, cost, RefundTo::Current);
            };
            refund(&world, most - 900);
            assert_eq!(world.take(0, 0).remaining, 100, "{is_cut}: {quota:?}");
            refund(&world, 300);
            assert_eq!(world.take(0, 0).remaining, 400, "{is_cut}: {quota:?}");
            world.links[0].is_cut.store(false, Ordering::Relaxed);
            world.look_all();
            world.look_all();
            assert_eq!(world.take(0, 0).remaining, 400, "{is_cut}: {quota:?}");
        }
    }
}

/// A refund of a charge repays as much as was charged of it, though the charge was larger than the most debt.
#[test]
fn a_refund_of_a_charge_repays_debt() {
    let postpaid = Allowance::Postpaid { max_debt: None };
    for algorithm in quotas(1_000).map(|quota| quota.algorithm()) {
        let quota = quota_with(1_000, algorithm, postpaid);
        let mut world = World::new(&[0], quota.clone());
        world.look_all();
        let at = world.request(0, 5_000).charged.unwrap();
        let stamp = ChargeStamp {
            at,
            resets_at: at,
            is_shared: false,
        };
        let eventual = &world.nodes[0].eventual;
        eventual.refund(KEY, &quota, 5_000, RefundTo::Charge(stamp));
        assert_eq!(world.take(0, 0).remaining, 1_000, "{quota:?}");
    }
}

/// A late refund goes to the slot of its charge: as much is left as had it never been made, or less.
#[test]
fn a_late_refund_makes_no_room_of_its_own() {
    for quota in quotas(1_000) {
        let window = quota.window();
        for (wait, is_exact) in [
            (Duration::ZERO, true),
            (window / 32, true),
            (window, false),
            (window * 3, false),
        ] {
            let remaining = |is_charged: bool| {
                let mut world = World::new(&[0], quota.clone());
                world.look_all();
                let took = is_charged.then(|| world.request(0, 5));
                world.sync_node(0);
                world.advance(wait);
                world.take(0, 7);
                let at = took.and_then(|took| took.charged);
                if let Some(at) = at {
                    let stamp = ChargeStamp {
                        at,
                        resets_at: at,
                        is_shared: false,
                    };
                    let eventual = &world.nodes[0].eventual;
                    eventual.refund(KEY, &quota, 5, RefundTo::Charge(stamp));
                }
                world.take(0, 0).remaining
            };
            let (refunded, untouched) = (remaining(true), remaining(false));
            assert!(refunded <= untouched, "{wait:?}: {refunded} of {quota:?}");
            assert!(!is_exact || refunded == untouched, "{wait:?}: {quota:?}");
        }
    }
}

/// Three nodes that have admitted 70 each, and know of it.
fn used_by_three(quota: &Quota) -> World {
    let mut world = World::new(&[0; 3], quota.clone());
    for node in 0..3 {
        world.take(node, 70);
    }
    world.look_all();
    world.look_all();
    world
}

/// A limit that several nodes give back whole, before they have exchanged, is given back once.
#[test]
fn the_same_refunded_on_several_nodes_counts_once() {
    for quota in quotas(1_000) {
        for is_reset in [false, true] {
            let mut world = used_by_three(&quota);
            for node in &world.nodes {
                if is_reset {
                    node.eventual.reset(KEY, &quota);
                } else {
                    node.eventual.refund(KEY, &quota, 1_000, RefundTo::Current);
                }
            }
            for _ in 0..4 {
                world.look_all();
            }
            assert!(world.take(1, 60).is_allowed());
            world.look_all();
            world.look_all();
            for node in 0..3 {
                let remaining = world.take(node, 0).remaining;
                assert_eq!(remaining, 940, "{node}, {is_reset}: {quota:?}");
            }
        }
    }
}

/// Refunds of different requests on several nodes all count, also if little was admitted lately.
#[test]
fn different_refunds_on_several_nodes_all_count() {
    for quota in quotas(1_000) {
        let mut world = used_by_three(&quota);
        // Where there are slots inside a window, the last one has 1.
        world.advance(quota.window() / 16);
        world.take(0, 1);
        world.look_all();
        world.look_all();
        let before = world.take(0, 0).remaining;
        for node in &world.nodes {
            node.eventual.refund(KEY, &quota, 10, RefundTo::Current);
        }
        for _ in 0..3 {
            world.look_all();
        }
        for node in 0..3 {
            let remaining = world.take(node, 0).remaining;
            assert_eq!(remaining, before + 30, "{node}: {quota:?}");
        }
    }
}

/// What the store lost counts with all nodes that knew it, and comes back where they still have it.
#[test]
fn what_the_store_lost_is_not_forgotten() {
    for quota in quotas(1_000) {
        let mut world = used_by_three(&quota);
        assert_eq!(world.take(0, 0).remaining, 790, "{quota:?}");
        world.links[0].store.clear();
        for _ in 0..3 {
            world.look_all();
        }
        for node in 0..3 {
            assert_eq!(world.take(node, 0).remaining, 790, "{node}: {quota:?}");
        }
        world.take(2, 10);
        world.look_all();
        world.look_all();
        for node in 0..3 {
            assert_eq!(world.take(node, 0).remaining, 780, "{node}: {quota:?}");
        }
    }
}

/// A reset after a pause refunds nothing that was full again by itself.
#[test]
fn a_reset_after_a_pause_refunds_nothing() {
    for quota in quotas(7) {
        let mut world = World::new(&[0], quota.clone());
        for _ in 0..7 {
            world.take(0, 1);
            world.sync_node(0);
        }
        for _ in 0..4 {
            world.advance(quota.window());
            world.look(0);
        }
        world.nodes[0].eventual.reset(KEY, &quota);
        world.sync_node(0);
        world.sync_node(0);
        let taken = (0..14).filter(|_| {
            world.sync_node(0);
            world.take(0, 1).is_allowed()
        });
        assert_eq!(taken.count(), 7, "{quota:?}");
    }
}
