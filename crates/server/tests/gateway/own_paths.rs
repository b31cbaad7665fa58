//! Tidegate's own paths, and the ids of denials.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use serde_json::{Value, json};
use tidegate_gateway::{CorsConfig, DenialBody, GatewayBounds, Requirement};
use tidegate_identify::{
    AcceptedNames, Identities, MissingToken, Recipe, Recipes, Source, TokenKeys, TokenSettings,
    TokenVerifier,
};

use crate::harness::{Received, RecordingUpstream, RunningGateway, config};

async fn ask(gateway: &RunningGateway, line: &str, headers: &str) -> Received {
    let request = format!("{line} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    gateway.send(request.as_bytes()).await.unwrap()
}

async fn usage(gateway: &RunningGateway, user: &str) -> Value {
    let told = ask(
        gateway,
        "GET /.tidegate/usage",
        &format!("X-User: {user}\r\n"),
    )
    .await;
    assert_eq!(told.status, 200, "{told:?}");
    assert_eq!(told.header("cache-control"), Some("no-store"));
    assert_eq!(told.header("content-type"), Some("application/json"));
    body(&told)
}

fn body(received: &Received) -> Value {
    let (_, body) = received.text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {received:?}"))
}

/// Asks until a user is denied.
async fn denied(gateway: &RunningGateway, headers: &str) -> Received {
    for _ in 0..=10 {
        let answer = ask(gateway, "GET /", &format!("X-User: u\r\n{headers}")).await;
        if answer.status == 429 || answer.header("grpc-status").is_some() {
            return answer;
        }
    }
    panic!("ten a day are allowed, and no more");
}

#[tokio::test]
async fn usage_tells_what_remains_and_counts_nothing() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let expected = |remaining: u64| {
        json!({"limits": [{
            "name": "per-day", "limit": 10, "window": 86_400, "remaining": remaining, "reset": 86_400,
        }]})
    };
    assert_eq!(usage(&gateway, "u").await, expected(10));
    ask(&gateway, "GET /", "X-User: u\r\n").await;
    for _ in 0..3 {
        assert_eq!(usage(&gateway, "u").await, expected(9));
    }
    assert_eq!(
        usage(&gateway, "v").await,
        expected(10),
        "a caller of its own"
    );
    assert_eq!(upstream.requests().len(), 1, "own paths are not forwarded");
}

#[tokio::test]
async fn usage_goes_by_the_route_of_a_path() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let recipe = Recipe::new([("card", Source::Header("x-card".to_owned()))]);
    config.routes[0].descriptors = Some(Recipes::new(vec![recipe]).unwrap().into());
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let headers = "X-User: u\r\nX-Card: 4111\r\n";
    let of_gateway = ask(&gateway, "GET /.tidegate/usage", headers).await;
    assert_eq!(body(&of_gateway)["limits"][0]["limit"], 10);
    let line = "GET /.tidegate/usage?path=/pay%3Fa%3D1&method=POST";
    let of_route = ask(&gateway, line, headers).await;
    assert_eq!(body(&of_route)["limits"][0]["limit"], 3);
    for bad in ["path=pay", "path=", "path=/pay&method=a%20b", "pth=/pay"] {
        let answer = ask(&gateway, &format!("GET /.tidegate/usage?{bad}"), headers).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
}

#[tokio::test]
async fn usage_is_for_callers_of_the_route_only() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.routes[0].require = vec![Requirement {
        source: Source::Header("x-plan".to_owned()),
        allow: Some(vec!["premium".to_owned()]),
        deny: Vec::new(),
    }];
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let line = "GET /.tidegate/usage?path=/";
    assert_eq!(ask(&gateway, line, "X-User: u\r\n").await.status, 403);
    let premium = ask(&gateway, line, "X-User: u\r\nX-Plan: premium\r\n").await;
    assert_eq!(premium.status, 200);
}

