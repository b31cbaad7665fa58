//! Clients that mean harm. Each is sent away or bounded, and the next client is served.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::client::{Reply, SHOULD_RATE_LIMIT, Server, assert_within, framed, head, run};
use crate::raw::*;
use crate::wire::{Code, RateLimitResponse, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
";

/// The seconds within which a client is to be gone in each of these cases.
const CONFIG: GrpcConfig = GrpcConfig {
    max_message_bytes: 64 * 1024,
    max_memory_bytes: 16 << 20,
    max_concurrent_calls: 100,
    max_header_bytes: 16 * 1024,
    handshake_timeout: Duration::from_secs(1),
    call_timeout: Duration::from_secs(2),
    write_timeout: Duration::from_secs(3),
    idle_timeout: Duration::from_mins(4),
    keepalive_interval: Duration::from_mins(10),
    max_age: None,
    age_grace: Duration::from_secs(1),
};

/// Lets a hostile client act, and then asks as another one.
fn against<F: Future<Output = ()>>(act: impl FnOnce(Server) -> F) {
    run(async {
        let server = Server::with(RULES, CONFIG, LimiterConfig::default());
        let other = server.clone();
        act(server).await;
        let answer = other.connect().await.ask(&question()).await;
        assert_eq!(answer.overall_code(), Code::Ok);
    });
}

fn question() -> crate::wire::RateLimitRequest {
    ask("api", &[("user", "7")])
}

/// A whole call on one stream.
fn call(stream: u32) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, stream, &call_headers());
    bytes.extend(frame(DATA, END_STREAM, stream, &framed(&question())));
    bytes
}

fn streams(n: u32) -> impl Iterator<Item = u32> {
    (0..n).map(|index| index * 2 + 1)
}

#[test]
fn calls_that_are_taken_back_at_once() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        let mut flood = Vec::new();
        for stream in streams(2_000) {
            flood.extend(frame(HEADERS, END_HEADERS, stream, &call_headers()));
            flood.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
        raw.send(&flood).await;
        assert_eq!(raw.reason().await, ENHANCE_YOUR_CALM);
        raw.closed().await;
    });
}

#[test]
fn headers_that_go_on_for_ever() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        raw.send(&frame(HEADERS, 0, 1, &call_headers())).await;
        for _ in 0..10_000 {
            raw.send(&frame(CONTINUATION, 0, 1, &header("a", "b")))
                .await;
        }
        assert_eq!(raw.reason().await, ENHANCE_YOUR_CALM);
        raw.closed().await;
    });
}

#[test]
fn empty_headers_that_go_on_for_ever() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        raw.send(&frame(HEADERS, 0, 1, &[])).await;
        for _ in 0..10_000 {
            raw.send(&frame(CONTINUATION, 0, 1, &[])).await;
        }
        assert_eq!(raw.reason().await, ENHANCE_YOUR_CALM);
        raw.closed().await;
    });
}

#[test]
fn headers_much_too_large() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        let mut block = call_headers();
        for _ in 0..100 {
            block.extend(header("a", &"b".repeat(1_000)));
        }
        let (first, rest) = block.split_at(16_000);
        raw.send(&frame(HEADERS, END_STREAM, 1, first)).await;
        for piece in rest.chunks(16_000) {
            raw.send(&frame(CONTINUATION, 0, 1, piece)).await;
        }
        assert_eq!(raw.reason().await, COMPRESSION_ERROR);
        raw.closed().await;
    });
}

#[test]
fn data_in_countless_small_pieces() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        raw.send(&frame(HEADERS, END_HEADERS, 1, &call_headers()))
            .await;
        let pieces = frame(DATA, 0, 1, &[]).repeat(100_000);
        raw.send(&pieces).await;
        assert_eq!(raw.reason().await, ENHANCE_YOUR_CALM);
        raw.closed().await;
    });
}

