//! Nodes that cannot tell everybody.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::quotas;
use super::world::World;

/// While the store is away each node keeps to its part of what was left, and then to its share.
#[test]
fn without_the_store_nodes_go_by_their_shares() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 4], quota.clone());
        world.take(0, 100);
        world.sync_node(0);
        world.look_all();
        world.links[0].is_cut.store(true, Ordering::Relaxed);
        world.sync_all();
        for node in 0..4 {
            assert_eq!(world.exhaust(node), 225, "{quota:?}");
        }
        assert_eq!(world.total(), 1_000, "{quota:?}");
        // Two windows later all is as new, but for whom it is.
        world.advance(Duration::from_secs(20));
        for node in 0..4 {
            assert_eq!(world.exhaust(node), 250, "{quota:?}");
        }
    }
}

/// What was admitted while the store was away is told when it is back.
#[test]
fn nothing_is_lost_while_the_store_is_away() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0; 2], quota.clone());
        world.look_all();
        world.links[0].is_cut.store(true, Ordering::Relaxed);
        world.sync_all();
        assert_eq!(world.exhaust(0), 500, "{quota:?}");
        world.sync_all();
        assert_eq!(world.nodes[0].eventual.report().pending, 500);
        world.links[0].is_cut.store(false, Ordering::Relaxed);
        world.look_all();
        world.look_all();
        assert_eq!(world.nodes[0].eventual.report().pending, 0);
        for node in [0, 1] {
            assert_eq!(world.take(node, 0).remaining, 500, "{quota:?}");
        }
    }
}

/// Two regions that do not hear of each other admit the limit between them, and agree again when they do.
#[test]
fn regions_converge_after_a_cut() {
    for quota in quotas(1_000) {
        let mut world = World::new(&[0, 0, 1, 1], quota.clone());
        world.look_all();
        for node in 0..4 {
            assert_eq!(world.nodes[node].eventual.members(), 4);
        }
        cut_between(&world, true);
        for _ in 0..20 {
            for node in 0..4 {
                world.exhaust(node);
                sync_within(&world, node);
            }
        }
        assert_eq!(world.total(), 1_000, "{quota:?}");
        world.advance(Duration::from_secs(5));
        let again = world.total();
        for _ in 0..20 {
            for node in 0..4 {
                world.exhaust(node);
                sync_within(&world, node);
            }
        }
        assert!(world.total() <= again + 500, "{quota:?}");
        cut_between(&world, false);
        world.look_all();
        world.look_all();
        world.look_all();
        let left: Vec<u64> = (0..4).map(|node| world.take(node, 0).remaining).collect();
        assert!(
            left.iter().all(|&node| node == left[0]),
            "{left:?}: {quota:?}"
        );
    }
}

/// Each region can reach its own store, and not the other's; told once, so that the nodes know.
fn cut_between(world: &World, is_cut: bool) {
    for node in 0..world.nodes.len() {
        let other = 1 - world.nodes[node].region;
        world.links[other].is_cut.store(is_cut, Ordering::Relaxed);
        world.sync_node(node);
        world.links[other].is_cut.store(false, Ordering::Relaxed);
    }
}

/// Syncs a node with the store of its own region.
fn sync_within(world: &World, node: usize) {
    let mut sync = world.sync(node, 0);
    assert!(matches!(super::world::poll(&mut sync), Some(Ok(()))));
}