#[tokio::test]
async fn the_usage_of_a_route_that_demands_tokens_needs_one() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let settings = TokenSettings::new(AcceptedNames::Any, AcceptedNames::Any);
    let keys = TokenKeys::from_secret(&[1; 32]).unwrap();
    let verifier = TokenVerifier::new(settings, keys);
    config.identities = Arc::new(Identities::default().with_tokens(Arc::new(verifier)));
    config.routes[0].missing_token = Some(MissingToken::Deny);
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let told = ask(&gateway, "GET /.tidegate/usage", "X-User: u\r\n").await;
    assert_eq!(told.status, 200, "the whole gateway demands none");
    let told = ask(&gateway, "GET /.tidegate/usage?path=/x", "X-User: u\r\n").await;
    assert_eq!(told.status, 401);
    assert_eq!(told.header("www-authenticate"), Some("Bearer"));
    let answer = ask(&gateway, "GET /x", "X-User: u\r\n").await;
    assert_eq!(answer.status, 401);
    // The limit of the header was charged, because tokens must not be guessed at any rate.
    let told = ask(&gateway, "GET /.tidegate/usage", "X-User: u\r\n").await;
    assert_eq!(body(&told)["limits"][0]["remaining"], 9);
    let call = "X-User: v\r\nContent-Type: application/grpc\r\n";
    let answer = ask(&gateway, "POST /x", call).await;
    assert_eq!(answer.header("grpc-status"), Some("16"));
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_caller_without_limits_has_no_usage() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let told = ask(&gateway, "GET /.tidegate/usage", "").await;
    assert_eq!(body(&told), json!({"limits": []}));
}

#[tokio::test]
async fn own_paths_have_a_limit_of_their_own() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for _ in 0..20 {
        usage(&gateway, "u").await;
    }
    let over = ask(&gateway, "GET /.tidegate/usage", "X-User: v\r\n").await;
    assert_eq!(over.status, 429, "by address, whoever the user is");
    assert_eq!(over.header("retry-after"), Some("2"));
    assert!(over.header("x-tidegate-decision").is_some());
    assert_eq!(ask(&gateway, "GET /", "X-User: u\r\n").await.status, 200);
    gateway.clock.advance(Duration::from_secs(2));
    usage(&gateway, "u").await;
}

#[tokio::test]
async fn other_paths_and_methods_are_not_ours() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for (line, status) in [
        ("GET /.tidegate/", 404),
        ("GET /.tidegate/unknown", 404),
        ("GET /x/../.tidegate/unknown", 404),
        ("GET /.tidegate", 200),
        ("GET /usage", 200),
        ("GET /x/.tidegate/usage", 200),
        ("POST /.tidegate/usage", 405),
    ] {
        let headers = "X-User: u\r\nContent-Length: 0\r\n";
        assert_eq!(ask(&gateway, line, headers).await.status, status, "{line}");
    }
    assert_eq!(upstream.requests().len(), 3);
    let other = ask(&gateway, "DELETE /.tidegate/usage", "").await;
    assert_eq!(other.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn pages_of_other_origins_can_read_their_usage() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.own_prefix = "/limits/".to_owned();
    config.cors = Some(CorsConfig {
        origins: vec![HeaderValue::from_static("https://shop.example")],
        credentials: false,
    });
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let headers = "Origin: https://shop.example\r\nAccess-Control-Request-Method: GET\r\n\
        Access-Control-Request-Headers: x-user\r\n";
    let preflight = ask(&gateway, "OPTIONS /limits/usage", headers).await;
    assert_eq!(preflight.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://shop.example"),
        ("access-control-allow-methods", "GET, HEAD"),
        ("access-control-allow-headers", "x-user"),
    ] {
        assert_eq!(preflight.header(name), Some(value));
    }
    let headers = "Origin: https://shop.example\r\nX-User: u\r\n";
    let told = ask(&gateway, "GET /limits/usage", headers).await;
    assert_eq!(told.status, 200);
    assert_eq!(
        told.header("access-control-allow-origin"),
        Some("https://shop.example")
    );
}

#[tokio::test]
async fn a_denial_has_an_id() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let first = denied(&gateway, "").await;
    let id = first.header("x-tidegate-decision").unwrap().to_owned();
    assert_eq!(
        body(&first)["instance"],
        format!("urn:tidegate:decision:{id}")
    );
    let second = denied(&gateway, "").await;
    assert_ne!(second.header("x-tidegate-decision"), Some(&*id));
    let kept = gateway.observatory.decision(id.parse().unwrap()).unwrap();
    assert_eq!(kept.rule.unwrap().line, 4);
    assert_eq!(kept.route.as_deref(), Some("all"));
    let grpc = denied(&gateway, "Content-Type: application/grpc\r\n").await;
    assert!(grpc.header("x-tidegate-decision").is_some());
}

#[tokio::test]
async fn templates_have_the_limit_and_the_id() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.denial_body = DenialBody::Template {
        content_type: HeaderValue::from_static("text/plain"),
        text: "{{limit}} a day; quote {{decision}}".to_owned(),
    };
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let denied = denied(&gateway, "").await;
    let id = denied.header("x-tidegate-decision").unwrap();
    let expected = format!("10 a day; quote {id}");
    assert!(denied.text.ends_with(&expected), "{}", denied.text);
}
