//! Redis that comes and goes, and Redis that comes back to nobody.

use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer, wait_until};

use super::logs_once_per_change;
use super::node::{Node, Patience};

/// Five faults in a row are ten lines in the log, however many callers there were meanwhile.
#[test]
fn the_log_has_a_line_for_each_change() {
    const N_FAULTS: usize = 5;
    let redis = RedisServer::start();
    let proxy = FaultyProxy::start(redis.address());
    let node = Node::start(&proxy.url(), Patience::Endless);
    for fault in 1..=N_FAULTS {
        proxy.set(Fault::Refuse);
        node.ask_until_broken("probe");
        for number in 0..20 {
            let answer = node.ask("ample", &format!("caller {number}"));
            assert!(answer.is_allowed && answer.is_degraded, "{answer:?}");
        }
        proxy.set(Fault::None);
        node.ask_until_mended();
        let opened = node.page().sum("tidegate_store_breaker_opened_total", "");
        assert_eq!(opened, u64::try_from(fault).unwrap());
    }
    logs_once_per_change(node, N_FAULTS);
}

/// At night nobody asks, and the node finds out by itself that Redis is back.
#[test]
fn redis_is_back_though_nobody_asks() {
    let redis = RedisServer::start();
    let node = Node::start(&redis.url(), Patience::Endless);
    node.ask_until_mended();
    redis.kill();
    node.ask_until_broken("probe");
    let decided = || node.page().sum("tidegate_decisions_total", "");
    let before = decided();
    redis.restart();
    wait_until("the breaker closes", || !node.is_broken());
    assert_eq!(decided(), before, "nobody asked");
    assert!(!node.ask("local", "in the morning").is_degraded);
    logs_once_per_change(node, 1);
}
