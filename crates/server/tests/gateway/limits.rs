//! Denials as clients see them.

use http::HeaderValue;
use tidegate_gateway::{CorsConfig, DenialBody, GatewayBounds, Requirement};
use tidegate_identify::Source;

use crate::harness::{Received, RecordingUpstream, RunningGateway, config};

async fn ask(gateway: &RunningGateway, lines: &str) -> Received {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    gateway.send(request.as_bytes()).await.unwrap()
}

/// Uses up the limit of a user.
async fn exhaust(gateway: &RunningGateway, user: &str) {
    for remaining in (0..10).rev() {
        let allowed = ask(gateway, &format!("X-User: {user}\r\n")).await;
        assert_eq!(allowed.status, 200);
        assert_eq!(
            allowed.header("x-ratelimit-remaining"),
            Some(&*remaining.to_string())
        );
    }
}

#[tokio::test]
async fn a_caller_over_the_limit_gets_429_and_others_pass() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 99\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let gateway = RunningGateway::start(upstream.address);
    exhaust(&gateway, "u").await;
    let denied = ask(&gateway, "X-User: u\r\n").await;
    assert_eq!(denied.status, 429);
    assert_eq!(
        denied.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    assert_eq!(denied.header("x-ratelimit-limit"), Some("10"));
    // The store's clock stands at the beginning of a day.
    assert_eq!(denied.header("retry-after"), Some("86400"));
    let other = ask(&gateway, "X-User: v\r\n").await;
    assert_eq!(other.status, 200);
    // Ours, not the upstream's.
    assert_eq!(other.header("x-ratelimit-limit"), Some("10"));
    assert_eq!(upstream.requests().len(), 11);
}

#[tokio::test]
async fn grpc_callers_are_told_in_their_own_words() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    exhaust(&gateway, "u").await;
    let denied = ask(&gateway, "X-User: u\r\nContent-Type: application/grpc\r\n").await;
    assert_eq!(denied.status, 200);
    assert_eq!(denied.header("grpc-status"), Some("8"));
    assert!(denied.header("grpc-status-details-bin").is_some());
    assert!(
        denied
            .header("grpc-message")
            .unwrap()
            .contains("is used up")
    );
}

#[tokio::test]
async fn pages_of_other_origins_can_read_denials() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: x-mine\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let mut config = config(upstream.address);
    config.cors = Some(CorsConfig {
        origins: vec![HeaderValue::from_static("https://shop.example")],
        credentials: true,
    });
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    // A browser asks first; that is not charged.
    for _ in 0..20 {
        let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\nX-User: u\r\nOrigin: https://shop.example\r\n\
            Access-Control-Request-Method: GET\r\n\r\n";
        let asked = gateway.send(request.as_bytes()).await.unwrap();
        assert_eq!(asked.status, 200);
    }
    exhaust(&gateway, "u").await;
    let denied = ask(&gateway, "X-User: u\r\nOrigin: https://shop.example\r\n").await;
    assert_eq!(denied.status, 429);
    assert_eq!(
        denied.header("access-control-allow-origin"),
        Some("https://shop.example")
    );
    assert_eq!(
        denied.header("access-control-allow-credentials"),
        Some("true")
    );
    assert_eq!(denied.header("vary"), Some("origin"));
    let exposed = denied.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("retry-after") && exposed.contains("ratelimit-policy"));
    let stranger = ask(&gateway, "X-User: u\r\nOrigin: https://evil.example\r\n").await;
    assert_eq!(stranger.header("access-control-allow-origin"), None);
    assert_eq!(stranger.header("vary"), Some("origin"));
    let allowed = ask(&gateway, "X-User: v\r\nOrigin: https://shop.example\r\n").await;
    let exposed = allowed
        .text
        .matches("access-control-expose-headers")
        .count();
    assert_eq!(exposed, 2, "{}", allowed.text);
}

#[tokio::test]
async fn a_route_is_for_some_callers_only() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.routes[0].require = vec![Requirement {
        source: Source::Header("x-plan".to_owned()),
        allow: Some(vec!["premium".to_owned()]),
        deny: Vec::new(),
    }];
    config.access.deny = Some(tidegate_rules::Networks::new(&["192.0.2.0/24"
        .parse()
        .unwrap()]));
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    assert_eq!(ask(&gateway, "X-Plan: premium\r\n").await.status, 200);
    assert_eq!(ask(&gateway, "X-Plan: free\r\n").await.status, 403);
    assert_eq!(ask(&gateway, "").await.status, 403);
}

#[tokio::test]
async fn addresses_without_access_get_403() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.access.deny = Some(tidegate_rules::Networks::new(&["127.0.0.0/8"
        .parse()
        .unwrap()]));
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    assert_eq!(ask(&gateway, "").await.status, 403);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn an_operator_writes_the_body_of_denials() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.denial_body = DenialBody::Template {
        content_type: HeaderValue::from_static("text/html; charset=utf-8"),
        text: "<p>{{status}}: come back in {{retry_after}} s</p>".to_owned(),
    };
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    exhaust(&gateway, "u").await;
    let denied = ask(&gateway, "X-User: u\r\n").await;
    assert_eq!(denied.body(), "<p>429: come back in 86400 s</p>");
    assert_eq!(
        denied.header("content-type"),
        Some("text/html; charset=utf-8")
    );
}
