//! `/json`: what is asked, and what is answered.

use crate::client::Server;

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2, name: per_user}
  - key: odd
    rate_limit: {window: 90s, limit: 10000000000}
  - key: staff
    rate_limit: {unlimited: true}
  - key: queue
    rate_limit: {unit: second, requests_per_unit: 4, algorithm: leaky_bucket}
  - key: soft
    rate_limit: {unit: minute, requests_per_unit: 1, soft: 100%}
  - key: banned
    rate_limit: {unit: hour, requests_per_unit: 0}
";

const ALICE: &str =
    r#"{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "alice"}]}]}"#;

fn question(key: &str) -> String {
    ALICE.replace("\"user\"", &format!("\"{key}\""))
}

#[tokio::test]
async fn an_allowed_request_is_answered_with_200_and_what_remains() {
    let server = Server::start(RULES).await;
    let reply = server.ask(ALICE).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(
        reply.limit_headers(),
        ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"]
    );
    assert_eq!(
        reply.body,
        r#"{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"per_user","requestsPerUnit":2,"unit":"MINUTE"},"limitRemaining":1,"durationUntilReset":"60s"}]}"#
    );
}

#[tokio::test]
async fn a_refused_request_is_answered_with_429_and_when_to_come_again() {
    let server = Server::start(RULES).await;
    server.ask(ALICE).await;
    server.ask(ALICE).await;
    let reply = server.ask(ALICE).await;
    assert_eq!(reply.status, 429);
    // 59.75 seconds are left of the window; a wait is rounded up.
    assert_eq!(
        reply.limit_headers(),
        [
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-retry-after: 60",
            "retry-after: 60"
        ]
    );
    assert_eq!(
        reply.body,
        r#"{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"per_user","requestsPerUnit":2,"unit":"MINUTE"},"limitRemaining":0,"durationUntilReset":"60s"}],"dynamicMetadata":{"decidedBy":{"rule":"user","limit":"2 per minute, fixed_window","retry":"in 59.750s"}}}"#
    );
}

#[tokio::test]
async fn a_look_is_denied_once_the_limit_is_used_up() {
    let server = Server::start(RULES).await;
    let look = question("user").replace("\"entries\"", "\"hitsAddend\": 0, \"entries\"");
    for _ in 0..2 {
        assert_eq!(server.ask(&look).await.status, 200);
        assert_eq!(server.ask(&question("user")).await.status, 200);
    }
    let reply = server.ask(&look).await;
    assert_eq!(reply.status, 429);
    assert!(
        reply.body.starts_with(r#"{"overallCode":"OVER_LIMIT""#),
        "{}",
        reply.body
    );
}

#[tokio::test]
async fn a_request_that_never_fits_is_told_so() {
    let server = Server::start(RULES).await;
    let reply = server.ask(&question("banned")).await;
    assert_eq!(reply.status, 429);
    assert_eq!(
        reply.limit_headers(),
        ["x-ratelimit-limit: 0", "x-ratelimit-remaining: 0"]
    );
    assert!(reply.body.contains("\"retry\":\"never: "), "{}", reply.body);
}

#[tokio::test]
async fn a_request_that_must_wait_for_its_turn_is_told_how_long() {
    let server = Server::start(RULES).await;
    let first = server.ask(&question("queue")).await;
    assert!(!first.body.contains("dynamicMetadata"), "{}", first.body);
    let second = server.ask(&question("queue")).await;
    assert_eq!(second.status, 200);
    assert!(
        second
            .body
            .ends_with(r#","dynamicMetadata":{"delay":"0.250s"}}"#),
        "{}",
        second.body
    );
}

#[tokio::test]
async fn a_request_that_passes_over_a_soft_limit_is_marked() {
    let server = Server::start(RULES).await;
    let within = server.ask(&question("soft")).await;
    assert!(!within.body.contains("dynamicMetadata"), "{}", within.body);
    let over = server.ask(&question("soft")).await;
    assert_eq!(over.status, 200);
    let mark = r#","dynamicMetadata":{"over":true}}"#;
    assert!(over.body.ends_with(mark), "{}", over.body);
    assert_eq!(over.header("x-ratelimit-over"), Some("true"));
    let refused = server.ask(&question("soft")).await;
    assert_eq!(refused.status, 429);
    assert!(!refused.body.contains("\"over\""), "{}", refused.body);
}

#[tokio::test]
async fn statuses_stand_in_the_order_of_the_descriptors() {
    let server = Server::start(RULES).await;
    let body = r#"{"domain": "api", "hits_addend": "3", "descriptors": [
        {"entries": [{"key": "staff", "value": "x"}]},
        {"entries": [{"key": "unknown", "value": "x"}]},
        {"entries": [{"key": "odd", "value": "x"}]},
        {"entries": [{"key": "a", "value": "b"}], "limit": {"requestsPerUnit": 5, "unit": "DAY"}}]}"#;
    let reply = server.ask(body).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.body,
        concat!(
            r#"{"overallCode":"OK","statuses":["#,
            r#"{"code":"OK","limitRemaining":4294967295},"#,
            r#"{"code":"OK"},"#,
            r#"{"code":"OK","currentLimit":{"requestsPerUnit":4294967295,"unit":"UNKNOWN"},"limitRemaining":4294967295,"durationUntilReset":"90s"},"#,
            r#"{"code":"OK","currentLimit":{"requestsPerUnit":5,"unit":"DAY"},"limitRemaining":2,"durationUntilReset":"43200s"}],"#,
            r#""dynamicMetadata":{"limits":["10000000000 per 1m30s, fixed_window"]}}"#
        )
    );
}

