//! Connections of a gateway that is full, and of one address.

use bytes::Bytes;
use h2::SendStream;
use h2::client::SendRequest;
use http::Request;
use tidegate_gateway::GatewayBounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{LONG, RecordingUpstream, RunningGateway, config, receive};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A gateway for so many connections, of which one address may have `per_address`.
fn start(
    upstream: &RecordingUpstream,
    max_connections: usize,
    per_address: Option<usize>,
) -> RunningGateway {
    let bounds = GatewayBounds {
        max_connections,
        max_connections_per_address: per_address,
        ..GatewayBounds::default()
    };
    RunningGateway::start_with(config(upstream.address), bounds)
}

/// The status of the response to a request, or `None` if the connection is closed.
async fn get(stream: &mut TcpStream) -> Option<u16> {
    stream.write_all(GET).await.ok()?;
    receive(stream).await.map(|received| received.status)
}

/// Waits until the gateway closes the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut rest)).await;
    assert!(read.expect("an end").is_err() || rest.is_empty());
}

/// Makes room for a further connection, which asks once.
async fn one_more(gateway: &RunningGateway) -> TcpStream {
    let mut stream = gateway.connect().await;
    assert_eq!(get(&mut stream).await, Some(200));
    stream
}

/// An HTTP/2 connection, and the task that ends with it.
async fn connect_http2(
    gateway: &RunningGateway,
) -> (SendRequest<Bytes>, tokio::task::JoinHandle<()>) {
    let (client, connection) = h2::client::handshake(gateway.connect().await)
        .await
        .unwrap();
    let ended = tokio::spawn(async move {
        let _ = connection.await;
    });
    (client, ended)
}

#[tokio::test]
async fn a_full_gateway_evicts_the_idlest_connection() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream, 4, Some(usize::MAX));
    let mut silent = gateway.connect().await;
    // After one request a connection is parked; after two in a row hyper keeps it for some time.
    let mut parked = one_more(&gateway).await;
    let mut busy = one_more(&gateway).await;
    assert_eq!(get(&mut busy).await, Some(200));
    let (http2, http2_ended) = connect_http2(&gateway).await;
    let mut http2 = http2.ready().await.unwrap();
    let request = Request::get("http://a/").body(()).unwrap();
    let (response, _) = http2.send_request(request, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    // Each further connection evicts the one that has been idle for longest.
    let mut late = vec![one_more(&gateway).await];
    closed(&mut silent).await;
    late.push(one_more(&gateway).await);
    closed(&mut parked).await;
    late.push(one_more(&gateway).await);
    closed(&mut busy).await;
    late.push(one_more(&gateway).await);
    timeout(LONG, http2_ended).await.expect("an end").unwrap();
    for stream in &mut late {
        assert_eq!(get(stream).await, Some(200));
    }
}

#[tokio::test]
async fn a_connection_with_a_request_under_way_is_not_evicted() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream, 2, Some(usize::MAX));
    let mut busy = gateway.connect().await;
    // The gateway waits for the rest of the body.
    let begin = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na";
    busy.write_all(begin).await.unwrap();
    upstream.connected().await;
    let mut idle = one_more(&gateway).await;
    for _ in 0..8 {
        one_more(&gateway).await;
    }
    closed(&mut idle).await;
    busy.write_all(b"b").await.unwrap();
    assert_eq!(receive(&mut busy).await.unwrap().status, 200);
}

#[tokio::test]
async fn one_address_has_half_of_the_places() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream, 4, None);
    let _open = [one_more(&gateway).await, one_more(&gateway).await];
    let mut third = gateway.connect().await;
    assert_eq!(get(&mut third).await, None);
    let mut other = gateway.connect_from([127, 0, 0, 2]).await;
    assert_eq!(get(&mut other).await, Some(200));
}

#[tokio::test]
async fn an_address_that_has_all_it_may_evicts_nobody() {
    let upstream = RecordingUpstream::ok().await;
    let gateway = start(&upstream, 4, Some(2));
    let mut idle = [one_more(&gateway).await, one_more(&gateway).await];
    let attacker = [127, 0, 0, 2];
    let mut attacking = Vec::new();
    for _ in 0..2 {
        let mut stream = gateway.connect_from(attacker).await;
        assert_eq!(get(&mut stream).await, Some(200));
        attacking.push(stream);
    }
    // The gateway is full.
    for _ in 0..8 {
        let mut stream = gateway.connect_from(attacker).await;
        assert_eq!(get(&mut stream).await, None);
    }
    for stream in &mut idle {
        assert_eq!(get(stream).await, Some(200));
    }
}

/// A POST whose body is still to come, and the status of its response.
async fn begin_post(
    client: &SendRequest<Bytes>,
) -> (SendStream<Bytes>, impl Future<Output = u16> + use<>) {
    let mut client = client.clone().ready().await.unwrap();
    let request = Request::post("http://a/").body(()).unwrap();
    let (response, body) = client.send_request(request, false).unwrap();
    let status = async move {
        let response = timeout(LONG, response).await.expect("in time").unwrap();
        response.status().as_u16()
    };
    (body, status)
}

#[tokio::test]
async fn http2_requests_of_all_connections_have_one_budget() {
    let upstream = RecordingUpstream::ok().await;
    let bounds = GatewayBounds {
        http2_memory_bytes: 100 << 10,
        ..GatewayBounds::default()
    };
    let gateway = RunningGateway::start_with(config(upstream.address), bounds);
    let (one, _one_ended) = connect_http2(&gateway).await;
    let (other, _other_ended) = connect_http2(&gateway).await;
    let (mut first_body, first) = begin_post(&one).await;
    let (_body, second) = begin_post(&one).await;
    assert_eq!(second.await, 503);
    // Each connection may have one.
    let (mut others_body, others) = begin_post(&other).await;
    others_body.send_data(Bytes::new(), true).unwrap();
    assert_eq!(others.await, 200);
    first_body.send_data(Bytes::new(), true).unwrap();
    assert_eq!(first.await, 200);
    let (mut body, third) = begin_post(&one).await;
    body.send_data(Bytes::new(), true).unwrap();
    assert_eq!(third.await, 200);
}
