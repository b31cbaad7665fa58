//! The memory of calls and answers: bounded over all connections, and no client takes the part of another.

use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;
use tokio::task::yield_now;
use tokio::time::{Instant, advance};

use crate::client::{Client, Reply, SHOULD_RATE_LIMIT, Server, assert_within, framed, head, run};
use crate::raw::*;
use crate::wire::{Code, RateLimitRequest, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
";

const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// A window of 0 for each stream: `SETTINGS_INITIAL_WINDOW_SIZE`.
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

fn server(max_memory_bytes: usize) -> Server {
    let config = GrpcConfig {
        max_memory_bytes,
        write_timeout: WRITE_TIMEOUT,
        ..GrpcConfig::default()
    };
    Server::with(RULES, config, LimiterConfig::default())
}

fn question() -> RateLimitRequest {
    ask("api", &[("user", "7")])
}

/// A whole call.
fn call(stream: u32) -> Vec<u8> {
    call_of(&call_headers(), stream)
}

/// A whole call with these headers.
fn call_of(headers: &[u8], stream: u32) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, stream, headers);
    bytes.extend(frame(DATA, END_STREAM, stream, &framed(&question())));
    bytes
}

fn streams(n: u32) -> impl Iterator<Item = u32> {
    (0..n).map(|index| index * 2 + 1)
}

/// Lets server and clients do all that they can do now.
async fn settle() {
    for _ in 0..2_000 {
        yield_now().await;
    }
}

async fn is_served(client: &mut Client) -> bool {
    client.ask(&question()).await.overall_code() == Code::Ok
}

/// Holds as much of the budget as one connection may, in messages of 1 MiB of which the last byte never comes. A message takes twice
/// its size as it grows.
async fn hold_messages(client: &mut Client, n_messages: usize) -> Vec<SendStream<Bytes>> {
    let mut begun = vec![0; 5 + (1 << 20) - 1];
    begun[2] = 0x10;
    let begun = Bytes::from(begun);
    let mut open = Vec::new();
    for _ in 0..n_messages {
        let call = head(SHOULD_RATE_LIMIT).body(()).unwrap();
        let (_, mut stream) = client.open(call).await;
        stream.send_data(begun.clone(), false).unwrap();
        open.push(stream);
    }
    settle().await;
    open
}

#[test]
fn clients_that_take_no_answer_are_closed_once_they_hold_the_budget() {
    run(async {
        let server = server(4 << 20);
        let mut other = server.connect().await;
        let started = Instant::now();
        let mut open = Vec::new();
        for _ in 0..8 {
            let mut raw = Raw::open(&server);
            raw.greet(NO_WINDOW).await;
            for stream in streams(1_000) {
                raw.send(&call(stream)).await;
            }
            open.push(raw);
            assert!(is_served(&mut other).await);
        }
        // 2.6 MB each: the budget has room for one.
        let n_open = open.iter().filter(|raw| !raw.is_closed()).count();
        assert_eq!(n_open, 1);
        assert_within(started, WRITE_TIMEOUT / 2);
        assert!(is_served(&mut other).await);
    });
}

#[test]
fn clients_that_do_not_read_are_closed_once_they_hold_the_budget() {
    run(async {
        let server = server(4 << 20);
        let mut other = server.connect().await;
        let started = Instant::now();
        let mut open = Vec::new();
        for _ in 0..8 {
            let mut raw = Raw::deaf(&server);
            raw.greet(&[]).await;
            // No call of these is one: the answers are statuses alone, which no window holds back.
            let mut bad = call_headers();
            bad.extend(header("grpc-timeout", &"x".repeat(100)));
            for stream in streams(1_000) {
                let calls = [call(2 * stream - 1), call_of(&bad, 2 * stream + 1)];
                raw.send(&calls.concat()).await;
            }
            open.push(raw);
            assert!(is_served(&mut other).await);
        }
        let n_open = open.iter().filter(|raw| !raw.is_closed()).count();
        assert_eq!(n_open, 1);
        assert_within(started, WRITE_TIMEOUT / 2);
    });
}

