//! Clients that send too much or take too long.

use std::time::Duration;

use tidegate_gateway::GatewayBounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::harness::{LONG, RecordingUpstream, RunningGateway, config, receive};

/// Bounds that a test can wait for.
fn short() -> GatewayBounds {
    GatewayBounds {
        head_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(300),
        max_body_bytes: 10,
        max_requests: 3,
        max_connections_per_address: Some(2),
        ..GatewayBounds::default()
    }
}

fn start(upstream: &RecordingUpstream) -> RunningGateway {
    RunningGateway::start_with(config(upstream.address), short())
}

#[tokio::test]
async fn slow_heads_and_silent_connections_are_closed() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream);
    for begun in [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "PRI * HTTP/2",
    ] {
        let mut stream = gateway.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        // It ends by itself; whatever was sent before is not an answer to a request.
        let mut rest = Vec::new();
        timeout(LONG, stream.read_to_end(&mut rest))
            .await
            .expect("an end")
            .unwrap();
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{begun:?}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_slow_or_large_body_is_refused() {
    let upstream = RecordingUpstream::ok().await;
    // A connection with an unread body is not closed at once.
    let bounds = GatewayBounds {
        max_connections_per_address: None,
        ..short()
    };
    let gateway = RunningGateway::start_with(config(upstream.address), bounds);
    let said = gateway
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n")
        .await;
    assert_eq!(said.unwrap().status, 413);
    let unsaid = gateway
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n")
        .await;
    assert_eq!(unsaid.unwrap().status, 413);
    let slow = gateway
        .send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
        .await;
    assert_eq!(slow.unwrap().status, 408);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_connection_carries_so_many_requests() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream);
    let mut stream = gateway.connect().await;
    for number in 1..=3 {
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let received = receive(&mut stream).await.unwrap();
        assert_eq!(received.header("connection") == Some("close"), number == 3);
    }
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn an_address_has_so_many_connections() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = gateway.connect().await;
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(receive(&mut stream).await.unwrap().status, 200);
        streams.push(stream);
    }
    let mut third = gateway.connect().await;
    let _ = third.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(receive(&mut third).await.is_none());
}

#[tokio::test]
async fn a_route_has_a_bound_of_its_own_on_bodies() {
    let upstream = RecordingUpstream::ok().await;
    let mut config = config(upstream.address);
    config.routes[0].max_body_bytes = Some(10);
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    for (body, expected) in [
        ("Content-Length: 10\r\n\r\n1234567890", 200),
        ("Content-Length: 11\r\n\r\n12345678901", 413),
        (
            "Transfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n",
            200,
        ),
        (
            "Transfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n5\r\n78901\r\n0\r\n\r\n",
            413,
        ),
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{body}");
        let received = gateway.send(request.as_bytes()).await.unwrap();
        assert_eq!(received.status, expected, "{body}");
    }
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn heads_are_bounded() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let many = "X-Many: 1\r\n".repeat(200);
    let received = gateway
        .send(format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n").as_bytes())
        .await;
    assert_eq!(received.unwrap().status, 431);
    let long = "x".repeat(100_000);
    let received = gateway
        .send(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n").as_bytes())
        .await;
    assert_eq!(received.unwrap().status, 431);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_request_in_progress_is_answered_before_the_end() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let mut stream = gateway.connect().await;
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        .await
        .unwrap();
    // Another connection shows that the first one was taken.
    assert_eq!(
        gateway
            .send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap()
            .status,
        200
    );
    gateway.ask_to_stop();
    stream.write_all(b"b").await.unwrap();
    assert_eq!(receive(&mut stream).await.unwrap().status, 200);
    gateway.ended().await;
}

#[tokio::test]
async fn an_idle_connection_closes_when_the_server_stops() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = RunningGateway::start(upstream.address);
    let mut stream = gateway.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(receive(&mut stream).await.unwrap().status, 200);
    gateway.ask_to_stop();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    gateway.ended().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_last_request() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream);
    for n_requests in 1..=2 {
        let mut stream = gateway.connect().await;
        for _ in 0..n_requests {
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .await
                .unwrap();
            assert_eq!(receive(&mut stream).await.unwrap().status, 200);
        }
        // The idle timeout, and half of it for a busy client; the rest is a slow machine's.
        let closed = timeout(10 * short().idle_timeout, stream.read(&mut [0])).await;
        assert_eq!(closed.expect("in time").unwrap(), 0);
    }
}
