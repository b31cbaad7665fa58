//! Denials as clients see them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderValue;
use tidegate_gateway::{CorsConfig, DenialBody, GatewayBounds, HealthCheck, Requirement};
use tidegate_identify::Source;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Received, RecordingUpstream, RunningGateway, config, receive};

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
async fn an_upstream_with_limits_of_its_own_does_not_contradict_ours() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 429 Too Many Requests\r\nX-RateLimit-Limit: 99\r\nX-RateLimit-Reset: 7\r\nX-Rate-Limit-Remaining: 98\r\n\
          RateLimit: 97\r\nRateLimit-Policy: 96\r\nRetry-After: 5\r\nX-Rate: 1\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let gateway = RunningGateway::start(upstream.address);
    let limited = ask(&gateway, "X-User: u\r\n").await;
    assert_eq!(limited.status, 429);
    let told = |received: &Received| {
        let lines = received.text.to_ascii_lowercase();
        let mut lines: Vec<String> = (lines.lines())
            .filter(|line| line.contains("rate") || line.contains("retry"))
            .map(str::to_owned)
            .collect();
        lines.sort_unstable();
        lines
    };
    let ours = [
        "retry-after: 5",
        "x-rate: 1",
        "x-ratelimit-limit: 10",
        "x-ratelimit-remaining: 9",
    ];
    assert_eq!(told(&limited), ours);
    // Without a limit of ours, the upstream speaks.
    let unlimited = ask(&gateway, "").await;
    assert_eq!(told(&unlimited).len(), 7);
}

#[tokio::test]
async fn a_request_that_passes_over_a_soft_limit_is_marked() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for (status, mark) in [(200, None), (200, Some("true")), (429, None)] {
        let answer = ask(&gateway, "X-User: soft\r\n").await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-ratelimit-over"), mark);
    }
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
    // One that has a body or asks for an upgrade is a request like any other.
    for line in [
        "Content-Length: 1\r\n\r\nx",
        "Connection: upgrade\r\nUpgrade: x\r\n\r\n",
    ] {
        let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\nX-User: u\r\nOrigin: https://shop.example\r\n\
            Access-Control-Request-Method: GET\r\n";
        let asked = gateway.send(format!("{request}{line}").as_bytes()).await;
        assert_eq!(asked.unwrap().status, 429, "{line}");
    }
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
    // A cache may keep the answer to a request without an origin.
    for user in ["u", "v"] {
        let without = ask(&gateway, &format!("X-User: {user}\r\n")).await;
        assert_eq!(without.header("vary"), Some("origin"), "{user}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_can_read_that_the_gateway_is_unavailable() {
    let gone = RecordingUpstream::ok().await;
    let mut config = config(gone.address);
    drop(gone);
    config.cors = Some(CorsConfig {
        origins: vec![HeaderValue::from_static("https://shop.example")],
        credentials: false,
    });
    Arc::make_mut(&mut config.upstreams[0]).health_check = Some(HealthCheck {
        interval: Duration::from_millis(1),
        ..HealthCheck::new("/")
    });
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let mut status = 0;
    // First nobody can connect, and once that was noticed nobody tries to.
    while status != 503 {
        let failed = ask(&gateway, "Origin: https://shop.example\r\n").await;
        status = failed.status;
        assert!(matches!(status, 502 | 503), "{failed:?}");
        let allowed = failed.header("access-control-allow-origin");
        assert_eq!(allowed, Some("https://shop.example"));
        assert_eq!(failed.header("vary"), Some("origin"));
        let exposed = failed.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("retry-after"), "{exposed}");
    }
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
async fn with_a_list_of_addresses_only_those_have_access() {
    let check = async |allow: &str, deny: Option<&str>, expected: u16| {
        let upstream = RecordingUpstream::ok().await;
        let mut config = config(upstream.address);
        let networks = |network: &str| tidegate_rules::Networks::new(&[network.parse().unwrap()]);
        config.access.allow = Some(networks(allow));
        config.access.deny = deny.map(networks);
        let gateway = RunningGateway::start_with(config, GatewayBounds::default());
        assert_eq!(ask(&gateway, "").await.status, expected, "{allow} {deny:?}");
        assert_eq!(upstream.requests().is_empty(), expected == 403);
    };
    check("127.0.0.0/8", None, 200).await;
    check("192.0.2.0/24", None, 403).await;
    check("127.0.0.0/8", Some("192.0.2.0/24"), 200).await;
    check("127.0.0.0/8", Some("127.0.0.1/32"), 403).await;
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

const DECLINED: &[u8] = b"HTTP/1.1 402 Payment Required\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn of_a_hundred_parallel_payments_that_fail_three_get_through() {
    let upstream = RecordingUpstream::start(DECLINED).await;
    let gateway = RunningGateway::start(upstream.address);
    for day in 1..=2 {
        let tries = (0..100).map(|_| ask(&gateway, "X-Card: c\r\n"));
        let statuses = join_all(tries).await.into_iter().map(|it| it.status);
        let mut statuses: Vec<u16> = statuses.collect();
        statuses.sort_unstable();
        assert_eq!(statuses[..3], [402, 402, 402]);
        assert!(statuses[3..].iter().all(|status| *status == 429));
        assert_eq!(upstream.requests().len(), 3 * day);
        gateway.clock.advance(Duration::from_hours(24));
    }
}

#[tokio::test]
async fn payments_that_succeed_or_reach_nobody_cost_nothing() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for _ in 0..20 {
        assert_eq!(ask(&gateway, "X-Card: c\r\n").await.status, 200);
    }
    drop(upstream);
    // Its connections close with it, and nobody listens any more.
    for _ in 0..20 {
        let failed = ask(&gateway, "X-Card: c\r\n").await;
        assert!(matches!(failed.status, 502 | 503), "{failed:?}");
    }
    let again = RecordingUpstream::start(DECLINED).await;
    gateway.gateway.replace(config(again.address)).unwrap();
    for expected in [402, 402, 402, 429] {
        assert_eq!(ask(&gateway, "X-Card: c\r\n").await.status, expected);
    }
}

