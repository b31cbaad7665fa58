//! How connections end.

use std::time::Duration;

use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;
use tokio::time::{Instant, advance};

use crate::client::{Client, SHOULD_RATE_LIMIT, Server, assert_within, framed, head, run};
use crate::raw::Raw;
use crate::wire::ask;

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 100 }
";

#[test]
fn calls_under_way_are_answered_before_the_end() {
    run(async {
        let server = Server::new(RULES);
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        let (response, mut body) = client.open(head(SHOULD_RATE_LIMIT).body(()).unwrap()).await;
        // The server has the call, and waits for its message.
        tokio::task::yield_now().await;
        server.drain();
        advance(Duration::from_secs(1)).await;
        body.send_data(framed(&ask("api", &[("user", "7")])), true)
            .unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        drop(response);
        end.await.unwrap();
    });
}

#[test]
fn a_connection_without_calls_ends_with_the_drain() {
    run(async {
        let server = Server::new(RULES);
        let (io, end) = server.pipe();
        let _client = Client::new(io).await;
        tokio::task::yield_now().await;
        server.drain();
        end.await.unwrap();
    });
}

/// A server that closes idle connections after a minute.
fn hasty_server() -> Server {
    let config = GrpcConfig {
        idle_timeout: Duration::from_mins(1),
        ..GrpcConfig::default()
    };
    Server::with(RULES, config, LimiterConfig::default())
}

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    run(async {
        let server = hasty_server();
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        for _ in 0..10 {
            client.ask(&ask("api", &[("user", "7")])).await;
            advance(Duration::from_secs(59)).await;
        }
        let last = Instant::now();
        end.await.unwrap();
        assert_within(last, Duration::from_mins(2));
    });
}

#[test]
fn a_connection_with_nothing_but_a_watch_is_closed_too() {
    run(async {
        let server = hasty_server();
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        let started = Instant::now();
        let mut watch = client.watch("/grpc.health.v1.Health/Watch", &[0; 5]).await;
        assert!(watch.next().await.is_some());
        assert_eq!(watch.next().await, None);
        assert_eq!(watch.status().await, "14");
        end.await.unwrap();
        assert_within(started, Duration::from_mins(3));
    });
}

#[test]
fn a_peer_that_does_not_answer_pings_is_cut_off() {
    run(async {
        let config = GrpcConfig::default();
        let server = Server::with(RULES, config, LimiterConfig::default());
        let started = Instant::now();
        // Its frames are acknowledged by nobody.
        let mut raw = Raw::open(&server);
        raw.greet(&[]).await;
        raw.closed().await;
        assert_within(started, config.keepalive_interval * 2);
    });
}

#[test]
fn a_peer_that_answers_pings_is_kept() {
    run(async {
        let server = Server::with(RULES, GrpcConfig::default(), LimiterConfig::default());
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        for _ in 0..10 {
            advance(GrpcConfig::default().keepalive_interval).await;
            tokio::task::yield_now().await;
        }
        client.ask(&ask("api", &[("user", "7")])).await;
        assert!(!end.is_finished());
    });
}

#[test]
fn an_old_connection_is_told_to_go() {
    run(async {
        let config = GrpcConfig {
            max_age: Some(Duration::from_mins(1)),
            age_grace: Duration::from_secs(5),
            ..GrpcConfig::default()
        };
        let server = Server::with(RULES, config, LimiterConfig::default());
        let started = Instant::now();
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        // A call that outlives the grace.
        let watch = client.watch("/grpc.health.v1.Health/Watch", &[0; 5]).await;
        end.await.unwrap();
        assert_eq!(started.elapsed().as_secs(), 65);
        drop(watch);
    });
}
