//! A master that Sentinels replace.

use std::time::Duration;

use tidegate_store_redis::test_util::SentinelSetup;

use super::node::{Node, Patience};
use super::{Counts, Marks, logs_once_per_change, ride_out};

/// Longer than any test.
const ENDLESS: Duration = Duration::from_hours(1);

#[test]
fn another_server_becomes_the_master() {
    let setup = SentinelSetup::start(1, 3);
    let node = Node::start(&setup.url(), Patience::Endless);
    let master = setup.master();
    let die = || {
        // Until all was looked at that is between two masters.
        setup.set_patience(ENDLESS);
        // What has not reached the replica would be lost, which is documented, and no more.
        master.must(&["WAIT", "1", "0"]);
        master.kill();
    };
    let be_replaced = || {
        // A replica that has missed its master for ten times as long is not chosen.
        setup.set_patience(Duration::from_secs(2));
        setup.wait_for_failover(master.port());
    };
    let marks = Marks {
        error: "connection",
        besides: &[],
        fault: "refused",
        counts: Counts::Kept,
    };
    ride_out(&node, die, be_replaced, marks);
    let servers = node.servers();
    let new = setup.master().address().to_string();
    let address = servers[0]["address"].as_str().unwrap();
    assert!(address.ends_with(&new), "{address} is {new}");
    logs_once_per_change(node, 1);
}
