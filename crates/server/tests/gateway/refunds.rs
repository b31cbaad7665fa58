//! Charges of limits that count by status, for requests without a response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::{
    GatewayBounds, GatewayConfig, RetryConfig, RetryOn, UpstreamConfig, UpstreamProtocol,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::harness::{LONG, RecordingUpstream, RunningGateway, config, receive};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX-Card: c\r\n\r\n";

/// Longer than the way to an upstream on this machine takes.
const BRIEF: Duration = Duration::from_millis(200);

/// Waits until this many requests are on their way to the upstream.
async fn until_in_progress(gateway: &RunningGateway, expected: u64) {
    let reached = async {
        while gateway.gateway.gauges().upstreams[0].targets[0].in_progress != expected {
            yield_now().await;
        }
    };
    timeout(LONG, reached).await.expect("in progress");
}

#[tokio::test]
async fn a_client_that_leaves_before_anything_was_sent_is_refunded() {
    // It accepts connections and never says that HTTP/2 may begin.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut waiting = config(silent.local_addr().unwrap());
    let mut upstream = UpstreamConfig::clone(&waiting.upstreams[0]);
    upstream.protocol = UpstreamProtocol::Http2;
    upstream.timeouts.connect = LONG;
    waiting.upstreams = vec![Arc::new(upstream)];
    let gateway = RunningGateway::start_with(waiting, GatewayBounds::default());
    for _ in 0..10 {
        let mut client = gateway.connect().await;
        client.write_all(REQUEST).await.unwrap();
        until_in_progress(&gateway, 1).await;
        drop(client);
        until_in_progress(&gateway, 0).await;
    }
    let declining =
        RecordingUpstream::start(b"HTTP/1.1 402 Payment Required\r\nContent-Length: 0\r\n\r\n")
            .await;
    gateway.gateway.replace(config(declining.address)).unwrap();
    let three_allowed = async {
        // The last refund may still be under way.
        while declining.requests().len() < 3 {
            gateway.send(REQUEST).await.unwrap();
        }
    };
    timeout(LONG, three_allowed).await.expect("three payments");
    assert_eq!(gateway.send(REQUEST).await.unwrap().status, 429);
}

#[tokio::test]
async fn a_charge_stays_if_an_earlier_attempt_may_have_arrived() {
    let breaking = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = breaking.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = breaking.accept().await.unwrap();
            let n_bytes = stream.read(&mut [0; 4096]).await.unwrap();
            assert!(n_bytes > 0);
        }
    });
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = {
        let targets = [address, nobody.local_addr().unwrap()];
        let target = |address: SocketAddr| format!("http://{address}").parse().unwrap();
        let upstream = UpstreamConfig::new("api", targets.map(target).into());
        let mut config = config(address);
        config.upstreams = vec![Arc::new(upstream)];
        config.routes[0].retry = Some(RetryConfig {
            on: vec![RetryOn::Connect, RetryOn::Reset],
            attempts: 1,
            budget_percent: 100,
        });
        RunningGateway::start_with(config, GatewayBounds::default())
    };
    drop(nobody);
    // Whichever target comes first, one of two attempts arrives.
    for expected in [502, 502, 502, 429] {
        assert_eq!(gateway.send(REQUEST).await.unwrap().status, expected);
    }
    serving.abort();
}

/// The upstream may have done its work.
#[tokio::test]
async fn a_charge_stays_after_a_timeout() {
    let check = async |change: fn(&mut GatewayConfig)| {
        // The kernel accepts connections and takes requests, and nobody answers them.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = config(silent.local_addr().unwrap());
        change(&mut config);
        let gateway = RunningGateway::start_with(config, GatewayBounds::default());
        for expected in [504, 504, 504, 429] {
            assert_eq!(gateway.send(REQUEST).await.unwrap().status, expected);
        }
    };
    check(|config| {
        let upstream = Arc::make_mut(&mut config.upstreams[0]);
        upstream.timeouts.first_byte = BRIEF;
    })
    .await;
    check(|config| config.routes[0].total_timeout = Some(BRIEF)).await;
}

/// The bytes of the body that the gateway has not read hide the end of the connection, but not for longer than the upstream may take.
#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_its_body_holds_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(silent.local_addr().unwrap());
    Arc::make_mut(&mut config.upstreams[0]).timeouts.first_byte = BRIEF;
    let bounds = GatewayBounds {
        max_connections: 1,
        ..GatewayBounds::default()
    };
    let gateway = RunningGateway::start_with(config, bounds);
    let mut client = gateway.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n";
    client.write_all(head).await.unwrap();
    until_in_progress(&gateway, 1).await;
    // Until all buffers up to the upstream are full.
    let body = vec![0; 1 << 16];
    while let Ok(Ok(())) = timeout(BRIEF / 2, client.write_all(&body)).await {}
    drop(client);
    until_in_progress(&gateway, 0).await;
    // There is one place for a connection, and another one waits until the first is closed. From the same address it would be closed at once.
    let mut other = gateway.connect_from([127, 0, 0, 2]).await;
    other.write_all(REQUEST).await.unwrap();
    assert_eq!(receive(&mut other).await.unwrap().status, 504);
}
