//! A server whose replies come late: because it is far away, because it stalled, or for one batch only.

use std::time::Duration;

use tidegate_store::report::Breaker;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{ask, client, insist, until};

const MILLI: Duration = Duration::from_millis(1);

/// A client with the settings of production.
fn default_client(proxy: &FaultyProxy) -> Client {
    Client::new(&ClientConfig::from_url(&proxy.url()).unwrap()).unwrap()
}

/// Makes so many calls, one after the other and at most one a millisecond; returns the number that failed.
async fn n_failed(client: &Client, calls: usize) -> usize {
    let mut ticks = interval(MILLI);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = 0;
    for _ in 0..calls {
        ticks.tick().await;
        failed += usize::from(ask(client, &["PING"]).await.is_err());
    }
    failed
}

/// With a fixed timeout of 5 ms not one call is answered.
#[tokio::test]
async fn a_server_that_is_far_away_is_used() {
    let server = RedisServer::start();
    for round_trip in [2, 6, 20] {
        let proxy = FaultyProxy::start(server.address());
        proxy.set(Fault::Delay(MILLI * round_trip / 2));
        let client = default_client(&proxy);
        let failed = n_failed(&client, 100).await;
        // On a busy machine the proxy is late now and then.
        assert!(failed <= 10, "{failed} of 100 at {round_trip} ms");
    }
}

/// It was near, moves away, and is learnt by its late replies.
#[tokio::test]
async fn a_server_that_becomes_slow_is_learnt() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let client = default_client(&proxy);
    n_failed(&client, 1_000).await;
    proxy.set(Fault::Delay(MILLI * 6));
    n_failed(&client, 100).await;
    let failed = n_failed(&client, 100).await;
    assert!(failed <= 10, "{failed} of 100");
    assert!(client.report()[0].timeout >= MILLI * 12);
}

/// All calls of one moment are late, and that is one failure, however many they are.
#[tokio::test]
async fn one_late_batch_does_not_open_the_breaker() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let patient = client(&proxy.url());
    ask(&patient, &["PING"]).await.unwrap();
    let hasty = patient.with_timeout(MILLI * 5);
    proxy.set(Fault::Pause);
    let calls = (0..1_000).map(|_| ask(&hasty, &["PING"]));
    let late = futures_util::future::join_all(calls).await;
    assert!(late.iter().all(Result::is_err));
    proxy.set(Fault::None);
    ask(&patient, &["PING"]).await.unwrap();
    let report = &client_report(&patient);
    assert_eq!((report.0, report.1), (0, Breaker::Closed));
}

/// The server stalls, the breaker opens, and the replies that come at last close it, on the same connection.
#[tokio::test]
async fn a_stall_opens_the_breaker_and_late_replies_close_it() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let patient = client(&proxy.url());
    ask(&patient, &["PING"]).await.unwrap();
    let hasty = patient.with_timeout(MILLI * 5);
    proxy.set(Fault::Pause);
    let mut calls = JoinSet::new();
    let mut ticks = interval(MILLI * 2);
    while patient.report()[0].breaker == Breaker::Closed {
        ticks.tick().await;
        let client = hasty.clone();
        calls.spawn(async move { ask(&client, &["PING"]).await });
    }
    proxy.set(Fault::None);
    until(|| patient.report()[0].breaker == Breaker::Closed).await;
    insist(&patient, &["PING"]).await;
    assert_eq!(client_report(&patient).0, 1);
    calls.shutdown().await;
}

/// Each stall ends with its connection lost, so that only a probe can find the end of it. Each probe came later than that of the
/// stall before: after seven stalls the server was used up to a second late.
#[tokio::test]
async fn stalls_that_follow_each_other_closely_do_not_delay_the_probe() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let patient = client(&proxy.url());
    let hasty = patient.with_timeout(MILLI * 5);
    let mut longest = Duration::ZERO;
    for _ in 0..8 {
        insist(&patient, &["PING"]).await;
        proxy.set(Fault::Pause);
        let mut calls = JoinSet::new();
        let mut ticks = interval(MILLI * 2);
        while patient.report()[0].breaker == Breaker::Closed {
            ticks.tick().await;
            let client = hasty.clone();
            calls.spawn(async move { ask(&client, &["PING"]).await });
        }
        until(|| patient.report()[0].connections == 0).await;
        proxy.set(Fault::None);
        let went_on = Instant::now();
        until(|| patient.report()[0].breaker == Breaker::Closed).await;
        longest = longest.max(went_on.elapsed());
        calls.shutdown().await;
    }
    assert!(longest < MILLI * 500, "used again after {longest:?}");
}

fn client_report(client: &Client) -> (u64, Breaker) {
    let report = &client.report()[0];
    (report.opened, report.breaker)
}
