//! Peek then debit, over two nodes.

use tidegate_store_redis::test_util::RedisServer;

use super::eventual::{meet, settle};
use super::{rules, start};
use crate::server::Server;

/// Whether a request of user 7 that costs so much is allowed.
fn take(server: &Server, cost: u32) -> bool {
    let entries = r#"[{"key": "user_id", "value": "7"}]"#;
    let descriptor = format!(r#"{{"entries": {entries}, "hitsAddend": {cost}}}"#);
    let answer = server.ask(&format!(
        r#"{{"domain": "shop", "descriptors": [{descriptor}]}}"#
    ));
    let status = answer.split(' ').nth(1);
    assert!(matches!(status, Some("200" | "429")), "{answer}");
    status == Some("200")
}

/// Looks at the first server up to 30 times and, while that allows it, debits 7 at the second one. Returns what was
/// debited. `settle` is called after each debit.
fn peek_then_debit(servers: [&Server; 2], settle: impl Fn()) -> u32 {
    let [first, second] = servers;
    let mut used = 0;
    for _ in 0..30 {
        if take(first, 0) {
            take(second, 7);
            used += 7;
            settle();
        }
    }
    used
}

/// One node looks and the other debits 7 of 20, whatever the rules say about sharing: a postpaid limit is strict.
#[test]
fn peek_then_debit_ends_over_two_nodes() {
    for consistency in ["strict", "leased", "split"] {
        let redis = RedisServer::start();
        let path = rules(&format!("postpaid-{consistency}"), 20, ", postpaid: true");
        let [first, second] = [(); 2].map(|()| start(&redis, &path, consistency));
        let used = peek_then_debit([&first, &second], || {});
        assert_eq!(used, 21, "{consistency}");
    }
}

/// The same for nodes that exchange totals: the debt of one is known to the other after the next exchange.
#[test]
fn peek_then_debit_ends_for_an_eventual_limit() {
    let redis = RedisServer::start();
    let path = rules("postpaid-eventual", 20, ", postpaid: true");
    let [first, second] = [(); 2].map(|()| start(&redis, &path, "eventual"));
    meet(&[&first, &second], &[&redis]);
    let used = peek_then_debit([&first, &second], || {
        settle(&second);
        settle(&first);
    });
    assert_eq!(used, 21);
}