/// A charge before midnight whose response comes after it: the refund must not enlarge the new day.
#[tokio::test]
async fn a_late_refund_does_not_enlarge_the_next_day() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RunningGateway::start(listener.local_addr().unwrap());
    gateway
        .clock
        .advance(Duration::from_hours(24) - Duration::from_secs(1));
    let mut before = gateway.connect().await;
    before
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nX-Card: c\r\n\r\n")
        .await
        .unwrap();
    // The request has been charged once it is here.
    let (mut upstream, _) = listener.accept().await.unwrap();
    while !read_some(&mut upstream).await.ends_with("\r\n\r\n") {}
    gateway.clock.advance(Duration::from_secs(2));
    let declining = RecordingUpstream::start(DECLINED).await;
    gateway.gateway.replace(config(declining.address)).unwrap();
    assert_eq!(ask(&gateway, "X-Card: c\r\n").await.status, 402);
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(receive(&mut before).await.unwrap().status, 200);
    for expected in [402, 402, 429] {
        assert_eq!(ask(&gateway, "X-Card: c\r\n").await.status, expected);
    }
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 4096];
    let n_bytes = stream.read(&mut bytes).await.unwrap();
    assert!(n_bytes > 0);
    String::from_utf8_lossy(&bytes[..n_bytes]).into_owned()
}

#[tokio::test]
async fn a_flood_of_preflights_is_limited() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let request = b"OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n\r\n";
    let mut n_allowed = 0;
    while gateway.send(request).await.unwrap().status == 200 {
        n_allowed += 1;
        assert!(n_allowed <= 200);
    }
    assert_eq!(n_allowed, 200);
}

#[tokio::test]
async fn a_denial_says_that_it_closes_if_the_body_is_still_to_come() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    exhaust(&gateway, "u").await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nX-User: u\r\nContent-Length: 5\r\n";
    let mut client = gateway.connect().await;
    client
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .unwrap();
    let denied = receive(&mut client).await.unwrap();
    assert_eq!(
        (denied.status, denied.header("connection")),
        (429, Some("close"))
    );
    let mut client = gateway.connect().await;
    let expecting = format!("{head}Expect: 100-continue\r\n\r\n");
    client.write_all(expecting.as_bytes()).await.unwrap();
    let denied = receive(&mut client).await.unwrap();
    assert_eq!(
        (denied.status, denied.header("connection")),
        (429, Some("close"))
    );
    // A body that is there with the head costs no connection.
    let mut client = gateway.connect().await;
    for _ in 0..3 {
        let whole = format!("{head}\r\nhello");
        client.write_all(whole.as_bytes()).await.unwrap();
        let denied = receive(&mut client).await.unwrap();
        assert_eq!((denied.status, denied.header("connection")), (429, None));
    }
}

/// Upstreams differ in the line that they read, so none may be a new caller.
#[tokio::test]
async fn lines_of_one_header_that_differ_are_denied() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.routes[0].require = vec![Requirement {
        source: Source::Header("x-plan".to_owned()),
        allow: None,
        deny: vec!["banned".to_owned()],
    }];
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let check = async |lines: &str, expected: u16| {
        assert_eq!(ask(&gateway, lines).await.status, expected, "{lines}");
    };
    check("X-User: a\r\nX-User: a\r\n", 200).await;
    check("X-User: a\r\nX-User: b\r\n", 400).await;
    check("X-User: c\r\nX-Plan: banned\r\n", 403).await;
    check("X-User: c\r\nX-Plan: banned\r\nX-Plan: x\r\n", 400).await;
    check("X-User: c\r\nX-Other: 1\r\nX-Other: 2\r\n", 200).await;
    // Upstreams that make variables of headers take both names for one.
    check("X-User: a\r\nX_User: b\r\n", 400).await;
    check("X-User: c\r\nX_Plan: banned\r\n", 403).await;
    let lone = ask(&gateway, "X_User: d\r\n").await;
    assert_eq!(lone.header("x-ratelimit-remaining"), Some("9"));
    let lone = ask(&gateway, "X-User: d\r\n").await;
    assert_eq!(lone.header("x-ratelimit-remaining"), Some("8"));
}
