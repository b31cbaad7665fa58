//! Requests and responses as they arrive on the other side.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tidegate_gateway::{GatewayBounds, HostMatch, PathMatch, PathRewrite, RouteAction};
use tidegate_identify::{ClientAddress, Proxies, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{RecordingUpstream, RunningGateway, config, receive, route};

fn lines(request: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = request.split("\r\n\r\n").next().unwrap().lines().collect();
    lines[1..].sort_unstable();
    lines
}

#[tokio::test]
async fn an_upstream_learns_the_client_and_nothing_meant_for_us() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let received = gateway
        .send(
            b"GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive, x-forwarded-for, x-secret, host\r\n\
              X-Secret: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n\
              X-Real-IP: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded-Prefix: /evil\r\n\
              CF-Connecting-IP: 6.6.6.6\r\nTrue_Client-IP: 6.6.6.6\r\nX-RateLimit_Limit: 7\r\nX-RateLimit-Limit: 7\r\nX-Tidegate-Decision: 1\r\nTE: gzip\r\nX-Kept: 1\r\n\r\n",
        )
        .await
        .unwrap();
    assert_eq!((received.status, received.body()), (200, "ok"));
    let requests = upstream.requests();
    assert_eq!(
        lines(&requests[0]),
        [
            "GET /a?b=c HTTP/1.1",
            "forwarded: for=127.0.0.1;host=shop.example;proto=http",
            "host: shop.example",
            "via: 1.1 tidegate",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: shop.example",
            "x-forwarded-proto: http",
            "x-kept: 1",
        ]
    );
}

