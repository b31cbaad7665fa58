//! Whatever the network does, no more is admitted than the bound allows.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::Quota;

use super::judge::most_used;
use super::quotas;
use super::world::{Fate, Sync, World, poll};
use crate::capacity::capacity;
use crate::eventual::budget::budget;
use crate::eventual::overshoot_bound;

const NODES: usize = 3;

/// The dearest request.
const MOST_COST: u64 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Take {
        node: usize,
        cost: u64,
        times: u8,
    },
    Exhaust {
        node: usize,
    },
    Sync {
        node: usize,
        nth: usize,
        fate: Fate,
    },
    /// Goes on with what waits for a slow reply.
    Reply {
        node: usize,
        nth: usize,
    },
    /// Delivers what is late.
    Late,
    Wait {
        millis: u64,
    },
    Restart {
        node: usize,
    },
}

/// The network delays and repeats, but no exchange fails.
fn slow() -> BoxedStrategy<Fate> {
    prop_oneof![
        6 => Just(Fate::Done),
        1 => Just(Fate::Twice),
        3 => Just(Fate::Slow),
    ]
    .boxed()
}

/// Anything may be lost, delayed, repeated and out of order.
fn lossy() -> BoxedStrategy<Fate> {
    prop_oneof![
        6 => slow(),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::ReplyLost),
        1 => Just(Fate::Late),
    ]
    .boxed()
}

/// Nodes die and start anew now and then.
fn step_or_restart(fate: BoxedStrategy<Fate>, stores: usize) -> impl Strategy<Value = Step> {
    let restart = (0..NODES).prop_map(|node| Step::Restart { node });
    prop_oneof![40 => step(fate, stores), 1 => restart]
}

fn step(fate: BoxedStrategy<Fate>, stores: usize) -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    let nth = 0..stores;
    prop_oneof![
        6 => (node.clone(), 1..=MOST_COST, 1..20_u8)
            .prop_map(|(node, cost, times)| Step::Take { node, cost, times }),
        4 => node.clone().prop_map(|node| Step::Exhaust { node }),
        12 => (node.clone(), nth.clone(), fate)
            .prop_map(|(node, nth, fate)| Step::Sync { node, nth, fate }),
        4 => (node.clone(), nth).prop_map(|(node, nth)| Step::Reply { node, nth }),
        1 => Just(Step::Late),
        4 => prop_oneof![1..200_u64, 1_000..4_000_u64].prop_map(|millis| Step::Wait { millis }),
    ]
}

/// Runs the steps, and says how often a node was started anew.
fn run(world: &mut World, steps: &[Step]) -> u64 {
    let stores = world.links.len();
    let mut under_way: Vec<Option<Sync>> = (0..NODES * stores).map(|_| None).collect();
    let mut restarts = 0;
    for step in steps {
        match *step {
            Step::Take { node, cost, times } => {
                for _ in 0..times {
                    world.take(node, cost);
                }
            }
            Step::Exhaust { node } => {
                world.exhaust(node);
            }
            Step::Sync { node, nth, fate } => {
                world.links.iter().for_each(|link| link.set_fate(fate));
                let place = &mut under_way[node * stores + nth];
                let mut sync = place.take().unwrap_or_else(|| world.sync(node, nth));
                *place = poll(&mut sync).is_none().then_some(sync);
            }
            Step::Reply { node, nth } => {
                let place = &mut under_way[node * stores + nth];
                *place = place
                    .take()
                    .and_then(|mut sync| poll(&mut sync).is_none().then_some(sync));
            }
            Step::Late => world.links.iter().for_each(|link| link.deliver_late()),
            Step::Wait { millis } => world.advance(Duration::from_millis(millis)),
            Step::Restart { node } => {
                for nth in 0..stores {
                    under_way[node * stores + nth] = None;
                }
                world.restart(node);
                restarts += 1;
            }
        }
    }
    restarts
}

/// What a node that died may have left untold, and its successor may admit before it knows anybody.
fn bound_of_restart(world: &World, quota: &Quota) -> u64 {
    2 * budget(capacity(quota), world.config.slack, 1).max(MOST_COST)
}

fn check(regions: &[usize], limit: u64, which: usize, steps: &[Step], is_lossy: bool) {
    let quota = quotas(limit)[which].clone();
    let mut world = World::new(regions, quota.clone());
    let restarts = run(&mut world, steps);
    let members = u32::try_from(NODES).unwrap();
    let mut bound = overshoot_bound(&quota, members, world.config.slack, MOST_COST);
    bound += restarts * bound_of_restart(&world, &quota);
    if is_lossy {
        // Each node that is cut off admits its part of what it thinks is left, and at least one; a
        // node that starts then thinks that it is the only one.
        bound += (1 + restarts) * capacity(&quota) + u64::from(members) * MOST_COST;
    }
    let used = most_used(&quota, &world.admitted);
    prop_assert_bound(used, limit + bound, &quota);
}

fn prop_assert_bound(used: u64, most: u64, quota: &Quota) {
    assert!(used <= most, "{used} used, {most} at most: {quota:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nodes that tell when they like, over a network that delays and repeats, keep to the bound.
    #[test]
    fn no_schedule_gets_above_the_bound(
        limit in prop_oneof![1..20_u64, 100..2_000_u64],
        which in 0..7_usize,
        steps in prop::collection::vec(step(slow(), 1), 0..200),
    ) {
        check(&[0; NODES], limit, which, &steps, false);
    }

    /// The same between two regions, however late one hears of the other.
    #[test]
    fn no_delay_between_regions_gets_above_the_bound(
        limit in prop_oneof![1..20_u64, 100..2_000_u64],
        which in 0..7_usize,
        steps in prop::collection::vec(step(slow(), 2), 0..200),
    ) {
        check(&[0, 1, 1], limit, which, &steps, false);
    }

    /// A node that dies takes at most its budget with it, and its successor at most `slack` of the limit.
    #[test]
    fn no_restart_gets_above_the_bound(
        limit in prop_oneof![1..20_u64, 100..2_000_u64],
        which in 0..7_usize,
        steps in prop::collection::vec(step_or_restart(slow(), 1), 0..200),
    ) {
        check(&[0; NODES], limit, which, &steps, false);
    }

    /// When anything may be lost, late or out of order, nodes go by their shares in between.
    #[test]
    fn no_loss_gets_above_the_bound_of_shares(
        limit in prop_oneof![1..20_u64, 100..2_000_u64],
        which in 0..7_usize,
        steps in prop::collection::vec(step_or_restart(lossy(), 2), 0..200),
    ) {
        check(&[0, 0, 1], limit, which, &steps, true);
    }
}
