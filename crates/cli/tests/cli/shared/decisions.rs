//! The parts that decide on a limit that servers share, as the admin API tells them.

use serde_json::Value;
use tidegate_store_redis::test_util::RedisServer;

use super::{rules, start};
use crate::server::{Server, USER};

/// Whether a request is allowed.
fn is_allowed(server: &Server, request: &str) -> bool {
    let answer = server.ask(request);
    match answer.split(' ').nth(1) {
        Some("200") => true,
        Some("429") => false,
        _ => panic!("{answer}"),
    }
}

/// The part that made the latest denial.
fn decider(server: &Server) -> String {
    let page = server.operate("GET /api/v1/decisions?denied=true&limit=1", "");
    let (_, body) = page.split_once("\r\n\r\n").unwrap();
    let report: Value = serde_json::from_str(body).unwrap();
    let decider = &report["decisions"][0]["decided_by"];
    decider.as_str().unwrap().to_owned()
}

#[test]
fn a_denial_tells_which_part_decided() {
    let redis = RedisServer::start();
    let rules = rules("decisions", 1, "");
    let server = start(&redis, &rules, "strict");
    assert!(is_allowed(&server, USER));
    assert!(!is_allowed(&server, USER));
    assert_eq!(decider(&server), "redis");
    // A denial that Redis answered with is not asked for again.
    assert!(!is_allowed(&server, USER));
    assert_eq!(decider(&server), "lease");
    drop(redis);
    let other = USER.replace("\"7\"", "\"8\"");
    assert!(is_allowed(&server, &other));
    assert!(!is_allowed(&server, &other));
    assert_eq!(decider(&server), "fallback");
}
