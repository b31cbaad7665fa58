//! A bad network between a node and Redis.

use std::time::Duration;

use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer, wait_until};

use super::node::{Node, Patience};
use super::{Counts, Marks, logs_once_per_change, ride_out};

/// A node behind a network with this fault, for a while.
fn ride_out_behind(fault: Fault, patience: Patience, marks: Marks) {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url(), patience);
    ride_out(&node, || proxy.set(fault), || proxy.set(Fault::None), marks);
    logs_once_per_change(node, 1);
}

/// Calls whose replies do not come, and connections that are given up for it.
const SILENCE: Marks = Marks {
    error: "timeout",
    besides: &["connection"],
    fault: "in time",
    counts: Counts::Kept,
};

#[test]
fn replies_come_late() {
    let late = Fault::Delay(Duration::from_secs(3));
    ride_out_behind(late, Patience::Short, SILENCE);
}

#[test]
fn bytes_get_lost() {
    ride_out_behind(Fault::Drop, Patience::Short, SILENCE);
}

#[test]
fn connections_are_refused() {
    let marks = Marks {
        error: "connection",
        besides: &[],
        fault: "connection",
        counts: Counts::Kept,
    };
    ride_out_behind(Fault::Refuse, Patience::Endless, marks);
}

#[test]
fn every_connection_is_cut_in_the_middle_of_a_reply() {
    let marks = Marks {
        error: "connection",
        besides: &[],
        fault: "closed the connection",
        counts: Counts::Kept,
    };
    ride_out_behind(Fault::CutEach(3), Patience::Endless, marks);
}

#[test]
fn somebody_answers_who_is_no_redis() {
    let marks = Marks {
        error: "protocol",
        besides: &[],
        fault: "this is no Redis",
        counts: Counts::Kept,
    };
    ride_out_behind(Fault::Lie, Patience::Endless, marks);
}

/// One lost connection is no reason to stop asking: the call that was on it is decided alone, and the next one
/// has a connection of its own.
#[test]
fn a_connection_is_cut_in_the_middle_of_a_reply() {
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url(), Patience::Endless);
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
    let page = node.page();
    // The other core may have answered after the last of them.
    assert!(page.sum("tidegate_store_reconnects_total", "") >= 1);
    let of_connection = page.sum("tidegate_store_call_errors_total", "kind=\"connection\"");
    assert!(of_connection >= 8);
    assert_eq!(
        page.sum("tidegate_store_call_errors_total", ""),
        of_connection,
        "and of no other kind"
    );
}
