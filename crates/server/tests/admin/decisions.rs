//! The latest decisions, as operators see them.

use serde_json::{Value, json};

use crate::desk::{Desk, compiled, user};

/// Denies one request of a user and returns the id of the decision.
async fn deny(desk: &Desk) -> String {
    while desk.passes("42").await {}
    let listed = desk.get("/api/v1/decisions?denied=true").await.ok();
    listed["decisions"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_denial_is_explained() {
    let desk = Desk::start();
    let id = deny(&desk).await;
    let mut decision = desk.get(&format!("/api/v1/decisions/{id}")).await.ok();
    let text = decision["text"].take();
    let expected = json!({
        "id": id,
        "time": "2026-11-15T12:00:00.000Z",
        "clock": "store",
        "answer": "denied",
        "decided_by": "memory",
        "route": null,
        "rule": {"domain": "api", "rule": "user_id", "file": "rules.yaml", "line": 4, "state": "in_force"},
        "limit": "5 per minute, fixed_window",
        "limits": 2,
        "cost": 1,
        "counter": {"limit": 5, "remaining_before": 0, "remaining_after": 0, "reset_after_seconds": 60.0},
        "retry": {"after_seconds": 60.0},
        "text": null,
    });
    assert_eq!(decision, expected);
    let text = text.as_str().unwrap();
    assert!(text.contains("at rules.yaml:4"), "{text}");
    assert!(text.contains("1 unit after 60 seconds"), "{text}");
}

#[tokio::test]
async fn the_uri_of_a_decision_is_as_good_as_its_id() {
    let desk = Desk::start();
    let id = deny(&desk).await;
    let path = format!("/api/v1/decisions/urn:tidegate:decision:{id}");
    assert_eq!(desk.get(&path).await.ok()["id"], id);
}

#[tokio::test]
async fn rules_that_have_changed_since_are_told() {
    let desk = Desk::start();
    let path = format!("/api/v1/decisions/{}", deny(&desk).await);
    let state = async || desk.get(&path).await.ok()["rule"]["state"].clone();
    let changed =
        "domain: api\ndescriptors: [{key: user_id, rate_limit: {unit: day, requests_per_unit: 9}}]";
    desk.limiter.replace_rules(compiled(changed).unwrap().rules);
    assert_eq!(state().await, "changed");
    let removed =
        "domain: api\ndescriptors: [{key: path, rate_limit: {unit: day, requests_per_unit: 9}}]";
    desk.limiter.replace_rules(compiled(removed).unwrap().rules);
    assert_eq!(state().await, "removed");
}

#[tokio::test]
async fn bans_are_decisions_too() {
    let desk = Desk::start();
    let mut ban = user("42");
    ban["for_seconds"] = json!(60);
    desk.post("/api/v1/keys/ban", &ban).await.ok();
    let id = deny(&desk).await;
    let decision = desk.get(&format!("/api/v1/decisions/{id}")).await.ok();
    assert_eq!(decision["decided_by"], "ban");
    assert_eq!(decision["counter"], Value::Null);
    assert_eq!(decision["retry"]["after_seconds"], 60.0);
}

#[tokio::test]
async fn unknown_ids_say_how_long_decisions_are_kept() {
    let desk = Desk::start();
    let unknown = "/api/v1/decisions/0000000000000000";
    let detail = desk.get(unknown).await.detail(404);
    assert!(
        detail.starts_with("there was no decision 0000000000000000, or it is no longer kept; ")
    );
    assert!(
        detail.contains("keeps its latest 65536 decisions"),
        "{detail}"
    );
    let detail = desk.get("/api/v1/decisions/nonsense").await.detail(400);
    assert!(detail.contains("16 hexadecimal digits"), "{detail}");
    let detail = desk.get("/api/v1/decisions/a/b").await.detail(404);
    assert!(
        detail.contains("there is no /api/v1/decisions/a/b"),
        "{detail}"
    );
}

#[tokio::test]
async fn the_list_can_be_bounded() {
    let desk = Desk::start();
    deny(&desk).await;
    deny(&desk).await;
    let list = desk.get("/api/v1/decisions?limit=1").await.ok();
    assert_eq!(list["decisions"].as_array().unwrap().len(), 1);
    assert_eq!(list["retention"]["capacity"], 65_536);
    assert!(list["retention"]["kept"].as_u64().unwrap() >= 2);
    assert_eq!(list["decisions"][0].get("text"), None);
}
