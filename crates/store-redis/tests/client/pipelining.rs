//! What waits at one moment goes out as one write.

use tidegate_store_redis::client::{Client, Route};
use tidegate_store_redis::test_util::{FaultyProxy, RedisServer};
use tokio::runtime::{Builder, LocalOptions, Runtime};
use tokio::task::JoinSet;

use super::{ask, client, text};

/// Asks so many times at one moment.
async fn ask_at_once(client: &Client, calls: usize) {
    let mut waiting = JoinSet::new();
    for _ in 0..calls {
        let client = client.clone();
        waiting.spawn(async move { ask(&client, &["INCR", "a"]).await });
    }
    let mut answers: Vec<i64> = Vec::new();
    while let Some(answered) = waiting.join_next().await {
        answers.push(answered.unwrap().unwrap().integer().unwrap());
    }
    answers.sort_unstable();
    answers.dedup();
    assert_eq!(answers.len(), calls);
}

#[tokio::test]
async fn calls_of_one_moment_are_one_write() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let client = client(&proxy.url());
    ask_at_once(&client, 1).await;
    let before = proxy.received().len();
    ask_at_once(&client, 500).await;
    assert_eq!(proxy.received()[before..].len(), 1);
    let report = &client.report()[0];
    assert_eq!(
        (report.calls, report.writes, report.connections),
        (501, 2, 1)
    );
    assert_eq!(report.latencies.count(), 501);
}

#[tokio::test]
async fn calls_before_there_is_a_connection_are_one_write_too() {
    let server = RedisServer::start();
    let proxy = FaultyProxy::start(server.address());
    let client = client(&proxy.url());
    ask_at_once(&client, 100).await;
    assert_eq!(proxy.received().len(), 1);
}

#[test]
fn a_runtime_that_has_ended_leaves_nothing_behind() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let ping = |runtime: &Runtime| runtime.block_on(text(&client, &["PING"]));
    // Two at a time on one thread, then one after the other has ended.
    let (first, second) = (runtime(), runtime());
    assert_eq!(ping(&first), "PONG");
    assert_eq!(ping(&second), "PONG");
    assert_eq!(ping(&first), "PONG");
    assert_eq!(client.report()[0].connections, 2);
    drop(first);
    assert_eq!(ping(&second), "PONG");
    let third = runtime();
    assert_eq!(ping(&third), "PONG");
    let report = &client.report()[0];
    assert_eq!(report.connections, 2);
    assert_eq!(report.calls, 5, "those of the dead are still counted");
}

#[test]
fn a_local_runtime_will_do() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .unwrap();
    assert_eq!(runtime.block_on(text(&client, &["PING"])), "PONG");
}

#[test]
fn no_runtime_is_an_error_and_no_panic() {
    let client = client("redis://127.0.0.1:1");
    let call = client.call(Route::Any, |command| {
        command.arg("PING");
    });
    let mut call = std::pin::pin!(call);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = call.as_mut().poll(&mut context) else {
        panic!("it is told at once");
    };
    assert!(
        error.to_string().contains("outside of a tokio runtime"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_have_connections_of_their_own() {
    let server = RedisServer::start();
    let client = client(&server.url());
    for _ in 0..20 {
        ask_at_once(&client, 50).await;
    }
    let report = &client.report()[0];
    assert!(report.connections <= 5, "{report:?}");
    assert_eq!(report.calls, 1000);
}

#[tokio::test]
async fn connections_end_with_the_last_client() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let other = client.clone();
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    drop(client);
    assert_eq!(text(&other, &["PING"]).await, "PONG");
    let clients = || {
        let list = server.must(&["CLIENT", "LIST"]);
        let list = list.text().unwrap().unwrap_or_default().to_vec();
        list.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .count()
    };
    assert_eq!(clients(), 2);
    drop(other);
    // Lets the driver see it.
    while clients() > 1 {
        tokio::task::yield_now().await;
    }
}
