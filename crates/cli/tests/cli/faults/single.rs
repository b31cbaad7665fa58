//! One server that fails by itself.

use tidegate_store_redis::test_util::{RedisServer, ServerOptions, wait_until};

use super::node::{Answer, Node};
use super::{Counts, Marks, decided_by_redis, holds_alone, ride_out};

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

#[test]
fn redis_is_killed_and_starts_again_empty() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url());
    let marks = Marks {
        errors: &["connection"],
        counts: Counts::Lost,
    };
    ride_out(&node, || redis.kill(), || redis.restart(), marks);
    // And once more.
    redis.kill();
    node.ask_until_broken();
    redis.restart();
    node.ask_until_mended();
    let opened = node.sum("tidegate_store_breaker_opened_total", "");
    assert!(opened >= 2);
    // The log has a line for each change, and no more.
    let log = node.end();
    for change in ["Redis fails and is not asked", "Redis is back and asked"] {
        let lines = log.iter().filter(|line| line.contains(change));
        assert_eq!(lines.count() as u64, opened, "{log:?}");
    }
}

#[test]
fn redis_stalls() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url());
    let marks = Marks {
        errors: &["timeout"],
        counts: Counts::Kept,
    };
    ride_out(&node, || redis.pause(), || redis.resume(), marks);
}

#[test]
fn redis_is_out_of_memory() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url());
    let set = |most: &str| {
        redis.must(&["CONFIG", "SET", "maxmemory", most]);
    };
    let marks = Marks {
        errors: &["reply"],
        counts: Counts::Kept,
    };
    ride_out(&node, || set("1"), || set("0"), marks);
}

#[test]
fn redis_becomes_a_replica_that_takes_no_writes() {
    let redis = RedisServer::start();
    let master = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["repl-diskless-sync-delay".to_owned(), "0".to_owned()]],
        ..ServerOptions::default()
    });
    let node = Node::start(&redis.url());
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
        errors: &["reply"],
        // Its master has nothing.
        counts: Counts::Lost,
    };
    ride_out(&node, obey, rule, marks);
}

#[test]
fn the_password_is_wrong_all_of_a_sudden() {
    let redis = RedisServer::start();
    let user = |password: &str| {
        let words = [
            &["ACL", "SETUSER", "node", "on", "resetpass"],
            &RIGHTS[..],
            &[password],
        ];
        redis.must(&words.concat());
    };
    user(">right");
    let url = redis.url().replace("redis://", "redis://node:right@");
    let node = Node::start(&url);
    let change = || {
        user(">other");
        redis.must(&["CLIENT", "KILL", "USER", "node"]);
    };
    let change_back = || {
        let store = node.get("/api/v1/store");
        assert!(store.contains("WRONGPASS"), "{store}");
        assert!(!store.contains("right"), "no password is shown: {store}");
        user(">right");
    };
    let marks = Marks {
        errors: &["reply", "connection"],
        counts: Counts::Kept,
    };
    ride_out(&node, change, change_back, marks);
}

#[test]
fn a_node_starts_without_redis() {
    let redis = RedisServer::start();
    redis.kill();
    let node = Node::start(&redis.url());
    node.ask_until_broken();
    holds_alone(&node, "from the start");
    redis.restart();
    node.ask_until_mended();
    assert_eq!(decided_by_redis(&node, "local", "new"), 9);
}

/// Nodes that are cut off enforce their shares, so that together they admit one limit.
#[test]
fn two_nodes_alone_admit_one_limit_together() {
    let redis = RedisServer::start();
    let nodes = [Node::start(&redis.url()), Node::start(&redis.url())];
    for node in &nodes {
        wait_until("it knows of the other", || {
            node.sum("tidegate_members", "") > 1
        });
    }
    redis.kill();
    for node in &nodes {
        node.ask_until_broken();
        let answers = node.ask_often("local", "both", 10);
        let n_allowed = answers.iter().filter(|it| it.is_allowed).count();
        assert_eq!(n_allowed, 5);
    }
}

/// What Redis admitted on a node counts when the node is alone: Redis dies in the middle of a window, and with
/// traffic that is even not one request too many passes.
#[test]
fn two_nodes_admit_one_limit_in_the_window_in_which_redis_dies() {
    let redis = RedisServer::start();
    let nodes = [Node::start(&redis.url()), Node::start(&redis.url())];
    for node in &nodes {
        wait_until("it knows of the other", || {
            node.sum("tidegate_members", "") > 1
        });
    }
    let ask_each = |times: usize| {
        let answers = nodes
            .iter()
            .flat_map(|node| node.ask_often("local", "seeded", times));
        answers.filter(|answer| answer.is_allowed).count()
    };
    assert_eq!(ask_each(3), 6);
    redis.kill();
    for node in &nodes {
        node.ask_until_broken();
    }
    assert_eq!(ask_each(10), 4, "of 10");
}

/// A caller whom Redis refused is refused on: a node that admitted nobody itself knows of it, too.
#[test]
fn a_node_alone_refuses_whom_redis_refused() {
    let redis = RedisServer::start();
    let nodes = [Node::start(&redis.url()), Node::start(&redis.url())];
    let [first, second] = &nodes;
    let is_allowed = |answer: &Answer| answer.is_allowed;
    assert!(first.ask_often("local", "spent", 10).iter().all(is_allowed));
    assert!(!second.ask("local", "spent").is_allowed);
    redis.kill();
    second.ask_until_broken();
    let answer = second.ask("local", "spent");
    assert!(!answer.is_allowed && answer.is_degraded, "{answer:?}");
}

/// With leases most callers do not even notice.
#[test]
fn redis_is_killed_under_leases() {
    let redis = RedisServer::start();
    let node = Node::start_with(&redis.url(), "leased");
    for answer in node.ask_often("ample", "hot", 200) {
        assert!(answer.is_allowed && !answer.is_degraded, "{answer:?}");
    }
    redis.kill();
    node.ask_until_broken();
    holds_alone(&node, "while it is gone");
    redis.restart();
    node.ask_until_mended();
    assert!(node.ask("local", "new").is_allowed);
}
