//! One server that fails by itself.

use tidegate_store_redis::test_util::{RedisServer, ServerOptions, wait_until};

use super::node::{Door, Node, Patience};
use super::{
    By, Counts, Marks, hold_by_all_doors, logs_once_per_change, ride_out, shows_the_fault,
};
use crate::program::run;

/// What a node needs, as docs/failure.md has it.
const RIGHTS: [&str; 8] = [
    "~tg1*",
    "+@read",
    "+@write",
    "+@scripting",
    "+ping",
    "+role",
    "+time",
    "+info",
];

/// A Redis that is gone, and comes back empty.
const DEATH: Marks = Marks {
    error: "connection",
    besides: &[],
    fault: "refused",
    counts: Counts::Lost,
};

/// A Redis that says no.
const REFUSAL: Marks = Marks {
    error: "reply",
    besides: &[],
    fault: "",
    counts: Counts::Kept,
};

#[test]
fn redis_is_killed_and_starts_again_empty() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Endless);
    ride_out(&node, || redis.kill(), || redis.restart(), DEATH);
    logs_once_per_change(node, 1);
}

#[test]
fn redis_stalls() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Short);
    let marks = Marks {
        error: "timeout",
        // The connections that it does not answer on are given up.
        besides: &["connection"],
        fault: "in time",
        counts: Counts::Kept,
    };
    ride_out(&node, || redis.pause(), || redis.resume(), marks);
    logs_once_per_change(node, 1);
}

#[test]
fn redis_is_out_of_memory() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Endless);
    let set = |most: &str| {
        redis.must(&["CONFIG", "SET", "maxmemory", most]);
    };
    let marks = Marks {
        fault: "OOM",
        ..REFUSAL
    };
    ride_out(&node, || set("1"), || set("0"), marks);
    logs_once_per_change(node, 1);
}

#[test]
fn redis_becomes_a_replica_that_takes_no_writes() {
    let redis = RedisServer::start();
    let master = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["repl-diskless-sync-delay".to_owned(), "0".to_owned()]],
        ..ServerOptions::default()
    });
    let node = Node::start(&redis.url(), Patience::Endless);
    let port = master.port().to_string();
    let obey = || {
        redis.must(&["REPLICAOF", "127.0.0.1", &port]);
        wait_until("the replica has what its master has", || {
            let info = redis.must(&["INFO", "replication"]);
            let info = info.value().str().unwrap_or_default().to_owned();
            info.contains("master_link_status:up")
        });
    };
    let rule = || {
        redis.must(&["REPLICAOF", "NO", "ONE"]);
    };
    let marks = Marks {
        fault: "READONLY",
        // Its master has nothing.
        counts: Counts::Lost,
        ..REFUSAL
    };
    ride_out(&node, obey, rule, marks);
    logs_once_per_change(node, 1);
}

/// Lets a user of its own in.
fn start_with_user() -> (RedisServer, String) {
    let redis = RedisServer::start();
    set_user(&redis, &[&["on", ">right"], &RIGHTS[..]].concat());
    let url = redis.url().replace("redis://", "redis://node:right@");
    (redis, url)
}

fn set_user(redis: &RedisServer, words: &[&str]) {
    redis.must(&[&["ACL", "SETUSER", "node"], words].concat());
}

#[test]
fn the_password_is_wrong_all_of_a_sudden() {
    let (redis, url) = start_with_user();
    let node = Node::start(&url, Patience::Endless);
    let change = || {
        set_user(&redis, &["resetpass", ">other"]);
        redis.must(&["CLIENT", "KILL", "USER", "node"]);
    };
    let change_back = || {
        let store = node.get("/api/v1/store");
        assert!(!store.contains("right"), "no password is shown: {store}");
        set_user(&redis, &["resetpass", ">right"]);
    };
    let marks = Marks {
        // Whoever was asked something when the connections were ended.
        besides: &["connection"],
        fault: "WRONGPASS",
        ..REFUSAL
    };
    ride_out(&node, change, change_back, marks);
    logs_once_per_change(node, 1);
}