#[test]
fn a_client_that_goes_on_calling_must_take_its_answers() {
    run(async {
        let server = server(256 << 20);
        let mut raw = Raw::open(&server);
        raw.greet(NO_WINDOW).await;
        let started = Instant::now();
        // A call a second; the second before each look is not without one.
        for stream in streams(1_000) {
            raw.send(&call(stream)).await;
            advance(Duration::from_secs(1)).await;
            settle().await;
            if raw.is_closed() {
                break;
            }
        }
        assert_within(started, WRITE_TIMEOUT * 2 + Duration::from_secs(1));
    });
}

#[test]
fn a_client_that_takes_its_answers_slowly_is_waited_for() {
    run(async {
        let server = server(256 << 20);
        let mut raw = Raw::open(&server);
        raw.greet(NO_WINDOW).await;
        for stream in streams(12) {
            raw.send(&call(stream)).await;
        }
        for stream in streams(12) {
            advance(WRITE_TIMEOUT * 2 / 3).await;
            settle().await;
            assert!(!raw.is_closed(), "at stream {stream}");
            raw.send(&frame(WINDOW_UPDATE, 0, stream, &1_000_u32.to_be_bytes()))
                .await;
            raw.next(DATA).await.unwrap();
        }
    });
}

#[test]
fn one_client_that_holds_the_budget_leaves_the_others_their_floor() {
    run(async {
        let server = server(16 << 20);
        let mut held = Vec::new();
        let mut greedy = Vec::new();
        for _ in 0..8 {
            let mut client = server.connect().await;
            held.extend(hold_messages(&mut client, 3).await);
            // What is left is taken by calls without a message.
            for _ in 0..100 {
                let call = head(SHOULD_RATE_LIMIT).body(()).unwrap();
                held.push(client.open(call).await.1);
            }
            greedy.push(client);
        }
        // A small call whose message comes after its headers.
        let mut other = server.connect().await;
        let (response, mut stream) = other.open(head(SHOULD_RATE_LIMIT).body(()).unwrap()).await;
        settle().await;
        stream.send_data(framed(&question()), true).unwrap();
        let reply = Reply::read(response).await;
        let answer: crate::wire::RateLimitResponse = reply.message();
        assert_eq!(answer.overall_code(), Code::Ok);
    });
}

#[test]
fn watches_and_calls_leave_each_other_room() {
    run(async {
        let server = server(16 << 20);
        let empty = Bytes::from_static(&[0; 5]);
        let mut clients = Vec::new();
        let mut n_denied = 0;
        // More than the budget of watches: an eighth, of 8 KiB each.
        for _ in 0..20 {
            let mut client = server.connect().await;
            for index in 0..16 {
                let mut watch = client.watch(WATCH, &empty).await;
                let is_open = watch.next().await.is_some();
                assert!(is_open || index > 0, "the first watch of each connection");
                n_denied += usize::from(!is_open);
                clients.push((client.clone(), watch));
            }
        }
        assert!(n_denied > 0);
        let mut client = server.connect().await;
        let _held = hold_messages(&mut client, 3).await;
        assert!(is_served(&mut client).await);
        // All memory for messages is held now, and a watch needs none of it.
        let mut others = Vec::new();
        for _ in 0..8 {
            let mut other = server.connect().await;
            let held = hold_messages(&mut other, 3).await;
            others.push((other, held));
        }
        let mut other = server.connect().await;
        let mut watch = other.watch(WATCH, &empty).await;
        assert!(watch.next().await.is_some());
    });
}

/// The connection could never idle out with it.
#[test]
fn a_watch_whose_client_takes_nothing_ends() {
    run(async {
        let server = server(256 << 20);
        let mut raw = Raw::open(&server);
        raw.greet(NO_WINDOW).await;
        let started = Instant::now();
        let headers = headers_of(WATCH);
        raw.send(&frame(HEADERS, END_HEADERS, 1, &headers)).await;
        raw.send(&frame(DATA, END_STREAM, 1, &[0; 5])).await;
        // HEADERS of the answer; its message finds no room.
        raw.next(RST_STREAM).await.unwrap();
        assert_within(started, WRITE_TIMEOUT);
    });
}
