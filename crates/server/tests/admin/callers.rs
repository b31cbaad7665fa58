//! What is done to one caller, and what it then meets.

use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::{Desk, user};

/// A caller with one more field.
fn with(mut caller: Value, name: &str, value: impl Into<Value>) -> Value {
    caller[name] = value.into();
    caller
}

fn remaining(caller: &Value) -> Vec<u64> {
    let limits = caller["limits"].as_array().unwrap();
    let remaining = |limit: &Value| limit["remaining"].as_u64().unwrap();
    limits.iter().map(remaining).collect()
}

#[tokio::test]
async fn a_lookup_tells_where_a_caller_stands() {
    let desk = Desk::start();
    desk.passes("42").await;
    for _ in 0..2 {
        let caller = desk.post("/api/v1/keys/lookup", &user("42")).await.ok();
        assert_eq!(remaining(&caller), [4, 99]);
        assert_eq!(caller["limits"][0]["name"], "per_minute");
        assert_eq!(caller["limits"][0]["reset_after_seconds"], 60.0);
        assert_eq!(caller["ban"], Value::Null);
    }
}

#[tokio::test]
async fn a_reset_forgives() {
    let desk = Desk::start();
    for _ in 0..5 {
        assert!(desk.passes("42").await);
    }
    assert!(!desk.passes("42").await);
    let done = desk.post("/api/v1/keys/reset", &user("42")).await.ok();
    assert_eq!(done["counters_reset"], 2);
    assert!(desk.passes("42").await);
}

#[tokio::test]
async fn a_grant_gives_back_no_more_than_was_used() {
    let desk = Desk::start();
    for _ in 0..3 {
        assert!(desk.passes("42").await);
    }
    let grant = |hits: u64| with(user("42"), "hits", hits);
    let caller = desk.post("/api/v1/keys/grant", &grant(1)).await.ok();
    assert_eq!(remaining(&caller), [3, 98]);
    let caller = desk.post("/api/v1/keys/grant", &grant(u64::MAX)).await.ok();
    assert_eq!(remaining(&caller), [5, 100]);
}

#[tokio::test]
async fn a_ban_lasts_as_long_as_was_said() {
    let desk = Desk::start();
    let ban = with(with(user("42"), "for_seconds", 60), "reason", "scraping");
    let caller = desk.post("/api/v1/keys/ban", &ban).await.ok();
    assert_eq!(caller["ban"]["ends_after_seconds"], 60.0);
    assert_eq!(caller["ban"]["reason"], "scraping");
    assert!(!desk.passes("42").await && desk.passes("43").await);
    let refused = desk.ask("42").await;
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(
        refused.json()["dynamicMetadata"]["decidedBy"]["retry"],
        "in 60s"
    );
    let bans = desk.get("/api/v1/bans").await.ok();
    assert_eq!((&bans["total"], &bans["next"]), (&json!(1), &Value::Null));
    assert_eq!(bans["bans"][0]["rule"], "user_id");
    desk.limiter.store().clock().advance(Duration::from_mins(1));
    assert!(desk.passes("42").await);
    assert_eq!(desk.get("/api/v1/bans").await.ok()["total"], 0);
}

#[tokio::test]
async fn a_ban_is_lifted() {
    let desk = Desk::start();
    let ban = with(user("42"), "until_lifted", true);
    let caller = desk.post("/api/v1/keys/ban", &ban).await.ok();
    assert_eq!(caller["ban"]["ends_after_seconds"], Value::Null);
    assert!(!desk.passes("42").await);
    for unbanned in [true, false] {
        let done = desk.post("/api/v1/keys/unban", &user("42")).await.ok();
        assert_eq!(done["unbanned"], unbanned);
    }
    assert!(desk.passes("42").await);
}

#[tokio::test]
async fn a_ban_says_how_long() {
    let desk = Desk::start();
    let both = with(with(user("42"), "for_seconds", 60), "until_lifted", true);
    for body in [user("42"), with(user("42"), "until_lifted", false), both] {
        let detail = desk.post("/api/v1/keys/ban", &body).await.detail(400);
        assert!(detail.contains("say how long"), "{detail}");
    }
    for seconds in [0_u64, 315_360_001, u64::MAX] {
        let body = with(user("42"), "for_seconds", seconds);
        let detail = desk.post("/api/v1/keys/ban", &body).await.detail(400);
        assert!(detail.contains("ten years"), "{detail}");
    }
    assert!(desk.passes("42").await);
}

#[tokio::test]
async fn bans_come_in_pages() {
    let desk = Desk::start();
    for n in 0..5 {
        let ban = with(user(&n.to_string()), "until_lifted", true);
        desk.post("/api/v1/keys/ban", &ban).await.ok();
    }
    let mut seen = Vec::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let page = desk
            .get(&format!("/api/v1/bans?limit=2&offset={offset}"))
            .await
            .ok();
        assert_eq!(page["total"], 5);
        for ban in page["bans"].as_array().unwrap() {
            seen.push(ban["entries"][0]["value"].as_str().unwrap().to_owned());
        }
        offset = page["next"].clone();
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_descriptor_that_no_rule_matches_is_nobody() {
    let desk = Desk::start();
    let nobody = json!({"domain": "api", "entries": [{"key": "nobody"}]});
    let detail = desk.post("/api/v1/keys/lookup", &nobody).await.detail(404);
    let told = "no rule of the domain `api` matches the descriptor; POST /api/v1/explain says why";
    assert_eq!(detail, told);

    let nowhere = json!({"domain": "nowhere", "entries": [{"key": "nobody"}]});
    let detail = desk.post("/api/v1/keys/lookup", &nowhere).await.detail(404);
    let told = "there is no domain `nowhere`; GET /api/v1/rules lists what there is";
    assert_eq!(detail, told);
}
