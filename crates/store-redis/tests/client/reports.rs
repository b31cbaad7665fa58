//! What is told of servers, as every store tells it.

use tidegate_store::report::{Breaker, StoreHealth, StoreKind};
use tidegate_store_redis::report::report;
use tidegate_store_redis::test_util::RedisServer;

use super::{ask, client, insist, until, until_open};

#[tokio::test]
async fn a_server_is_told_of_by_its_counts_and_its_own_words() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(report(&client).servers[0].info, None);
    insist(&client, &["SET", "a", "1"]).await;
    client.refresh_info().await;
    let report = report(&client);
    assert_eq!(report.kind, StoreKind::Redis);
    assert_eq!(report.health(), StoreHealth::Whole);
    let told = &report.servers[0];
    assert_eq!(*told.address, server.address().to_string());
    assert_eq!((told.calls, told.connections, told.waiting), (2, 1, 0));
    assert_eq!(told.latencies.count(), 2);
    assert_eq!(told.errors.total(), 0);
    assert!(told.info.is_some_and(|info| info.used_memory > 0));
}

#[tokio::test]
async fn a_server_that_fails_says_why_until_it_is_back() {
    let server = RedisServer::start();
    let client = client(&server.url());
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    until_open(&client, &["SET", "a", "1"]).await;
    assert!(ask(&client, &["SET", "a", "1"]).await.is_err());
    let told = report(&client);
    assert_eq!(told.health(), StoreHealth::Degraded);
    let told = &told.servers[0];
    assert_eq!(told.breaker, Breaker::Open);
    assert!(
        told.fault.as_deref().is_some_and(|it| it.contains("OOM")),
        "{told:?}"
    );
    assert!(told.spared >= 1 && told.errors.reply >= 1, "{told:?}");
    server.must(&["CONFIG", "SET", "maxmemory", "0"]);
    insist(&client, &["SET", "a", "1"]).await;
    let told = report(&client);
    assert_eq!(told.health(), StoreHealth::Whole);
    assert_eq!(told.servers[0].fault, None);
}

/// What opened the breaker may not be what is wrong by now.
#[tokio::test]
async fn a_server_that_comes_to_fail_otherwise_says_so() {
    let server = RedisServer::start();
    let client = client(&server.url());
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    until_open(&client, &["SET", "a", "1"]).await;
    server.kill();
    until(|| {
        let told = report(&client);
        let fault = told.servers[0].fault.as_deref();
        fault.is_some_and(|it| it.contains("refused"))
    })
    .await;
    assert_eq!(report(&client).servers[0].opened, 1);
}

/// Nobody asks anything any more, and the breaker closes all the same.
#[tokio::test]
async fn a_server_is_found_to_be_back_though_nobody_asks() {
    let server = RedisServer::start();
    let client = client(&server.url());
    server.kill();
    // As many as open it, and not one more, which would start another probe.
    for _ in 0..2 {
        assert!(ask(&client, &["SET", "a", "1"]).await.is_err());
    }
    assert_eq!(report(&client).servers[0].breaker, Breaker::Open);
    server.restart();
    until(|| report(&client).servers[0].breaker == Breaker::Closed).await;
    assert_eq!(report(&client).servers[0].spared, 0);
}
