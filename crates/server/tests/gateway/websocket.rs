//! Messages of WebSocket connections, limited by their headers on real sockets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::{FrameLimit, GatewayBounds, WebSocketLimits};
use tidegate_identify::{Recipe, Recipes, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::harness::{LONG, RunningGateway, config, receive};

/// A masked text frame of a client, whose payload is as long as its header says.
const MESSAGE: &[u8] = b"\x81\x85\x01\x02\x03\x04iggmn";

/// The close frame that a client gets, without a mask.
const CLOSED: &[u8] = b"\x88\x17\x03\xf0message limit reached";

/// Starts a gateway with limits on WebSocket frames, opens a connection through it as `user`, and gives both ends of it.
async fn open(limits: WebSocketLimits, protocol: &str) -> (RunningGateway, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(listener.local_addr().unwrap());
    config.routes[0].websocket = Some(Arc::new(limits));
    let gateway = RunningGateway::start_with(config, GatewayBounds::default());
    let mut client = gateway.connect().await;
    let request = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX-User: 42\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let (mut upstream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(upstream.read_u8().await.unwrap());
    }
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
    );
    upstream.write_all(response.as_bytes()).await.unwrap();
    let received = receive(&mut client).await.unwrap();
    assert_eq!((received.status, received.body()), (101, ""));
    (gateway, client, upstream)
}

/// Messages of one connection in a day of the store's clock, which stands still.
fn messages(limit: u32) -> WebSocketLimits {
    let day = Duration::from_hours(24);
    let limit = FrameLimit::new(NonZeroU32::new(limit).unwrap(), day).unwrap();
    WebSocketLimits {
        messages: Some(limit),
        ..WebSocketLimits::default()
    }
}

async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut bytes)).await;
    read.expect("an end").unwrap();
    bytes
}

#[tokio::test]
async fn rules_limit_messages_by_the_request_that_opened_the_connection() {
    let by_user = Recipe::new([("user", Source::Header("x-user".to_owned()))]);
    let limits = WebSocketLimits {
        descriptors: Some(Arc::new(Recipes::new(vec![by_user]).unwrap())),
        ..WebSocketLimits::default()
    };
    let (_gateway, mut client, mut upstream) = open(limits, "websocket").await;
    // The user has ten a day, of which the request took one.
    client.write_all(&MESSAGE.repeat(20)).await.unwrap();
    let mut passed = vec![0; 9 * MESSAGE.len()];
    upstream.read_exact(&mut passed).await.unwrap();
    assert_eq!(passed, MESSAGE.repeat(9));
    let mut close = [0; 2];
    upstream.read_exact(&mut close).await.unwrap();
    assert_eq!(close, [0x88, 0x97], "a close frame with a mask");
    assert_eq!(read_all(&mut client).await, CLOSED);
}

#[tokio::test]
async fn a_large_frame_in_flight_arrives_whole_or_not_at_all() {
    const LARGE: usize = 10 * 1024 * 1024;
    let (_gateway, mut client, mut upstream) = open(messages(1), "WebSocket").await;
    let header = [&[0x82, 127], &(LARGE as u64).to_be_bytes()[..]].concat();
    let upstream = tokio::spawn(async move {
        upstream.write_all(&header).await.unwrap();
        // The gateway may cut the connection after a second, however fast this machine is.
        let _ = upstream.write_all(&vec![7; LARGE]).await;
        upstream
    });
    let mut header = [0; 10];
    client.read_exact(&mut header).await.unwrap();
    client.write_all(&MESSAGE.repeat(2)).await.unwrap();
    let mut received = Vec::new();
    // A connection that is cut may end in a reset.
    let read = timeout(LONG, client.read_to_end(&mut received)).await;
    let _ = read.expect("an end");
    let (payload, close) = received.split_at(received.len().min(LARGE));
    assert!(
        payload.iter().all(|byte| *byte == 7),
        "nothing is inside it"
    );
    if payload.len() == LARGE {
        assert_eq!(close, CLOSED);
    }
    drop(upstream.await.unwrap());
}

#[tokio::test]
async fn a_stop_closes_limited_connections_with_1001() {
    let (gateway, mut client, mut upstream) = open(messages(10), "websocket").await;
    client.write_all(MESSAGE).await.unwrap();
    let mut passed = vec![0; MESSAGE.len()];
    upstream.read_exact(&mut passed).await.unwrap();
    gateway.ask_to_stop();
    assert_eq!(read_all(&mut client).await, b"\x88\x0c\x03\xe9going away");
    drop(client);
    let close = read_all(&mut upstream).await;
    assert_eq!((close[..2].to_vec(), close.len()), (vec![0x88, 0x8c], 18));
    drop(upstream);
    gateway.ended().await;
}

#[tokio::test]
async fn other_protocols_pass_unread() {
    let (_gateway, mut client, mut upstream) = open(messages(1), "echo").await;
    // As WebSocket frames these would be malformed.
    let bytes = [0; 100];
    client.write_all(&bytes).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut upstream).await, bytes);
    upstream.write_all(b"reply").await.unwrap();
    upstream.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, b"reply");
}
