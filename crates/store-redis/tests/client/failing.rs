//! A server that is gone, stalls, or cannot serve.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::report::Breaker;
use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer, ServerOptions};
use tokio::task::JoinSet;

use super::{ask, client, insist, text, until, until_open};

const HASTE: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_server_that_is_gone_is_not_asked_until_it_is_back() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    server.kill();
    until_open(&client, &["PING"]).await;
    let report = &client.report()[0];
    assert_ne!(report.breaker, Breaker::Closed);
    assert!(
        report.fault.as_deref().unwrap().contains("refused"),
        "{report:?}"
    );
    server.restart();
    insist(&client, &["PING"]).await;
    let report = &client.report()[0];
    assert_eq!(report.breaker, Breaker::Closed);
    assert_eq!(report.opened, 1);
    assert!(report.errors.connection >= 1 && report.spared >= 1);
}

#[tokio::test]
async fn a_server_that_stalls_costs_a_deadline_and_no_more() {
    let server = RedisServer::start();
    let patient = client(&server.url());
    assert_eq!(text(&patient, &["PING"]).await, "PONG");
    let hasty = patient.with_timeout(HASTE);
    server.pause();
    let error = ask(&hasty, &["PING"]).await.unwrap_err();
    assert_eq!(error, StoreError::Timeout { after: HASTE });
    until_open(&hasty, &["PING"]).await;
    let report = &patient.report()[0];
    assert_eq!((report.opened, report.breaker), (1, Breaker::Open));
    server.resume();
    insist(&patient, &["PING"]).await;
}

#[tokio::test]
async fn replies_find_their_calls_after_others_gave_up() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let patient = client(&proxy.url());
    ask(&patient, &["SET", "a", "0"]).await.unwrap();
    proxy.set(Fault::Pause);
    let hasty = patient.with_timeout(HASTE);
    let mut waiting = JoinSet::new();
    // Fewer hasty ones than would open the breaker.
    for number in 1..=12 {
        let client = if number % 4 == 0 {
            hasty.clone()
        } else {
            patient.clone()
        };
        waiting.spawn(async move { (number, ask(&client, &["INCR", "a"]).await) });
    }
    for _ in 0..3 {
        let (number, gave_up) = waiting.join_next().await.unwrap().unwrap();
        assert_eq!(number % 4, 0);
        assert_eq!(gave_up, Err(StoreError::Timeout { after: HASTE }));
    }
    proxy.set(Fault::None);
    while let Some(answered) = waiting.join_next().await {
        let (number, reply) = answered.unwrap();
        assert_eq!(
            reply.unwrap().integer(),
            Ok(number),
            "in the order they were asked"
        );
    }
}

#[tokio::test]
async fn a_connection_cut_within_a_reply_fails_those_in_flight_and_no_other() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let client = client(&proxy.url());
    ask(&client, &["SET", "a", "0"]).await.unwrap();
    // Two whole replies of four bytes, and a part of the third.
    proxy.set(Fault::CutAfter(10));
    let mut waiting = JoinSet::new();
    for number in 1..=4 {
        let client = client.clone();
        waiting.spawn(async move { (number, ask(&client, &["INCR", "a"]).await) });
    }
    while let Some(over) = waiting.join_next().await {
        let (number, reply) = over.unwrap();
        match number {
            1 | 2 => assert_eq!(reply.unwrap().integer(), Ok(number)),
            _ => assert!(
                matches!(reply, Err(StoreError::Unavailable { .. })),
                "{reply:?}"
            ),
        }
    }
    assert_eq!(insist(&client, &["INCR", "a"]).await.integer(), Ok(5));
    assert_eq!(client.report()[0].errors.connection, 2);
    assert_eq!(client.report()[0].reconnects, 1);
}

#[tokio::test]
async fn a_server_that_is_full_is_not_asked() {
    let server = RedisServer::start();
    let client = client(&server.url());
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = ask(&client, &["SET", "a", "1"]).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    until_open(&client, &["SET", "a", "1"]).await;
    assert!(client.report()[0].errors.reply >= 2);
    server.must(&["CONFIG", "SET", "maxmemory", "0"]);
    insist(&client, &["SET", "a", "1"]).await;
}

#[tokio::test]
async fn a_replica_is_not_written_to() {
    let server = RedisServer::start();
    let other = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    server.must(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    until_open(&client, &["SET", "a", "1"]).await;
    server.must(&["REPLICAOF", "NO", "ONE"]);
    insist(&client, &["SET", "a", "1"]).await;
}

/// It says no to everybody who comes, and hangs up; whoever asks only now and then must not go on for ever asking.
#[tokio::test]
async fn a_server_that_has_no_room_for_connections_is_not_asked() {
    let server = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["maxclients".to_owned(), "1".to_owned()]],
        ..ServerOptions::default()
    });
    let client = client(&server.url());
    let mut other = TcpStream::connect(server.address()).unwrap();
    other.write_all(b"PING\r\n").unwrap();
    other.read_exact(&mut [0; 7]).unwrap();
    until_open(&client, &["SET", "a", "1"]).await;
    // It may hang up before it is heard, which is a lost connection to whoever asked.
    until(|| {
        let fault = client.report()[0].fault.clone();
        fault.is_some_and(|it| it.contains("max number of clients"))
    })
    .await;
    drop(other);
    insist(&client, &["SET", "a", "1"]).await;
}

#[tokio::test]
async fn too_many_calls_are_turned_away_at_once() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let client = client(&proxy.url());
    proxy.set(Fault::Pause);
    let mut waiting = JoinSet::new();
    for _ in 0..16 * 1024 {
        let client = client.clone();
        waiting.spawn(async move { ask(&client, &["PING"]).await });
    }
    while client.report()[0].calls < 16 * 1024 {
        tokio::task::yield_now().await;
    }
    let error = ask(&client, &["PING"]).await.unwrap_err();
    assert!(error.to_string().contains("too many calls"), "{error}");
    assert_eq!(client.report()[0].errors.overload, 1);
    proxy.set(Fault::None);
    while let Some(answered) = waiting.join_next().await {
        assert!(answered.unwrap().is_ok());
    }
}
