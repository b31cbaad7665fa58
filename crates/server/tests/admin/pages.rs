//! The pages beside the API, and paths that are none.

use crate::desk::{Ask, Desk, compiled, exchange};

#[tokio::test]
async fn the_index_lists_every_path() {
    let desk = Desk::start();
    let document = desk.get("/api/v1/openapi.json").await.ok();
    let page = desk.get("/").await;
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.body.contains(&format!(">{path}<")), "{path}");
    }
}

#[tokio::test]
async fn health_is_told_in_the_words_of_the_reference() {
    let desk = Desk::start();
    let reply = desk.get("/healthcheck").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
    assert_eq!(
        desk.get("/readyz").await.body,
        r#"{"ready":true,"reasons":[],"degraded":false,"unshared":false,"warnings":[]}"#
    );
}

#[tokio::test]
async fn a_server_whose_store_fails_is_degraded_not_dead() {
    let desk = Desk::start();
    desk.limiter.store().degrade();
    let reply = desk.get("/healthcheck").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "degraded"));
    let reply = desk.get("/readyz").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.body,
        r#"{"ready":true,"reasons":[],"degraded":true,"unshared":false,"warnings":[]}"#
    );
    let reply = exchange(desk.http, &Ask::new("GET", "/healthcheck").text(desk.http)).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "degraded"));
    let metrics = desk.get("/metrics").await.body;
    assert!(metrics.contains("tidegate_store_degraded 1\n"), "{metrics}");
}

#[tokio::test]
async fn rules_are_shown_as_text() {
    let desk = Desk::start();
    let expected = "\
api | user_id: 5 per minute, fixed_window (rules.yaml:4)
api | user_id: 100 per hour, token_bucket (rules.yaml:4)
api | partner: no limit (rules.yaml:8)
api | plan=free: 1 per second, fixed_window, shadow mode (rules.yaml:9)
";
    assert_eq!(desk.get("/rlconfig").await.body, expected);
}

#[tokio::test]
async fn no_domain_passes_for_several_limits() {
    let desk = Desk::start();
    let rules = r#"{"domain": "a\nb | x: no limit", "descriptors": [{"key": "k"}]}"#;
    desk.limiter
        .replace_rules(compiled(rules).expect("they are valid").rules);
    let page = desk.get("/rlconfig").await.body;
    assert_eq!(page.lines().count(), 1, "{page}");
    assert!(page.starts_with("a\\nb | x: no limit | k: "), "{page}");
}

#[tokio::test]
async fn metrics_and_stats_tell_of_requests() {
    let desk = Desk::start();
    desk.passes("42").await;
    let metrics = desk.get("/metrics").await;
    assert!(metrics.body.contains("tidegate_"), "{metrics:?}");
    assert!(
        metrics
            .header("content-type")
            .unwrap()
            .contains("version=0.0.4")
    );
    assert_eq!(desk.get("/stats").await.status, 200);
}

#[tokio::test]
async fn other_paths_and_methods_say_what_there_is() {
    let desk = Desk::start();
    let detail = desk.get("/nothing").await.detail(404);
    assert_eq!(
        detail,
        "there is no /nothing here; GET / lists what there is"
    );
    let methods = [
        ("DELETE", "/api/v1/reload", "GET, HEAD, POST"),
        ("GET", "/api/v1/keys/ban", "POST"),
        ("POST", "/api/v1/log-level", "GET, HEAD, PUT"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ];
    for (method, path, allowed) in methods {
        let reply = desk.send(&Ask::new(method, path)).await;
        assert_eq!(reply.detail(405), format!("{path} takes {allowed}"));
        assert_eq!(reply.header("allow"), Some(allowed));
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let desk = Desk::start();
    let reply = desk.send(&Ask::new("HEAD", "/healthcheck")).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert_eq!(reply.header("content-length"), Some("2"));
}

#[tokio::test]
async fn the_listener_of_metrics_has_nothing_else() {
    let desk = Desk::start();
    for path in ["/metrics", "/healthcheck", "/readyz"] {
        assert_eq!(desk.scrape(&Ask::new("GET", path)).await.status, 200);
    }
    for path in ["/", "/stats", "/rlconfig", "/api/v1/top", "/api/v1/config"] {
        let reply = desk.scrape(&Ask::new("GET", path)).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.body.contains("on the admin listener"), "{reply:?}");
    }
    let reload = desk.scrape(&Ask::new("POST", "/api/v1/reload")).await;
    assert_eq!(reload.status, 404);
}