#[test]
fn frames_that_are_none() {
    let cases = [
        (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        (frame(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
        (
            frame(HEADERS, END_HEADERS, 2, &call_headers()),
            PROTOCOL_ERROR,
        ),
        (frame(SETTINGS, 0, 0, &[0; 5]), PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), PROTOCOL_ERROR),
        (frame(DATA, 0, 1, &vec![0; 16_385]), FRAME_SIZE_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0xff; 9]), PROTOCOL_ERROR),
    ];
    for (bytes, expected) in cases {
        against(|server| async move {
            let mut raw = Raw::open(&server);
            raw.greet(&[]).await;
            raw.send(&bytes).await;
            assert_eq!(raw.reason().await, expected, "{:?}", &bytes[..9]);
            raw.closed().await;
        });
    }
}

#[test]
fn a_client_that_speaks_another_protocol() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.send(b"GET / HTTP/1.1\r\nhost: tidegate\r\n\r\n").await;
        raw.closed().await;
    });
}

#[test]
fn a_client_that_says_half_a_word() {
    against(|server| async move {
        let started = Instant::now();
        let mut raw = Raw::open(&server);
        raw.send(&PREFACE[..10]).await;
        raw.closed().await;
        assert_eq!(started.elapsed(), CONFIG.handshake_timeout);
    });
}

#[test]
fn a_client_that_greets_and_falls_silent() {
    against(|server| async move {
        let started = Instant::now();
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        raw.closed().await;
        assert_within(started, CONFIG.idle_timeout * 2);
    });
}

#[test]
fn a_client_that_does_not_read() {
    against(|server| async move {
        let started = Instant::now();
        let mut raw = Raw::deaf(&server);
        raw.greet(&[]).await;
        for stream in streams(10_000) {
            raw.send(&call(stream)).await;
        }
        raw.closed().await;
        assert_within(started, CONFIG.write_timeout * 2);
    });
}

#[test]
fn a_client_that_gives_no_room_for_answers() {
    against(|server| async move {
        let started = Instant::now();
        let mut raw = Raw::open(&server);
        // SETTINGS_INITIAL_WINDOW_SIZE of 0.
        raw.greet(&[0, 4, 0, 0, 0, 0]).await;
        for stream in streams(50) {
            raw.send(&call(stream)).await;
        }
        raw.closed().await;
        assert_within(started, CONFIG.write_timeout * 2);
        assert!(raw.frames_of(DATA).await.is_empty());
    });
}

#[test]
fn messages_that_are_begun_and_never_ended() {
    run(async {
        let server = Server::with(RULES, GrpcConfig::default(), LimiterConfig::default());
        let mut client = server.connect().await;
        // 4 MiB are announced on each, and all but the last byte sent.
        let mut begin = vec![0; 5 + (4 << 20) - 1];
        begin[2] = 0x40;
        let begin = Bytes::from(begin);
        let (sender, mut replies) = unbounded_channel();
        let mut open = Vec::new();
        for _ in 0..20 {
            let call = head(SHOULD_RATE_LIMIT).body(()).unwrap();
            let (response, mut stream) = client.open(call).await;
            stream.send_data(begin.clone(), false).unwrap();
            open.push(stream);
            let sender = sender.clone();
            spawn_local(async move { sender.send(Reply::read(response).await) });
        }
        // Not when their time is over, which would be 4.
        let reply = replies.recv().await.unwrap();
        assert_eq!(reply.status(), ("0", ""));
        let answer = RateLimitResponse::decode(&reply.body[5..]).unwrap();
        assert_eq!(answer.overall_code(), Code::OverLimit);
    });
}

/// A message of 1 MiB of which all but the last byte has come.
fn begun_message() -> Bytes {
    let mut begun = vec![0; 5 + (1 << 20) - 1];
    begun[2] = 0x10;
    begun.into()
}

