//! Redis that is slow, gone or lying: a real server, a real Redis, and what callers see.
//!
//! Whatever happens to Redis, no caller gets an error, by whatever door; each limit goes by its `on_failure`; while
//! the breaker is open nobody waits; and once Redis is back it decides again, without a restart. In each case
//! health, log, admin API and counters say what happened, and nothing else.

mod cluster;
mod flapping;
mod grpc;
mod info;
mod members;
mod network;
mod node;
pub(crate) mod page;
mod restart;
mod sentinel;
mod single;

use serde_json::Value;
use tidegate_store_redis::test_util::wait_until;

use node::{Door, Node, Tally};

/// What is to be seen of a fault.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// The kind of errors of calls that must have been counted.
    error: &'static str,
    /// Kinds that may have been counted as well. All others must not.
    besides: &'static [&'static str],
    /// What the admin API says is wrong, in part.
    fault: &'static str,
    /// Whose counts Redis goes on with.
    counts: Counts,
}

/// What Redis remembers when it is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Kept,
    Lost,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Redis,
    /// The node alone, by each limit's policy.
    Node,
}

/// A limit of a policy: how many requests of a new caller pass.
struct Policy {
    key: &'static str,
    asked: usize,
    by_redis: usize,
    alone: usize,
}

/// One of each. A node among one has all of a limit.
const POLICIES: [Policy; 3] = [
    Policy {
        key: "local",
        asked: 15,
        by_redis: 10,
        alone: 10,
    },
    Policy {
        key: "allow",
        asked: 5,
        by_redis: 1,
        alone: 5,
    },
    Policy {
        key: "deny",
        asked: 5,
        by_redis: 5,
        alone: 0,
    },
];

/// The kinds of errors of calls.
const KINDS: [&str; 5] = ["timeout", "connection", "reply", "protocol", "overload"];

/// Breaks Redis under a node and mends it again, and holds all that is promised about that.
fn ride_out(node: &Node, break_it: impl FnOnce(), mend_it: impl FnOnce(), marks: Marks) {
    let before = node.page();
    hold_by_all_doors(node, By::Redis, "before");
    assert_eq!(node.tally(Door::Http, "local", "always", 4).n_allowed, 4);
    assert_eq!(node.health(), ("OK".to_owned(), true));
    break_it();
    node.ask_until_broken("probe");
    shows_the_fault(node, marks.fault);
    decides_alone(node);
    waits_for_nobody(node, "impatient");
    mend_it();
    node.ask_until_mended();
    hold_by_all_doors(node, By::Redis, "after");
    let left = match marks.counts {
        Counts::Kept => 6,
        Counts::Lost => 10,
    };
    // What was counted alone is not told.
    assert_eq!(
        node.tally(Door::Grpc, "local", "always", 15).n_allowed,
        left
    );
    shows_no_fault(node);
    tells_what_happened(node, &before, marks);
}

/// Each limit goes by its policy, for one caller by one door.
#[track_caller]
fn hold(node: &Node, by: By, door: Door, caller: &str) {
    for policy in &POLICIES {
        let expected = match by {
            By::Redis => Tally {
                n_allowed: policy.by_redis,
                n_degraded: 0,
            },
            By::Node => Tally {
                n_allowed: policy.alone,
                n_degraded: policy.asked,
            },
        };
        let tally = node.tally(door, policy.key, caller, policy.asked);
        assert_eq!(tally, expected, "{} of {caller} by {door:?}", policy.key);
    }
}

/// The same for a caller of each door.
#[track_caller]
fn hold_by_all_doors(node: &Node, by: By, when: &str) {
    for door in Door::ALL {
        hold(node, by, door, &format!("{door:?} {when}"));
    }
}

