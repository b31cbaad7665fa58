//! The rules in force, what was counted, and why a limit applies.

use serde_json::{Value, json};

use crate::desk::{Desk, compiled};
use crate::schema::Document;

#[tokio::test]
async fn rules_come_with_their_counts() {
    let desk = Desk::start();
    for _ in 0..7 {
        desk.passes("42").await;
    }
    let page = desk.get("/api/v1/rules").await.ok();
    assert_eq!((&page["total"], &page["next"]), (&json!(3), &Value::Null));
    let user = &page["rules"][0];
    assert_eq!(
        (&user["domain"], &user["rule"]),
        (&json!("api"), &json!("user_id"))
    );
    assert_eq!(
        (&user["file"], &user["line"]),
        (&json!("rules.yaml"), &json!(4))
    );
    assert_eq!(user["limits"][0]["quota"]["requests"], 5);
    assert_eq!(user["limits"][0]["quota"]["window_seconds"], 60.0);
    assert_eq!(
        (&user["counts"]["refused"], &user["counts"]["hits"]),
        (&json!(2), &json!(7))
    );
    assert_eq!(page["rules"][2]["mode"], "shadow");
}

const EVERY_ALGORITHM: &str = "
domain: api
descriptors:
  - key: all
    rate_limits:
      - {unit: minute, requests_per_unit: 5}
      - {unit: minute, requests_per_unit: 5, algorithm: token_bucket, burst: 9, soft: 10%, soft_for: 30s}
      - {unit: minute, requests_per_unit: 5, algorithm: token_bucket, refill: interval, elastic: 20%}
      - {unit: minute, requests_per_unit: 5, algorithm: leaky_bucket, queue: 3}
      - {unit: minute, requests_per_unit: 5, algorithm: sliding_log, log_refused: true, soft: 50%}
      - {unit: minute, requests_per_unit: 5, algorithm: sliding_counter, sub_windows: 12, rounding: up}
";

#[tokio::test]
async fn limits_come_with_all_their_numbers() {
    let desk = Desk::start();
    desk.limiter
        .replace_rules(compiled(EVERY_ALGORITHM).expect("they are valid").rules);
    let page = desk.get("/api/v1/rules").await.ok();
    let limits = page["rules"][0]["limits"].as_array().unwrap();
    let quotas: Vec<&Value> = limits.iter().map(|limit| &limit["quota"]).collect();
    let expected = [
        json!({"algorithm": "fixed_window"}),
        json!({"algorithm": "token_bucket", "burst": 9, "refill": "continuous", "soft_percent": 10, "soft_for_seconds": 30.0}),
        json!({"algorithm": "token_bucket", "burst": 5, "refill": "interval", "elastic_percent": 20}),
        json!({"algorithm": "leaky_bucket", "queue": 3}),
        json!({"algorithm": "sliding_log", "log_refused": true, "soft_percent": 50}),
        json!({"algorithm": "sliding_counter", "sub_windows": 12, "rounding": "up"}),
    ];
    let expected = expected.map(|mut quota| {
        quota["requests"] = json!(5);
        quota["window_seconds"] = json!(60.0);
        quota
    });
    assert_eq!(quotas, expected.iter().collect::<Vec<_>>());
    let document = Document(desk.get("/api/v1/openapi.json").await.ok());
    let schema = json!({"$ref": "#/components/schemas/Rules"});
    assert_eq!(document.faults(&schema, &page), Vec::<String>::new());
}

#[tokio::test]
async fn rules_come_in_pages_and_by_domain() {
    let desk = Desk::start();
    let page = desk.get("/api/v1/rules?limit=2").await.ok();
    assert_eq!(
        (page["rules"].as_array().unwrap().len(), &page["next"]),
        (2, &json!(2))
    );
    let page = desk.get("/api/v1/rules?limit=2&offset=2").await.ok();
    assert_eq!(
        (page["rules"].as_array().unwrap().len(), &page["next"]),
        (1, &Value::Null)
    );
    let page = desk.get("/api/v1/rules?domain=other").await.ok();
    assert_eq!(page["total"], 0);
}

#[tokio::test]
async fn a_request_is_explained() {
    let desk = Desk::start();
    let entries = |key: &str, value: &str| json!({"entries": [{"key": key, "value": value}]});
    let request = json!({
        "domain": "api",
        "descriptors": [entries("user_id", "42"), entries("plan", "free"), entries("plan", "x")],
    });
    let told = desk.post("/api/v1/explain", &request).await.ok();
    let [user, free, other] = told["descriptors"].as_array().unwrap().as_slice() else {
        panic!("{told}");
    };
    assert_eq!(user["rule"]["rule"], "user_id");
    assert_eq!(user["ending"], "rule");
    assert_eq!(user["steps"][0]["candidates"][0]["fate"], "chosen");
    let replaced: Vec<_> = user["limits"].as_array().unwrap().iter().collect();
    assert_eq!(replaced[0]["replaced"], true, "the plan replaces it");
    assert_eq!(replaced[1]["replaced"], false);
    let sharing = replaced[1]["sharing"][0].as_str().unwrap();
    assert!(sharing.starts_with("strict: "), "{sharing}");
    assert!(user["text"].as_str().unwrap().contains(sharing));
    assert_eq!(free["steps"][0]["candidates"][0]["by"], "exact_value");
    assert_eq!(
        (&other["ending"], &other["rule"]),
        (&json!("no_match"), &Value::Null)
    );
    assert!(other["text"].as_str().unwrap().contains("no limit applies"));
    // An explanation costs nothing.
    assert_eq!(
        desk.get("/api/v1/rules").await.ok()["rules"][0]["counts"]["hits"],
        0
    );
}

/// Whoever looks for what a failing store means for a caller must not be told that it fails.
#[tokio::test]
async fn a_request_is_explained_while_the_store_fails() {
    let desk = Desk::start();
    let entries = json!([{"key": "user_id", "value": "42"}]);
    let request = json!({"domain": "api", "descriptors": [{"entries": entries}]});
    let before = desk.post("/api/v1/explain", &request).await.ok();
    desk.limiter.store().degrade();
    assert_eq!(desk.post("/api/v1/explain", &request).await.ok(), before);
}

#[tokio::test]
async fn the_top_is_told() {
    let desk = Desk::start();
    let top = desk
        .get("/api/v1/top?kind=busiest&n=5&domain=api&rule=user_id")
        .await
        .ok();
    assert_eq!(top["kind"], "busiest");
    assert!(top["keys"].is_array());
}
