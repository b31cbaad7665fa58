//! A Cluster that loses a master, and one whose slots move.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_store_redis::client::slot_of;
use tidegate_store_redis::test_util::{ClusterSetup, wait_until};

use super::node::Node;

/// So many callers that every master has some of them.
const N_CALLERS: usize = 30;

/// So many slots are moved.
const N_MOVES: usize = 6;

fn caller(number: usize) -> String {
    format!("caller-{number}")
}

/// How many callers are decided without Redis.
fn n_alone(node: &Node) -> usize {
    let alone = |number: &usize| node.ask("ample", &caller(*number)).is_degraded;
    (0..N_CALLERS).filter(alone).count()
}

/// The slots that have counters in them.
fn slots_in_use(cluster: &ClusterSetup) -> BTreeSet<u16> {
    let mut slots = BTreeSet::new();
    for server in cluster.servers() {
        let keys = server.must(&["KEYS", "*"]);
        let keys = keys.array().expect("a list of keys");
        slots.extend(keys.filter_map(|key| Some(slot_of(key.text()?))));
    }
    slots
}

#[test]
fn a_master_is_lost_and_the_others_go_on() {
    let cluster = ClusterSetup::start(3);
    let node = Node::start(&cluster.url());
    wait_until("Redis decides on everybody", || n_alone(&node) == 0);
    let lost = &cluster.servers()[2];
    lost.kill();
    wait_until("the breaker opens", || {
        n_alone(&node);
        node.is_broken()
    });
    let alone = n_alone(&node);
    assert!(0 < alone && alone < N_CALLERS, "{alone} of {N_CALLERS}");
    assert_eq!(node.get("/healthcheck"), "degraded");
    lost.restart();
    wait_until("Redis decides on everybody again", || n_alone(&node) == 0);
    assert_eq!(node.get("/healthcheck"), "OK");
    assert!(node.sum("tidegate_limits_without_store_total", "by=\"node\"") >= 1);
}

/// Slots go from master to master while their callers ask: every answer is Redis' own, and no count is lost or
/// made twice.
#[test]
fn slots_move_while_callers_ask() {
    let cluster = ClusterSetup::start(3);
    let node = Node::start(&cluster.url());
    wait_until("Redis decides on everybody", || n_alone(&node) == 0);
    let left = |number| node.ask("ample", &caller(number)).remaining.unwrap();
    let before: Vec<u64> = (0..N_CALLERS).map(left).collect();
    let is_over = AtomicBool::new(false);
    let n_rounds = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut n_rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(n_alone(&node), 0);
                n_rounds += 1;
            }
            n_rounds
        });
        for slot in slots_in_use(&cluster).into_iter().take(N_MOVES) {
            let to = (cluster.owner(slot) + 1) % 3;
            cluster.begin_move(slot, to);
            cluster.finish_move(slot, to);
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    for (number, before) in before.into_iter().enumerate() {
        assert_eq!(left(number), before - n_rounds - 1, "of caller {number}");
    }
    assert!(node.sum("tidegate_store_redirected_calls_total", "") >= 1);
}