/// The node is alone: each limit goes by its policy, from where Redis left off, and nobody asks Redis meanwhile.
fn decides_alone(node: &Node) {
    wait_until("the last calls under way are given up", || {
        node.page().sum("tidegate_store_waiting_calls", "") == 0
    });
    let before = node.page();
    hold_by_all_doors(node, By::Node, "alone");
    let after = node.page();
    let growth = |name: &str, label: &str| after.growth(&before, name, label);
    assert_eq!(growth("tidegate_store_calls_total", ""), 0);
    assert_eq!(growth("tidegate_store_call_errors_total", ""), 0);
    assert!(growth("tidegate_store_spared_calls_total", "") >= 50);
    assert_eq!(growth("tidegate_store_failures_total", "kind=\"open\""), 50);
    assert_eq!(
        growth("tidegate_store_failures_total", ""),
        50,
        "and of no other kind"
    );
    for (by, n_limits) in [("node", 30), ("allow", 10), ("deny", 10)] {
        let label = format!("by=\"{by}\"");
        assert_eq!(
            growth("tidegate_limits_without_store_total", &label),
            n_limits
        );
    }
    for (outcome, n_requests) in [("allowed", 20), ("refused", 10)] {
        let label = format!("outcome=\"{outcome}\"");
        assert_eq!(
            growth("tidegate_standby_requests_total", &label),
            n_requests
        );
    }
    let answer = node.ask("deny", "when to come again");
    assert_eq!(answer.retry_after.as_deref(), Some("1"));
    assert_eq!(
        node.tally(Door::Http, "local", "always", 15).n_allowed,
        6,
        "of 10, 4 by Redis"
    );
}

/// While the breaker is open nobody waits for Redis: each of many requests is decided because it is open. One that
/// waited would have been decided by Redis, or failed in another way. A limit of the node's own goes on as it is.
#[track_caller]
fn waits_for_nobody(node: &Node, caller: &str) {
    const N_ASKED: usize = 200;
    let before = node.page();
    for (key, n_degraded) in [
        ("own", 0),
        ("ample", N_ASKED),
        ("allow", N_ASKED),
        ("deny", N_ASKED),
    ] {
        let tally = node.tally(Door::Grpc, key, caller, N_ASKED);
        assert_eq!(tally.n_degraded, n_degraded, "{key}");
        assert_eq!(
            tally.n_allowed,
            if key == "deny" { 0 } else { N_ASKED },
            "{key}"
        );
    }
    let after = node.page();
    for label in ["kind=\"open\"", ""] {
        let failures = after.growth(&before, "tidegate_store_failures_total", label);
        assert_eq!(failures, 3 * N_ASKED as u64, "{label}");
    }
}

/// The node says that it is degraded, not dead, and what is wrong.
#[track_caller]
fn shows_the_fault(node: &Node, fault: &str) {
    let (health, is_serving) = node.health();
    assert!(health.starts_with("degraded") && is_serving, "and not dead");
    assert_eq!(node.get("/healthcheck"), health);
    assert!(node.get("/readyz").contains("\"ready\":true"));
    let is_it = |server: &Value| {
        let says = server["fault"].as_str().unwrap_or_default();
        server["breaker"] == "open" && says.contains(fault)
    };
    wait_until("the admin API says what is wrong", || {
        node.servers().iter().any(is_it)
    });
    let page = node.page();
    assert_eq!(page.sum("tidegate_store_breaker", "state=\"open\""), 1);
}

#[track_caller]
fn shows_no_fault(node: &Node) {
    assert_eq!(node.health(), ("OK".to_owned(), true));
    for server in node.servers() {
        assert_eq!(server["breaker"], "closed", "{server}");
        assert!(server["fault"].is_null(), "{server}");
    }
    assert_eq!(
        node.page().sum("tidegate_store_breaker", "state=\"open\""),
        0
    );
    assert!(!node.is_broken());
}

/// The counters name the fault, and no other.
#[track_caller]
fn tells_what_happened(node: &Node, before: &page::Page, marks: Marks) {
    let after = node.page();
    let growth = |name: &str, label: &str| after.growth(before, name, label);
    assert_eq!(growth("tidegate_store_breaker_opened_total", ""), 1);
    assert!(growth("tidegate_store_calls_total", "") >= 1);
    for kind in KINDS {
        let label = format!("kind=\"{kind}\"");
        let errors = growth("tidegate_store_call_errors_total", &label);
        if kind == marks.error {
            assert!(errors >= 1, "{marks:?}: no {kind}");
        } else if !marks.besides.contains(&kind) {
            assert_eq!(errors, 0, "{marks:?}: {kind}");
        }
    }
}

/// The log has a line for each time that Redis failed, and one for each that it was back; none besides.
#[track_caller]
fn logs_once_per_change(node: Node, times: usize) {
    let log = node.end();
    let lines = |text: &str| log.iter().filter(|line| line.contains(text)).count();
    assert_eq!(lines("circuit breaker opened"), times, "{log:#?}");
    assert_eq!(lines("circuit breaker closed"), times, "{log:#?}");
    assert_eq!(lines(" WARN ") + lines(" ERROR "), times, "{log:#?}");
}
