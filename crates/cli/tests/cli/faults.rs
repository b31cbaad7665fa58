//! Redis that is slow, gone or lying: a real server, a real Redis, and what callers see.
//!
//! Whatever happens to Redis, no caller gets an error, each limit goes by its `on_failure`, and once Redis is
//! back it decides again, without a restart. In each case the counters say what happened.

mod cluster;
mod grpc;
mod network;
pub(crate) mod node;
mod sentinel;
mod single;

use node::{Answer, Node};

/// What a fault does to the counters.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// The kinds of errors of calls, one of which must have been counted.
    errors: &'static [&'static str],
    /// Whose counts Redis goes on with.
    counts: Counts,
}

/// What Redis remembers when it is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// All of it. What was on its way when it failed may have been counted, too.
    Kept,
    /// Nothing.
    Lost,
}

/// Breaks Redis under a node and mends it again, and holds all that is promised about that.
fn ride_out(node: &Node, break_it: impl FnOnce(), mend_it: impl FnOnce(), marks: Marks) {
    let before = decided_by_redis(node, "local", "before");
    break_it();
    node.ask_until_broken();
    holds_alone(node, "while it is gone");
    stays_in_microseconds(node);
    mend_it();
    node.ask_until_mended();
    let after = decided_by_redis(node, "local", "before");
    match marks.counts {
        Counts::Kept => assert!(after < before, "{after} are left, of {before} before"),
        Counts::Lost => assert_eq!(after, before, "it begins anew"),
    }
    assert_eq!(node.get("/healthcheck"), "OK");
    tells_what_happened(node, marks);
}

/// Redis decides, and says how many are left.
#[track_caller]
fn decided_by_redis(node: &Node, key: &str, value: &str) -> u64 {
    let answer = node.ask(key, value);
    assert!(!answer.is_degraded, "{answer:?}");
    answer.remaining.expect("a limit that was decided")
}

/// The node is alone: each limit goes by its policy.
fn holds_alone(node: &Node, value: &str) {
    let allowed = |answers: &[Answer]| answers.iter().filter(|it| it.is_allowed).count();
    let answers = node.ask_often("local", value, 15);
    assert_eq!(allowed(&answers), 10, "a node among one has all of it");
    let answers = node.ask_often("allow", value, 5);
    assert_eq!(allowed(&answers), 5);
    let answers = node.ask_often("deny", value, 5);
    assert_eq!(allowed(&answers), 0);
    for answer in &answers {
        assert!(answer.is_degraded, "{answer:?}");
        assert_eq!(answer.retry_after.as_deref(), Some("1"));
    }
    assert_eq!(node.get("/healthcheck"), "degraded", "and not dead");
}

/// While the breaker is open nobody waits: by the server's own watch a decision takes about as long as one on a
/// request that no limit applies to, which is as good as a bare timer. The machine is noisy, so it is the
/// median of many that counts, and a generous ratio; a call to Redis that is waited for is 10,000 times as long.
fn stays_in_microseconds(node: &Node) {
    const N_ASKED: usize = 100;
    const RATIO: f64 = 200.0;
    let median = |key: &str| {
        let before = node.durations();
        node.ask_often(key, "timed", N_ASKED);
        node.durations().since(&before).median()
    };
    let (bare, alone) = (median("unlimited"), median("ample"));
    assert!(alone <= bare * RATIO, "{alone} s alone, {bare} s bare");
}

/// The counters name the fault and who answered.
fn tells_what_happened(node: &Node, marks: Marks) {
    let page = node.get("/metrics");
    let sum = |name: &str, label: &str| node::sum(&page, name, label);
    assert!(sum("tidegate_store_breaker_opened_total", "") >= 1);
    assert!(sum("tidegate_store_spared_calls_total", "") >= 1);
    let errors = marks.errors.iter().map(|kind| {
        let label = format!("kind=\"{kind}\"");
        sum("tidegate_store_call_errors_total", &label)
    });
    assert!(errors.sum::<u64>() >= 1, "{:?}\n{page}", marks.errors);
    for by in ["node", "allow", "deny"] {
        let label = format!("by=\"{by}\"");
        let answered = sum("tidegate_limits_without_store_total", &label);
        assert!(answered >= 5, "{by}: {answered}");
    }
    assert!(sum("tidegate_standby_requests_total", "outcome=\"allowed\"") >= 10);
    assert!(sum("tidegate_standby_requests_total", "outcome=\"refused\"") >= 5);
    assert!(sum("tidegate_store_degraded", "") == 0);
}
