//! `/v1/check`: what is asked, and what is answered.

use serde_json::{Value, json};

use crate::client::{Reply, Server, post_to};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2, name: per_user}
  - key: plan
    headers: ietf
    rate_limit: {unit: minute, requests_per_unit: 1, name: per_plan}
  - key: soft
    rate_limit: {unit: minute, requests_per_unit: 1, soft: 100%}
";

const ALICE: &str = r#"{"domain": "api", "descriptors": [{"user": "alice"}]}"#;

async fn check(server: &Server, body: &str) -> Reply {
    server.exchange(&post_to("/v1/check", body)).await
}

fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

#[tokio::test]
async fn one_check_is_answered_by_status_headers_and_body() {
    let server = Server::start(RULES).await;
    let reply = check(&server, ALICE).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let expected = ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"];
    assert_eq!(reply.limit_headers(), expected);
    assert_eq!(
        json_of(&reply),
        json!({
            "allowed": true, "deciding": "per_user", "delay": 0, "degraded": false,
            "limits": [{
                "descriptor": 0, "rule": "user", "policy": "per_user", "mode": "enforce",
                "allowed": true, "limit": 2, "remaining": 1, "reset": 59.75
            }]
        })
    );
    check(&server, ALICE).await;
    let reply = check(&server, ALICE).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.header("retry-after"), Some("60"));
    assert_eq!(json_of(&reply)["retry_after"], json!(59.75));
}

/// A gateway copies a header into the body as it is, or as its language reads bytes that are not UTF-8.
#[tokio::test]
async fn a_value_that_is_not_utf8_is_counted() {
    let server = Server::start(RULES).await;
    // Of the last two, the second is the first as its bytes: one caller.
    let cases: [(&[u8], u16); 5] = [
        (br"bob\ud800", 200),
        (br"bob\udcff", 200),
        (b"bob\xff", 200),
        (br"bob\ufffd", 200),
        ("bob\u{fffd}".as_bytes(), 429),
    ];
    for (user, status) in cases {
        let (before, after) = ALICE.split_once("alice").unwrap();
        let body = [before.as_bytes(), user, after.as_bytes()].concat();
        let head = post_to("/v1/check", &" ".repeat(body.len()));
        let request = [head.trim_end_matches(' ').as_bytes(), &body].concat();
        for expected in [status, status, 429] {
            let reply = server.exchange(&request).await;
            assert_eq!(reply.status, expected, "{}", user.escape_ascii());
        }
    }
}

#[tokio::test]
async fn a_request_that_passes_over_a_soft_limit_is_marked() {
    let server = Server::start(RULES).await;
    let soft = ALICE.replace("user", "soft");
    for (status, header, mark) in [
        (200, None, Value::Null),
        (200, Some("true"), json!(true)),
        (429, None, Value::Null),
    ] {
        let reply = check(&server, &soft).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("x-ratelimit-over"), header);
        let body = json_of(&reply);
        assert_eq!((&body["over"], &body["limits"][0]["over"]), (&mark, &mark));
    }
}

#[tokio::test]
async fn a_look_is_denied_once_the_limit_is_used_up() {
    let server = Server::start(RULES).await;
    let look = ALICE.replace("}]}", "}], \"cost\": 0}");
    for _ in 0..2 {
        assert_eq!(check(&server, &look).await.status, 200);
        assert_eq!(check(&server, ALICE).await.status, 200);
    }
    let reply = check(&server, &look).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.header("retry-after"), Some("60"));
    assert_eq!(json_of(&reply)["limits"][0]["allowed"], json!(false));
}

#[tokio::test]
async fn a_rule_speaks_a_dialect_of_its_own() {
    let server = Server::start(RULES).await;
    let plan = ALICE.replace("user", "plan");
    let reply = check(&server, &plan).await;
    let policy = reply.header("ratelimit-policy");
    assert_eq!(policy, Some("\"per_plan\";q=1;w=60"));
    assert_eq!(reply.header("ratelimit"), Some("\"per_plan\";r=0;t=60"));
    assert_eq!(reply.header("x-ratelimit-limit"), None);
}

