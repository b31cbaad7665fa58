//! A server whose replies come late: because it is far away, because it stalled, or for one batch only.

use std::time::Duration;

use tidegate_store::report::Breaker;
use tidegate_store_redis::client::{Client, ClientConfig};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::distant_server::{DistantServer, Latency, in_moved_time};
use super::{ask, client, insist, until};

const MILLI: Duration = Duration::from_millis(1);

/// A client with the settings of production.
fn default_client(server: &DistantServer) -> Client {
    Client::new(&ClientConfig::from_url(&server.url).unwrap()).unwrap()
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

/// Stalls the server, makes a call every two milliseconds until the breaker is open, and returns the time that it took and the calls
/// that wait.
async fn stall(server: &DistantServer, hasty: &Client) -> (Duration, JoinSet<()>) {
    server.set(Latency::Stalled);
    let began = Instant::now();
    let mut calls = JoinSet::new();
    let mut ticks = interval(MILLI * 2);
    while hasty.report()[0].breaker == Breaker::Closed {
        ticks.tick().await;
        let client = hasty.clone();
        calls.spawn(async move { drop(ask(&client, &["PING"]).await) });
    }
    (began.elapsed(), calls)
}

/// With a fixed timeout of 5 ms not one call is answered.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_far_away_is_used() {
    in_moved_time(async {
        for round_trip in [2, 6, 20] {
            let server = DistantServer::start(Latency::Of(MILLI * round_trip)).await;
            let client = default_client(&server);
            assert_eq!(n_failed(&client, 100).await, 0, "{round_trip} ms");
        }
    })
    .await;
}

/// It was near, moves away, and is learnt by its late replies.
#[tokio::test(start_paused = true)]
async fn a_server_that_becomes_slow_is_learnt() {
    in_moved_time(async {
        let server = DistantServer::start(Latency::Of(MILLI)).await;
        let client = default_client(&server);
        assert_eq!(n_failed(&client, 1_000).await, 0);
        server.set(Latency::Of(MILLI * 12));
        // Until the replies to two calls that became late have arrived.
        let failed = n_failed(&client, 100).await;
        assert!(failed > 0 && failed <= 20, "{failed} of 100");
        assert_eq!(n_failed(&client, 100).await, 0);
        assert!(client.report()[0].timeout >= MILLI * 36);
    })
    .await;
}

/// All calls of one moment are late, and that is one failure, however many they are.
#[tokio::test(start_paused = true)]
async fn one_late_batch_does_not_open_the_breaker() {
    in_moved_time(async {
        let server = DistantServer::start(Latency::Of(MILLI)).await;
        let patient = client(&server.url);
        ask(&patient, &["PING"]).await.unwrap();
        let hasty = patient.with_timeout(MILLI * 5);
        server.set(Latency::Stalled);
        let calls = (0..1_000).map(|_| ask(&hasty, &["PING"]));
        let late = futures_util::future::join_all(calls).await;
        assert!(late.iter().all(Result::is_err));
        server.set(Latency::Of(MILLI));
        ask(&patient, &["PING"]).await.unwrap();
        assert_eq!(client_report(&patient), (0, Breaker::Closed));
    })
    .await;
}

/// The server stalls, the breaker opens two timeouts later, and the replies that come at last close it, on the same connection.
#[tokio::test(start_paused = true)]
async fn a_stall_opens_the_breaker_and_late_replies_close_it() {
    in_moved_time(async {
        let server = DistantServer::start(Latency::Of(MILLI)).await;
        let patient = client(&server.url);
        ask(&patient, &["PING"]).await.unwrap();
        let (took, mut calls) = stall(&server, &patient.with_timeout(MILLI * 5)).await;
        assert!(
            took >= MILLI * 10 && took <= MILLI * 14,
            "opened after {took:?}"
        );
        server.set(Latency::Of(MILLI));
        let went_on = Instant::now();
        until(|| patient.report()[0].breaker == Breaker::Closed).await;
        let took = went_on.elapsed();
        assert!(took <= MILLI * 2, "closed after {took:?}");
        insist(&patient, &["PING"]).await;
        assert_eq!(client_report(&patient).0, 1);
        calls.shutdown().await;
    })
    .await;
}

/// A caller who asks again as soon as it is answered waits for a stalled server twice.
#[tokio::test(start_paused = true)]
async fn a_stall_is_waited_for_twice() {
    in_moved_time(async {
        let server = DistantServer::start(Latency::Of(MILLI)).await;
        let patient = client(&server.url);
        ask(&patient, &["PING"]).await.unwrap();
        let hasty = patient.with_timeout(MILLI * 5);
        server.set(Latency::Stalled);
        let mut waited = 0;
        while client_report(&hasty).1 == Breaker::Closed {
            ask(&hasty, &["PING"]).await.unwrap_err();
            waited += 1;
        }
        assert_eq!(waited, 2);
    })
    .await;
}

/// Each stall ends with its connection lost, so that only a probe can find the end of it. Each probe came later than that of the
/// stall before: after seven stalls the server was used up to a second late.
#[tokio::test(start_paused = true)]
async fn stalls_that_follow_each_other_closely_do_not_delay_the_probe() {
    in_moved_time(async {
        let server = DistantServer::start(Latency::Of(MILLI)).await;
        let patient = client(&server.url);
        let hasty = patient.with_timeout(MILLI * 5);
        for _ in 0..8 {
            insist(&patient, &["PING"]).await;
            let (_, mut calls) = stall(&server, &hasty).await;
            until(|| patient.report()[0].connections == 0).await;
            server.set(Latency::Of(MILLI));
            let went_on = Instant::now();
            until(|| patient.report()[0].breaker == Breaker::Closed).await;
            let took = went_on.elapsed();
            assert!(took <= MILLI * 10, "used again after {took:?}");
            calls.shutdown().await;
        }
    })
    .await;
}

fn client_report(client: &Client) -> (u64, Breaker) {
    let report = &client.report()[0];
    (report.opened, report.breaker)
}
