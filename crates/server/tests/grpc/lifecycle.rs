//! How connections end.

use std::time::Duration;

use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;
use tokio::time::{Instant, advance};

use crate::client::{Client, SHOULD_RATE_LIMIT, Server, framed, head, run};
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

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    run(async {
        let config = GrpcConfig {
            idle_timeout: Duration::from_mins(1),
            ..GrpcConfig::default()
        };
        let server = Server::with(RULES, config, LimiterConfig::default());
        let (io, end) = server.pipe();
        let mut client = Client::new(io).await;
        for _ in 0..10 {
            client.ask(&ask("api", &[("user", "7")])).await;
            advance(Duration::from_secs(59)).await;
        }
        let last = Instant::now();
        end.await.unwrap();
        assert!(
            last.elapsed() <= Duration::from_mins(2),
            "{:?}",
            last.elapsed()
        );
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
