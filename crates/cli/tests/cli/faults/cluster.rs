//! A Cluster that loses a master, and one whose slots move.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_store_redis::client::slot_of;
use tidegate_store_redis::test_util::{ClusterSetup, RedisServer, wait_until};

use super::node::{Door, Node, Patience};
use super::page::Page;
use super::{By, KINDS, hold, hold_by_all_doors, shows_no_fault, shows_the_fault};
use super::{logs_once_per_change, waits_for_nobody};

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

/// Kills the last master and brings its slots back. Callers who lie on it go by the policies, and nobody else
/// notices.
fn lose_a_master(cluster: &ClusterSetup, node: &Node, mend_it: impl FnOnce(&RedisServer)) {
    hold_by_all_doors(node, By::Redis, "before");
    let lost = cluster.servers().last().unwrap();
    lost.kill();
    wait_until("the breaker opens", || {
        Callers::ask(node);
        node.is_broken()
    });
    shows_the_fault(node, "refused");
    let callers = Callers::ask(node);
    // All limits of a caller lie in one slot, so each of them comes by one door.
    let [[http, grpc, impatient, ..], [other_http, other_grpc, ..]] =
        [&callers.alone[..], &callers.by_redis[..]]
    else {
        panic!("all on one master: {:?}", callers.alone);
    };
    for (door, alone, by_redis) in [
        (Door::Http, http, other_http),
        (Door::Grpc, grpc, other_grpc),
    ] {
        hold(node, By::Node, door, alone);
        hold(node, By::Redis, door, by_redis);
    }
    waits_for_nobody(node, impatient);
    mend_it(lost);
    wait_until("Redis decides on everybody again", || {
        Callers::ask(node).alone.is_empty()
    });
    hold_by_all_doors(node, By::Redis, "after");
    shows_no_fault(node);
}

/// Of this server lost connections are counted, and nothing else of any other.
#[track_caller]
fn tells_who_was_lost(page: &Page, cluster: &ClusterSetup, lost: Option<&RedisServer>) {
    for server in cluster.servers() {
        let is_lost = lost.is_some_and(|lost| lost.port() == server.port());
        let opened = page.sum("tidegate_store_breaker_opened_total", &label(server));
        assert_eq!(opened, u64::from(is_lost));
        for kind in KINDS {
            let label = format!("{},kind=\"{kind}\"", label(server));
            let errors = page.sum("tidegate_store_call_errors_total", &label);
            assert_eq!(errors > 0, is_lost && kind == "connection", "{label}");
        }
    }
}

#[test]
fn a_master_is_lost_and_the_others_go_on() {
    let cluster = ClusterSetup::start(3);
    let node = start(&cluster);
    lose_a_master(&cluster, &node, RedisServer::restart);
    tells_who_was_lost(&node.page(), &cluster, cluster.servers().last());
    logs_once_per_change(node, 1);
}

/// A replica takes the place of the master that is lost, with its counts; the master has no series any more.
#[test]
fn a_replica_takes_the_place_of_a_master() {
    let cluster = ClusterSetup::start(3);
    let replica = cluster.start_replica(2);
    let node = start(&cluster);
    let left = |number: usize| node.ask("local", &format!("counted {number}")).remaining;
    let left = || -> Vec<Option<u64>> { (0..N_CALLERS).map(left).collect() };
    assert_eq!(left(), [Some(9); N_CALLERS]);
    cluster.servers()[2].must(&["WAIT", "1", "0"]);
    lose_a_master(&cluster, &node, |_| cluster.promote(&replica));
    assert_eq!(left(), [Some(8); N_CALLERS]);
    let page = node.page();
    tells_who_was_lost(&page, &cluster, None);
    let servers = page.labels("tidegate_store_breaker", "server");
    assert_eq!(servers.len(), 3);
    assert!(servers.contains(&*replica.address().to_string()));
    let log = node.end();
    for change in ["circuit breaker opened", "others have its slots"] {
        let lines = log.iter().filter(|line| line.contains(change));
        assert_eq!(lines.count(), 1, "{log:#?}");
    }
}

/// Somebody wrote the URL of a Redis alone, and Redis was away when that could have been noticed.
#[test]
fn a_server_of_a_cluster_is_none_alone() {
    let cluster = ClusterSetup::start(1);
    let redis = &cluster.servers()[0];
    redis.kill();
    let node = Node::start(&redis.url(), Patience::Endless);
    node.ask_until_broken("probe");
    redis.restart();
    shows_the_fault(&node, "part of a Cluster; write redis+cluster://");
    hold_by_all_doors(&node, By::Node, "alone");
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