/// Somebody takes rights away, in part; the rest is enough to say that all is well.
#[test]
fn the_rights_are_too_narrow_all_of_a_sudden() {
    let (redis, url) = start_with_user();
    let node = Node::start(&url, Patience::Endless);
    let marks = Marks {
        fault: "NOPERM",
        ..REFUSAL
    };
    let narrow = || set_user(&redis, &["-@scripting"]);
    let widen = || set_user(&redis, &["+@scripting"]);
    ride_out(&node, narrow, widen, marks);
    set_user(&redis, &["resetkeys", "~other*"]);
    node.ask_until_broken("probe");
    shows_the_fault(&node, "NOPERM");
    hold_by_all_doors(&node, By::Node, "alone without keys");
    set_user(&redis, &["~tg1*"]);
    node.ask_until_mended();
    logs_once_per_change(node, 2);
}

#[test]
fn redis_has_too_few_replicas() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Endless);
    let set = |least: &str| {
        redis.must(&["CONFIG", "SET", "min-replicas-to-write", least]);
    };
    let marks = Marks {
        fault: "NOREPLICAS",
        ..REFUSAL
    };
    ride_out(&node, || set("1"), || set("0"), marks);
    logs_once_per_change(node, 1);
}

#[test]
fn a_node_starts_without_redis() {
    let redis = RedisServer::start();
    redis.kill();
    let node = Node::start(&redis.url(), Patience::Endless);
    node.ask_until_broken("probe");
    hold_by_all_doors(&node, By::Node, "alone");
    let health = run(&["health", "--http", node.address()]);
    assert_eq!(health.code, Some(0));
    assert!(health.stdout.starts_with("degraded"), "{health:?}");
    redis.restart();
    node.ask_until_mended();
    hold_by_all_doors(&node, By::Redis, "new");
}

/// Nodes that are cut off enforce their shares, so that together they admit one limit.
#[test]
fn two_nodes_alone_admit_one_limit_together() {
    let redis = RedisServer::start();
    let nodes = [(); 2].map(|()| Node::start(&redis.url(), Patience::Endless));
    meet(&nodes);
    redis.kill();
    for node in &nodes {
        node.ask_until_broken("probe");
        for door in Door::ALL {
            let caller = format!("both by {door:?}");
            assert_eq!(node.tally(door, "local", &caller, 10).n_allowed, 5);
        }
    }
}

/// What Redis admitted on a node counts when the node is alone: Redis dies in the middle of a window, and with
/// traffic that is even not one request too many passes.
#[test]
fn two_nodes_admit_one_limit_in_the_window_in_which_redis_dies() {
    let redis = RedisServer::start();
    let nodes = [(); 2].map(|()| Node::start(&redis.url(), Patience::Endless));
    meet(&nodes);
    let ask_each = |times: usize| {
        let tallies = nodes
            .iter()
            .map(|node| node.tally(Door::Http, "local", "seeded", times));
        tallies.map(|tally| tally.n_allowed).sum::<usize>()
    };
    assert_eq!(ask_each(3), 6);
    redis.kill();
    for node in &nodes {
        node.ask_until_broken("probe");
    }
    assert_eq!(ask_each(10), 4, "of 10");
}

/// A caller whom Redis refused is refused on: a node that admitted nobody itself knows of it, too.
#[test]
fn a_node_alone_refuses_whom_redis_refused() {
    let redis = RedisServer::start();
    let [first, second] = [(); 2].map(|()| Node::start(&redis.url(), Patience::Endless));
    assert_eq!(first.tally(Door::Http, "local", "spent", 10).n_allowed, 10);
    assert!(!second.ask("local", "spent").is_allowed);
    redis.kill();
    second.ask_until_broken("probe");
    // For 100 ms the denial of Redis is answered from memory, and then by the node alone.
    wait_until("the node decides alone", || {
        let answer = second.ask("local", "spent");
        assert!(!answer.is_allowed, "{answer:?}");
        answer.is_degraded
    });
}

/// With leases, the default, all of that holds as well, whatever permits the node has in hand.
#[test]
fn redis_is_killed_under_leases() {
    let redis = RedisServer::start();
    let node = Node::start_with(&redis.url(), Patience::Endless, "leased");
    for answer in node.ask_often(Door::Http, "ample", "hot", 200) {
        assert!(answer.is_allowed && !answer.is_degraded, "{answer:?}");
    }
    ride_out(&node, || redis.kill(), || redis.restart(), DEATH);
    logs_once_per_change(node, 1);
}

fn meet(nodes: &[Node]) {
    for node in nodes {
        wait_until("it knows of the other", || {
            node.page().sum("tidegate_members", "") > 1
        });
    }
}
