//! The client against one real server.

use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store_redis::client::{
    BreakerState, Client, ClientConfig, Command, Reply, Route, Script,
};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};

fn client(url: &str) -> Client {
    let config = ClientConfig::from_url(url).expect("the URL is good");
    let client = Client::new(&config).expect("there is no TLS");
    // Not the time of a busy machine, but what becomes of calls is looked at here.
    client.with_timeout(PATIENCE)
}

fn words(words: &'static [&'static str]) -> impl Fn(&mut Command<'_>) + Send {
    move |command| {
        for word in words {
            command.arg(word);
        }
    }
}

async fn ask(client: &Client, question: &'static [&'static str]) -> Result<Reply, StoreError> {
    client.call(Route::Any, words(question)).await
}

async fn text(client: &Client, question: &'static [&'static str]) -> String {
    let reply = ask(client, question).await.expect("it is answered");
    let text = reply.text().expect("it is a text").unwrap_or(b"(nil)");
    String::from_utf8_lossy(text).into_owned()
}

#[tokio::test]
async fn a_call_is_answered() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    assert_eq!(text(&client, &["GET", "a"]).await, "1");
    assert_eq!(text(&client, &["GET", "b"]).await, "(nil)");
    let reply = ask(&client, &["INCR", "a"]).await.unwrap();
    assert_eq!(reply.integer(), Ok(2));
    let error = ask(&client, &["INCR"]).await.unwrap_err();
    assert!(
        error.to_string().contains("wrong number of arguments"),
        "{error}"
    );
}

#[tokio::test]
async fn a_unix_socket_is_a_server_too() {
    let server = RedisServer::start_unix();
    let client = client(&format!("{}?db=3", server.url()));
    assert_eq!(text(&client, &["SET", "a", "1"]).await, "OK");
    let info = text(&client, &["INFO", "keyspace"]).await;
    assert!(info.contains("db3:keys=1"), "{info}");
}

#[tokio::test]
async fn a_script_is_loaded_when_first_called_and_again_when_forgotten() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let script = Script::new("return {KEYS[1], ARGV[1] + 1}");
    let run = || async {
        let reply = client.eval(Route::Key(b"a"), &script, |command| {
            command.number(1).arg("a").number(41);
        });
        let reply = reply.await.expect("it is answered");
        let mut values = reply.array().expect("it is a list");
        assert_eq!(values.next().and_then(|value| value.str()), Some("a"));
        assert_eq!(values.next().and_then(|value| value.integer()), Some(42));
        assert_eq!(values.next(), None);
    };
    run().await;
    run().await;
    let stats = text(&client, &["INFO", "commandstats"]).await;
    assert!(stats.contains("cmdstat_script|load:calls=1,"), "{stats}");
    assert!(stats.contains("cmdstat_evalsha:calls=2,"), "{stats}");
    ask(&client, &["SCRIPT", "FLUSH"]).await.unwrap();
    run().await;
    server.restart();
    // The first call may find the old connection dead.
    let _ = ask(&client, &["PING"]).await;
    run().await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_asked_until_it_is_back() {
    let server = RedisServer::start();
    let client = client(&server.url());
    assert_eq!(text(&client, &["PING"]).await, "PONG");
    server.kill();
    loop {
        match ask(&client, &["PING"]).await {
            Err(StoreError::Open) => break,
            Err(StoreError::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(client.report()[0].breaker, BreakerState::Open);
    server.restart();
    tokio::time::timeout(PATIENCE, async {
        while ask(&client, &["PING"]).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it comes back by itself");
    let report = &client.report()[0];
    assert_eq!(report.breaker, BreakerState::Closed);
    assert_eq!(report.breaker_opened, 1);
    assert!(report.counts.lost >= 5 && report.counts.not_asked >= 1);
}

#[tokio::test]
async fn a_server_that_stalls_costs_a_deadline_and_no_more() {
    let server = RedisServer::start();
    let patient = client(&server.url());
    assert_eq!(text(&patient, &["PING"]).await, "PONG");
    let hasty = patient.with_timeout(Duration::from_millis(5));
    server.pause();
    loop {
        match ask(&hasty, &["PING"]).await {
            Err(StoreError::Open) => break,
            Err(StoreError::Timeout { after }) => assert_eq!(after, Duration::from_millis(5)),
            // The connection is taken for dead after a while.
            Err(StoreError::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    server.resume();
    tokio::time::timeout(PATIENCE, async {
        while ask(&patient, &["PING"]).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it comes back by itself");
}