#[test]
fn messages_that_are_begun_on_many_connections() {
    run(async {
        let config = GrpcConfig {
            max_memory_bytes: 16 << 20,
            ..GrpcConfig::default()
        };
        let server = Server::with(RULES, config, LimiterConfig::default());
        let (sender, mut replies) = unbounded_channel();
        let mut open = Vec::new();
        // 3 MiB on each connection are within its part; those of all are more than the budget.
        for _ in 0..8 {
            let mut client = server.connect().await;
            for _ in 0..3 {
                let call = head(SHOULD_RATE_LIMIT).body(()).unwrap();
                let (response, mut stream) = client.open(call).await;
                stream.send_data(begun_message(), false).unwrap();
                open.push(stream);
                let sender = sender.clone();
                spawn_local(async move { sender.send(Reply::read(response).await) });
            }
            // A call that need not wait needs nothing of the budget.
            let answer = client.ask(&question()).await;
            assert_eq!(answer.overall_code(), Code::Ok);
        }
        let reply = replies.recv().await.unwrap();
        // An error would let Envoy pass the request.
        assert_eq!(reply.status(), ("0", ""));
        let answer = RateLimitResponse::decode(&reply.body[5..]).unwrap();
        assert_eq!(answer.overall_code(), Code::OverLimit);
    });
}

#[test]
fn a_budget_that_is_given_back() {
    run(async {
        let config = GrpcConfig {
            max_memory_bytes: 512 << 10,
            ..CONFIG
        };
        let server = Server::with(RULES, config, LimiterConfig::default());
        // Each connection takes about half of what one may have, and leaves: together more than the budget.
        for _ in 0..20 {
            let mut client = server.connect().await;
            let call = head(SHOULD_RATE_LIMIT).body(()).unwrap();
            let (response, mut stream) = client.open(call).await;
            let mut message = vec![0; 5 + 60_000];
            message[3..5].copy_from_slice(&60_000_u16.to_be_bytes());
            stream.send_data(message.into(), false).unwrap();
            // Its time is over: nothing said that the memory is.
            assert_eq!(Reply::read(response).await.status().0, "4");
        }
    });
}

#[test]
fn calls_that_never_come_to_their_message() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        // More than there may be at once: the last is turned away, the others in time.
        for stream in streams(CONFIG.max_concurrent_calls + 1) {
            raw.send(&frame(HEADERS, END_HEADERS, stream, &call_headers()))
                .await;
        }
        let refused = raw.next(RST_STREAM).await.unwrap();
        // REFUSED_STREAM: it may come again.
        assert_eq!(refused.payload, 7_u32.to_be_bytes());
        for _ in 0..CONFIG.max_concurrent_calls {
            let late = raw.next(HEADERS).await.unwrap();
            assert_eq!(late.flags & END_STREAM, END_STREAM);
        }
    });
}

#[test]
fn pings_without_end() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        for _ in 0..10_000 {
            raw.send(&frame(PING, 0, 0, &[7; 8])).await;
        }
        for _ in 0..10_000 {
            let pong = raw.next(PING).await.unwrap();
            assert_eq!((pong.flags, &pong.payload[..]), (ACK, &[7; 8][..]));
        }
        raw.send(&call(1)).await;
        assert!(raw.next(DATA).await.is_some());
    });
}

#[test]
fn pings_without_end_whose_echo_is_not_read() {
    against(|server| async move {
        let mut raw = Raw::deaf(&server);
        raw.greet(&[]).await;
        for _ in 0..20_000 {
            raw.send(&frame(PING, 0, 0, &[7; 8])).await;
        }
        raw.closed().await;
    });
}

#[test]
fn settings_without_end() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        for _ in 0..10_000 {
            raw.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])).await;
        }
        raw.send(&call(1)).await;
        assert!(raw.next(DATA).await.is_some());
    });
}

#[test]
fn a_client_that_says_one_byte_at_a_time() {
    against(|server| async move {
        let mut raw = Raw::open(&server);
        let bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &call(1)].concat();
        for byte in bytes {
            raw.send(&[byte]).await;
            tokio::task::yield_now().await;
        }
        assert!(raw.next(DATA).await.is_some());
    });
}
