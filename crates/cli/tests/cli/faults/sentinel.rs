//! A master that Sentinels replace.

use tidegate_store_redis::test_util::SentinelSetup;

use super::decided_by_redis;
use super::node::Node;

#[test]
fn another_server_becomes_the_master() {
    let setup = SentinelSetup::start(1, 3);
    let node = Node::start(&setup.url());
    decided_by_redis(&node, "local", "before");
    let old = setup.master();
    let port = old.port();
    old.kill();
    node.ask_until_broken();
    // Between two masters the node decides alone.
    assert!(node.ask("ample", "between").is_allowed);
    setup.wait_for_failover(port);
    node.ask_until_mended();
    let left = decided_by_redis(&node, "local", "before");
    // What had not reached the replica is lost, and no more.
    assert!((8..=9).contains(&left), "{left}");
    assert_eq!(node.get("/healthcheck"), "OK");
    assert!(node.sum("tidegate_store_breaker_opened_total", "") >= 1);
}