#[tokio::test]
async fn without_a_limit_there_are_no_headers() {
    let server = Server::start(RULES).await;
    let reply = server.ask(&question("unknown")).await;
    assert_eq!((reply.status, reply.limit_headers()), (200, Vec::new()));
    let reply = server
        .ask(&ALICE.replace("\"api\"", "\"unheard_of\""))
        .await;
    assert_eq!((reply.status, reply.limit_headers()), (200, Vec::new()));
}

/// Posts `body` and expects a 400 that says `expected`.
async fn check_bad(body: &str, expected: &str) {
    let server = Server::start(RULES).await;
    let reply = server.ask(body).await;
    assert_eq!(reply.status, 400, "{body}");
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    assert!(
        reply.body.contains(expected),
        "{body} gives: {}",
        reply.body
    );
}

#[tokio::test]
async fn bad_input_is_answered_with_400_and_a_reason() {
    check_bad("", "the body is empty; POST a rate limit request").await;
    check_bad("hello", "expected value at line 1 column 1").await;
    check_bad("{}", "rate limit domain must not be empty").await;
    check_bad(
        r#"{"domain": "api"}"#,
        "rate limit descriptor list must not be empty",
    )
    .await;
    check_bad(r#"{"domian": "api"}"#, "unknown field `domian`").await;
    let no_unit = r#"{"domain": "api", "descriptors": [{"limit": {"requestsPerUnit": 5}}]}"#;
    check_bad(no_unit, "descriptor 0: a `limit` needs a `unit`").await;
    let too_large = r#"{"domain": "api", "descriptors": [
        {"limit": {"requestsPerUnit": "4294967296", "unit": "SECOND"}}]}"#;
    check_bad(too_large, "a number has more than 32 bits").await;
    let too_many = r#"{"domain": "api", "hitsAddend": 4294967296}"#;
    check_bad(too_many, "a number has more than 32 bits").await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_bad_input() {
    let server = Server::start(RULES).await;
    let mut stream = server.connect().await;
    let request =
        b"POST /json HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\xff\xfe\x00";
    tokio::io::AsyncWriteExt::write_all(&mut stream, request)
        .await
        .unwrap();
    assert_eq!(crate::client::read_to_end(&mut stream).await.status, 400);
}
