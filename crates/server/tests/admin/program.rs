//! What is asked of the program around the server.

use serde_json::{Value, json};

use crate::desk::{Ask, Desk};
use crate::schema::Document;

#[tokio::test]
async fn the_configuration_is_shown() {
    let desk = Desk::start();
    let config = desk.get("/api/v1/config").await.ok();
    assert_eq!(config["admin"]["token"], "(redacted)");
}

#[tokio::test]
async fn a_reload_tells_what_it_found() {
    let desk = Desk::start();
    assert_eq!(
        desk.get("/api/v1/reload").await.ok(),
        json!({"source": "rules.yaml", "reload": null})
    );
    let done = desk.post("/api/v1/reload", &Value::Null).await.ok();
    assert_eq!(
        (&done["outcome"], &done["rules"]),
        (&json!("replaced"), &json!(3))
    );
    assert_eq!(
        (&done["at"], &done["trigger"]),
        (&json!("2026-11-15T12:00:00Z"), &json!("admin"))
    );
    "domain: api\ndescriptors: [{key: a, rate_limt: {}}]"
        .clone_into(&mut desk.hooks.rules.lock().unwrap());
    let failed = desk.post("/api/v1/reload", &Value::Null).await;
    assert!(failed.detail(422).contains("those before stay in force"));
    let finding = &failed.json()["reload"]["findings"][0];
    assert_eq!(
        (&finding["file"], &finding["line"]),
        (&json!("rules.yaml"), &json!(2))
    );
    assert_eq!(finding["code"], "unknown-field");
    let last = desk.get("/api/v1/reload").await.ok();
    assert_eq!(last["reload"], failed.json()["reload"]);
}

#[tokio::test]
async fn the_log_level_changes() {
    let desk = Desk::start();
    let put = |body: &str| Ask::new("PUT", "/api/v1/log-level").body(body);
    assert_eq!(desk.get("/api/v1/log-level").await.ok()["level"], "info");
    assert_eq!(
        desk.send(&put(r#"{"level": "debug"}"#)).await.ok()["level"],
        "debug"
    );
    let detail = desk.send(&put(r#"{"level": "loud"}"#)).await.detail(400);
    assert_eq!(detail, "that is no level of the log: write debug or info");
    assert_eq!(desk.get("/api/v1/log-level").await.ok()["level"], "debug");
}

#[tokio::test]
async fn the_store_is_shown() {
    let desk = Desk::start();
    let store = desk.get("/api/v1/store").await.ok();
    let stats = desk.limiter.store().stats();
    let expected = json!({
        "kind": "memory", "health": "ok", "servers": [], "regions": [], "sharing": null,
        "used_bytes": stats.used_bytes, "max_bytes": stats.max_bytes,
        "evicted": 0, "untracked": 0,
        "state": {
            "written_at": "2027-01-15T08:00:00Z", "counters": 5, "bytes": 6, "failures": 7, "fault": null,
        },
    });
    assert_eq!(store, expected);
}

#[tokio::test]
async fn a_store_that_fails_says_where_and_why() {
    let desk = Desk::start();
    desk.limiter.store().degrade();
    let document = Document(desk.get("/api/v1/openapi.json").await.ok());
    let store = desk.get("/api/v1/store").await.ok();
    let schema = json!({"$ref": "#/components/schemas/Store"});
    assert_eq!(document.faults(&schema, &store), Vec::<String>::new());
    assert_eq!(
        (&store["kind"], &store["health"]),
        (&json!("redis"), &json!("degraded"))
    );
    let server = &store["servers"][0];
    assert_eq!(server["breaker"], "open");
    assert_eq!(server["fault"], "connection refused");
    assert_eq!(server["mean_micros"], 30);
    assert_eq!(server["info"]["cpu_millis"], 1_500);
    assert_eq!(store["sharing"]["members"], 3);
    let region = &store["regions"][0];
    assert_eq!(
        (&region["name"], &region["health"]),
        (&json!("us"), &json!("ok"))
    );
    assert_eq!(region["servers"][0]["address"], "127.0.0.2:1");
}