#[tokio::test]
async fn a_trusted_proxy_is_believed_and_added_to() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.client_address = ClientAddress::default();
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n\
        Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\r\n";
    gateway.send(request).await.unwrap();
    let requests = upstream.requests();
    let lines = lines(&requests[0]);
    assert!(
        lines.contains(&"x-forwarded-for: 203.0.113.7, 127.0.0.1"),
        "{lines:?}"
    );
    assert!(lines.contains(&"x-forwarded-proto: https"), "{lines:?}");
    assert!(
        // Made from the walk, because the proxy is trusted for the other list.
        lines.contains(&"forwarded: for=203.0.113.7, for=127.0.0.1;host=a;proto=http"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_header_with_one_address_has_the_address_that_counts() {
    let upstream = RecordingUpstream::ok().await;
    let check = async |client_address: ClientAddress, claims: &str, expected: &str| {
        let mut config = config(upstream.address);
        config.client_address = client_address;
        let gateway = RunningGateway::start_with(config, GatewayBounds::default());
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{claims}\r\n");
        gateway.send(request.as_bytes()).await.unwrap();
        let requests = upstream.requests();
        let addresses: Vec<&str> = lines(requests.last().unwrap())
            .into_iter()
            .filter(|line| line.contains("-ip:") || line.contains("_ip:"))
            .collect();
        assert_eq!(addresses, [expected], "{claims}");
    };
    for name in ["x-real-ip", "cf-connecting-ip", "x-app-address-ip"] {
        let of_peer = format!("{name}: 127.0.0.1");
        let claim = format!("{name}: 6.6.6.6\r\n{}: 6.6.6.6\r\n", name.replace('-', "_"));
        let untrusted = || ClientAddress {
            trust: Trust::Proxies(Proxies::from_iter([])),
            header: name.into(),
        };
        check(untrusted(), "", &of_peer).await;
        check(untrusted(), &claim, &of_peer).await;
        let trusted = || ClientAddress {
            header: name.into(),
            ..ClientAddress::default()
        };
        check(trusted(), &claim, &format!("{name}: 6.6.6.6")).await;
        // The client may have written one of the lines.
        check(trusted(), &claim.repeat(2), &of_peer).await;
    }
    let list = ClientAddress::default();
    let claims = "X-Forwarded-For: 203.0.113.7\r\nX_Forwarded_For: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\nX-Kept-IP: 1\r\n";
    check(list, claims, "x-kept-ip: 1").await;
    let requests = upstream.requests();
    assert!(
        !requests.last().unwrap().contains("6.6.6.6"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn routes_rewrite_redirect_respond_and_edit() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    let mut api = route("api");
    api.matches.path = PathMatch::Prefix("/api".to_owned());
    api.action = RouteAction::Forward {
        upstream: 0,
        rewrite: Some(PathRewrite::Prefix("/v2".to_owned())),
    };
    let set = (
        HeaderName::from_static("x-set"),
        HeaderValue::from_static("1"),
    );
    api.request_headers.set = vec![set.clone()];
    api.response_headers.add = vec![set];
    let mut old = route("old");
    old.matches.hosts = vec![HostMatch::Exact("old.example".to_owned())];
    old.action = RouteAction::Redirect {
        status: http::StatusCode::PERMANENT_REDIRECT,
        location: "https://new.example{path}{query}".to_owned(),
    };
    let mut robots = route("robots");
    robots.matches.path = PathMatch::Exact("/robots.txt".to_owned());
    robots.action = RouteAction::Respond {
        status: http::StatusCode::OK,
        content_type: HeaderValue::from_static("text/plain"),
        body: "Disallow: /".into(),
    };
    config.routes = vec![old, robots, api];
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());

    let rewritten = gateway
        .send(b"GET /api/x?q=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(rewritten.header("x-set"), Some("1"));
    let requests = upstream.requests();
    assert!(requests[0].starts_with("GET /v2/x?q=1 HTTP/1.1\r\n"));
    assert!(requests[0].contains("\r\nx-set: 1\r\n"));

    let elsewhere = gateway
        .send(b"GET /p?q HTTP/1.1\r\nHost: OLD.example:80\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(elsewhere.status, 308);
    assert_eq!(
        elsewhere.header("location"),
        Some("https://new.example/p?q")
    );

    let fixed = gateway
        .send(b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!((fixed.status, fixed.body()), (200, "Disallow: /"));

    let nowhere = gateway
        .send(b"GET /else HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(nowhere.status, 404);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_a_new_route_table() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let mut stream = gateway.connect().await;
    let mut ask = async |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        receive(&mut stream).await.unwrap().status
    };
    assert_eq!(ask("/one").await, 200);
    let mut changed = config(upstream.address);
    changed.routes[0].matches.path = PathMatch::Prefix("/two".to_owned());
    gateway.gateway.replace(changed).unwrap();
    assert_eq!(ask("/one").await, 404);
    assert_eq!(ask("/two").await, 200);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn bodies_flow_both_ways_as_they_come() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
    .await;
    let gateway = RunningGateway::start(upstream.address);
    let mut stream = gateway.connect().await;
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await
        .unwrap();
    stream.write_all(b"2\r\nde\r\n0\r\n\r\n").await.unwrap();
    let received = receive(&mut stream).await.unwrap();
    assert_eq!(received.body(), "5\r\nhello\r\n0\r\n\r\n");
    let requests = upstream.requests();
    let body = requests[0].split_once("\r\n\r\n").unwrap().1;
    let without_sizes: String = body.split("\r\n").skip(1).step_by(2).collect();
    assert_eq!(without_sizes, "abcde");
}

#[tokio::test]
async fn a_denied_upload_is_not_asked_to_continue() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for _ in 0..10 {
        let allowed = gateway
            .send(b"GET / HTTP/1.1\r\nHost: a\r\nX-User: u\r\n\r\n")
            .await;
        assert_eq!(allowed.unwrap().status, 200);
    }
    let mut stream = gateway.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nX-User: u\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let denied = receive(&mut stream).await.unwrap();
    assert_eq!(denied.status, 429);
    // The body was never read, so the connection is of no use any more.
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(upstream.requests().len(), 10);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_502_or_503_and_never_429() {
    let gone = RecordingUpstream::ok().await;
    let address = gone.address;
    drop(gone);
    let mut config = config(address);
    // Two targets, neither of which listens.
    let upstream = Arc::make_mut(&mut config.upstreams[0]);
    let target = upstream.targets[0].clone();
    upstream.targets.push(target);
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    for _ in 0..3 {
        let received = gateway
            .send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        assert!(matches!(received.status, 502 | 503), "{received:?}");
        assert_eq!(received.header("cache-control"), Some("no-store"));
    }
}

#[tokio::test]
async fn an_upstream_of_http_1_0_does_not_make_the_response_one() {
    let upstream =
        RecordingUpstream::start(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let gateway = RunningGateway::start(upstream.address);
    let received = gateway
        .send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(
        received.text.starts_with("HTTP/1.1 200 OK\r\n"),
        "{received:?}"
    );
}

#[tokio::test]
async fn a_get_with_chunks_arrives_whole() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    for method in ["GET", "POST"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        );
        let received = gateway.send(request.as_bytes()).await.unwrap();
        assert_eq!(received.status, 200, "{method}");
    }
    for request in upstream.requests() {
        assert!(request.ends_with("3\r\nabc\r\n0\r\n\r\n"), "{request}");
    }
}

#[tokio::test]
async fn an_encoding_wins_over_a_length_of_the_upstream() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
    let gateway = RunningGateway::start(upstream.address);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let received = gateway.send(request).await.unwrap();
    assert_eq!(received.header("content-length"), None);
    assert!(received.body().contains("abc"), "{}", received.body());
}

#[tokio::test]
async fn informational_responses_stay_behind() {
    let upstream = RecordingUpstream::start(
        b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let gateway = RunningGateway::start(upstream.address);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let received = String::from_utf8(gateway.send_until_closed(request).await).unwrap();
    assert!(received.starts_with("HTTP/1.1 200 OK"), "{received}");
    assert!(!received.contains("style.css"), "{received}");
}

#[tokio::test]
async fn a_client_that_closes_its_half_counts_as_gone() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RunningGateway::start(silent.local_addr().unwrap());
    let mut client = gateway.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(request).await.unwrap();
    let (mut upstream, _) = silent.accept().await.unwrap();
    assert!(upstream.read(&mut [0; 1024]).await.unwrap() > 0);
    client.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    // The upstream sees the end too.
    while upstream.read(&mut [0; 1024]).await.unwrap() > 0 {}
}

#[tokio::test]
async fn a_response_with_too_many_headers_is_502() {
    for (n_headers, expected) in [(99, 200), (101, 502)] {
        let lines = "X-Many: 1\r\n".repeat(n_headers - 1);
        let response = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
        let upstream = RecordingUpstream::start(response.leak().as_bytes()).await;
        let gateway = RunningGateway::start(upstream.address);
        let received = gateway.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(received.unwrap().status, expected, "{n_headers}");
    }
}

#[tokio::test]
async fn a_target_that_is_too_long_is_414() {
    let upstream = RecordingUpstream::ok().await;
    let bounds = GatewayBounds {
        max_head_bytes: 1 << 20,
        ..GatewayBounds::default()
    };
    let gateway = RunningGateway::start_with(config(upstream.address), bounds);
    let path = "x".repeat(70_000);
    let request = format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let received = gateway.send(request.as_bytes()).await.unwrap();
    assert_eq!(received.status, 414);
}

#[tokio::test]
async fn an_encoding_that_the_client_would_not_learn_of_is_502() {
    for encoding in [
        "gzip, chunked",
        "chunked, chunked",
        "gzip",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let response = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: {encoding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        );
        let upstream = RecordingUpstream::start(response.leak().as_bytes()).await;
        let gateway = RunningGateway::start(upstream.address);
        let received = gateway.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(received.unwrap().status, 502, "{encoding}");
    }
}

#[tokio::test]
async fn a_head_with_a_bad_length_is_answered_without_one() {
    for length in ["3\r\nContent-Length: 3", "+3", "3, 3"] {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let upstream = RecordingUpstream::start(response.leak().as_bytes()).await;
        let gateway = RunningGateway::start(upstream.address);
        let mut client = gateway.connect().await;
        let request = b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut received = String::new();
        client.read_to_string(&mut received).await.unwrap();
        assert!(received.starts_with("HTTP/1.1 200"), "{length}: {received}");
        assert!(!received.contains("content-length"), "{length}: {received}");
    }
}