#[tokio::test]
async fn several_checks_are_answered_in_order_whatever_comes_of_them() {
    let server = Server::start(RULES).await;
    let checks = format!(
        r#"{{"checks": [{ALICE}, {ALICE}, {ALICE}, {}]}}"#,
        ALICE.replace("alice", "bob")
    );
    let reply = check(&server, &checks).await;
    assert_eq!((reply.status, reply.limit_headers()), (200, Vec::new()));
    let answered = json_of(&reply);
    let allowed: Vec<&Value> = answered["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["allowed"])
        .collect();
    assert_eq!(allowed, [true, true, false, true]);
}

#[tokio::test]
async fn a_check_of_a_batch_that_makes_no_sense_does_not_spoil_the_others() {
    let many_limits = (0..17).map(|n| format!("{{window: {}s, limit: 9}}", n + 1));
    let many_limits: Vec<String> = many_limits.take(16).collect();
    let rules = format!(
        "{RULES}  - {{key: many, rate_limits: [{}]}}\n",
        many_limits.join(", ")
    );
    let server = Server::start(&rules).await;
    let many: Vec<Value> = (0..5).map(|n| json!({"many": n.to_string()})).collect();
    let many = json!({"domain": "api", "descriptors": many}).to_string();
    let reply = check(&server, &format!(r#"{{"checks": [{many}, {ALICE}]}}"#)).await;
    let answered = json_of(&reply);
    let error = json!({"error": "more than 64 limits apply to the request"});
    assert_eq!(answered["checks"][0], error);
    assert_eq!(answered["checks"][1]["allowed"], json!(true));
    // Alone it is the fault of the whole.
    assert_eq!(check(&server, &many).await.status, 400);
}

#[tokio::test]
async fn a_refund_gives_back() {
    let server = Server::start(RULES).await;
    let with = |field: &str| ALICE.replacen('{', &format!("{{{field}, "), 1);
    assert_eq!(check(&server, &with("\"cost\": 2")).await.status, 200);
    assert_eq!(check(&server, ALICE).await.status, 429);
    assert_eq!(check(&server, &with("\"refund\": 1")).await.status, 200);
    assert_eq!(check(&server, ALICE).await.status, 200);
}

#[tokio::test]
async fn all_faults_are_told_at_once() {
    let server = Server::start(RULES).await;
    let reply = check(&server, r#"{"domain": 1, "descriptors": [{}], "kost": 1}"#).await;
    assert_eq!(reply.status, 400);
    let content_type = reply.header("content-type");
    assert_eq!(content_type, Some("application/problem+json"));
    let problem = json_of(&reply);
    let detail = "the question has 3 faults, see `errors`";
    assert_eq!(problem["detail"], json!(detail));
    let pointers: Vec<&Value> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["pointer"])
        .collect();
    assert_eq!(pointers, ["#/kost", "#/domain", "#/descriptors/0"]);
}

#[tokio::test]
async fn what_is_no_json_is_told_where() {
    let server = Server::start(RULES).await;
    let reply = check(&server, "{\"domain\"").await;
    assert_eq!(reply.status, 400);
    let detail = "the body is no JSON: EOF while parsing an object at line 1 column 9";
    assert_eq!(json_of(&reply)["detail"], json!(detail));
    let reply = check(&server, "").await;
    assert!(
        reply
            .body
            .contains("the body is empty; POST a check, such as")
    );
    let reply = check(&server, &"[".repeat(200)).await;
    assert_eq!(reply.status, 400, "so deep a list is no question");
}

#[tokio::test]
async fn only_post_asks() {
    let server = Server::start(RULES).await;
    let reply = server.get("/v1/check").await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn a_web_page_can_neither_charge_nor_refund() {
    let server = Server::start(RULES).await;
    let envoy =
        r#"{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "alice"}]}]}"#;
    for (path, body) in [("/v1/check", ALICE), ("/json", envoy)] {
        let send = |header: &str| {
            let request = post_to(path, body).replacen("\r\n", &format!("\r\n{header}\r\n"), 1);
            server.exchange(request)
        };
        for foreign in [
            "Origin: http://evil.example",
            "Origin: null",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            // A name that was made to lead here: our origin, but no page of ours.
            "Origin: http://test",
            "Sec-Fetch-Site: same-origin",
        ] {
            assert_eq!(send(foreign).await.status, 403, "{path} {foreign}");
        }
        // What was refused was not charged: two of two are left.
        assert_eq!(send("Sec-Fetch-Site: none").await.status, 200, "{path}");
    }
}
