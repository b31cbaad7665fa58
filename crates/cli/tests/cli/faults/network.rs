//! A bad network between a node and Redis.

use std::time::Duration;

use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer, wait_until};

use super::node::Node;
use super::{Counts, Marks, ride_out};

const KEPT: Counts = Counts::Kept;

#[test]
fn replies_come_late() {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url());
    let marks = Marks {
        errors: &["timeout"],
        counts: KEPT,
    };
    let late = Fault::Delay(Duration::from_secs(3));
    ride_out(&node, || proxy.set(late), || proxy.set(Fault::None), marks);
}

#[test]
fn bytes_get_lost() {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url());
    let marks = Marks {
        errors: &["timeout", "connection"],
        counts: KEPT,
    };
    ride_out(
        &node,
        || proxy.set(Fault::Drop),
        || proxy.set(Fault::None),
        marks,
    );
}

#[test]
fn connections_are_refused() {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url());
    let marks = Marks {
        errors: &["connection"],
        counts: KEPT,
    };
    ride_out(
        &node,
        || proxy.set(Fault::Refuse),
        || proxy.set(Fault::None),
        marks,
    );
}

/// One lost connection is no reason to stop asking: the call that was on it is decided alone, and the next one
/// has a connection of its own.
#[test]
fn a_connection_is_cut_in_the_middle_of_a_reply() {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url());
    for n_bytes in 0..8 {
        wait_until("a reply to a caller is cut", || {
            // It may be a reply to a heartbeat that is cut.
            proxy.set(Fault::CutAfter(n_bytes));
            let answer = node.ask("ample", "cut");
            assert!(answer.is_allowed, "{answer:?}");
            answer.is_degraded
        });
        proxy.set(Fault::None);
        node.ask_until_mended();
    }
    // The other core may have answered after the last of them.
    assert!(node.sum("tidegate_store_reconnects_total", "") >= 1);
    assert!(node.sum("tidegate_store_call_errors_total", "kind=\"connection\"") >= 8);
}
