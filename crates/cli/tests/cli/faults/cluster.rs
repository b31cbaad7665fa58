//! A Cluster that loses a master, and one whose slots move.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_store_redis::client::slot_of;
use tidegate_store_redis::test_util::{ClusterSetup, RedisServer, wait_until};

use super::node::{Door, Node, Patience};
use super::{By, KINDS, hold, hold_by_all_doors, shows_no_fault, shows_the_fault};
use super::{logs_once_per_change, stays_in_microseconds};

/// So many callers that every master has several of them.
const N_CALLERS: usize = 30;

/// Callers by who decides on them.
struct Callers {
    by_redis: Vec<String>,
    alone: Vec<String>,
}

// === impl Callers ===

impl Callers {
    fn ask(node: &Node) -> Self {
        let is_alone = |caller: &String| {
            let answer = node.ask("ample", caller);
            assert!(answer.is_allowed, "{answer:?}");
            answer.is_degraded
        };
        let (alone, by_redis) = callers().partition(is_alone);
        Self { by_redis, alone }
    }
}

fn callers() -> impl Iterator<Item = String> {
    (0..N_CALLERS).map(|number| format!("caller-{number}"))
}

/// A node on whose callers Redis decides.
fn start(cluster: &ClusterSetup) -> Node {
    let node = Node::start(&cluster.url(), Patience::Endless);
    wait_until("Redis decides on everybody", || {
        Callers::ask(&node).alone.is_empty()
    });
    node
}

/// The label of a server in metrics.
fn label(server: &RedisServer) -> String {
    format!("server=\"{}\"", server.address())
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

/// Callers whose master is lost go by the policies, and nobody else notices.
#[test]
fn a_master_is_lost_and_the_others_go_on() {
    let cluster = ClusterSetup::start(3);
    let node = start(&cluster);
    hold_by_all_doors(&node, By::Redis, "before");
    let lost = &cluster.servers()[2];
    lost.kill();
    wait_until("the breaker opens", || {
        Callers::ask(&node);
        node.is_broken()
    });
    shows_the_fault(&node, "refused");
    let callers = Callers::ask(&node);
    // All limits of a caller lie in one slot, so each of them can only come by one door.
    let [[http, grpc, timed, ..], [other_http, other_grpc, ..]] =
        [&callers.alone[..], &callers.by_redis[..]]
    else {
        panic!("all on one master: {:?}", callers.alone);
    };
    for (door, alone, by_redis) in [
        (Door::Http, http, other_http),
        (Door::Grpc, grpc, other_grpc),
    ] {
        hold(&node, By::Node, door, alone);
        hold(&node, By::Redis, door, by_redis);
    }
    stays_in_microseconds(&node, timed);
    lost.restart();
    wait_until("Redis decides on everybody again", || {
        Callers::ask(&node).alone.is_empty()
    });
    hold_by_all_doors(&node, By::Redis, "after");
    shows_no_fault(&node);
    let page = node.page();
    for server in cluster.servers() {
        let is_lost = server.port() == lost.port();
        let (opened, errors) = (
            "tidegate_store_breaker_opened_total",
            "tidegate_store_call_errors_total",
        );
        assert_eq!(page.sum(opened, &label(server)), u64::from(is_lost));
        for kind in KINDS {
            let label = format!("{},kind=\"{kind}\"", label(server));
            let is_counted = is_lost && kind == "connection";
            assert_eq!(page.sum(errors, &label) > 0, is_counted, "{label}");
        }
    }
    logs_once_per_change(node, 1);
}

/// Slots go from master to master while their callers ask: every answer is Redis' own, whatever the policy, and no
/// count is lost or made twice.
#[test]
fn slots_move_while_callers_ask() {
    let cluster = ClusterSetup::start(3);
    let node = start(&cluster);
    let left = |caller: &String| node.ask("ample", caller).remaining.unwrap();
    let before: Vec<u64> = callers().map(|caller| left(&caller)).collect();
    let is_over = AtomicBool::new(false);
    let n_rounds = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut n_rounds = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert!(Callers::ask(&node).alone.is_empty());
                hold_by_all_doors(&node, By::Redis, &format!("in round {n_rounds}"));
                n_rounds += 1;
            }
            n_rounds
        });
        for slot in slots_in_use(&cluster) {
            let to = (cluster.owner(slot) + 1) % 3;
            cluster.begin_move(slot, to);
            cluster.finish_move(slot, to);
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    for (caller, before) in callers().zip(before) {
        assert_eq!(left(&caller), before - n_rounds - 1, "of {caller}");
    }
    shows_no_fault(&node);
    let page = node.page();
    assert!(page.sum("tidegate_store_redirected_calls_total", "") >= 1);
    for nothing in [
        "tidegate_store_breaker_opened_total",
        "tidegate_store_call_errors_total",
        "tidegate_store_failures_total",
        "tidegate_limits_without_store_total",
        "tidegate_standby_requests_total",
    ] {
        assert_eq!(page.sum(nothing, ""), 0, "{nothing}");
    }
    logs_once_per_change(node, 0);
}
