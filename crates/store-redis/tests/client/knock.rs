//! What is said at start about a Redis that is not there, or not for us.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use tidegate_store::StoreError;
use tidegate_store::report::Breaker;
use tidegate_store_redis::client::{Client, ClientConfig, KnockError};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer, ServerOptions};

async fn knock(url: &str) -> Result<(), KnockError> {
    let mut config = ClientConfig::from_url(url).expect("a good URL");
    config.connect_timeout = Some(PATIENCE);
    Client::new(&config)
        .expect("no files")
        .knock(PATIENCE)
        .await
}

#[tokio::test]
async fn a_redis_lets_us_in() {
    let server = RedisServer::start();
    knock(&server.url()).await.expect("it is there");
}

#[tokio::test]
async fn one_that_is_not_there_may_come() {
    let server = RedisServer::start();
    let url = server.url();
    server.kill();
    let absent = knock(&url).await;
    assert!(matches!(absent, Err(KnockError::Absent(_))), "{absent:?}");
}

/// Who was not there at start is not asked in vain by the first requests, and is noticed when it comes.
#[tokio::test]
async fn one_that_is_not_there_is_not_asked_until_it_is() {
    let server = RedisServer::start();
    server.kill();
    for url in [
        server.url(),
        format!("redis+cluster://{}", server.address()),
    ] {
        let client = super::client(&url);
        let absent = client.knock(PATIENCE).await.unwrap_err();
        assert_eq!(super::ask(&client, &["PING"]).await, Err(StoreError::Open));
        let report = &client.report()[0];
        assert_eq!((report.breaker, report.calls), (Breaker::Open, 0));
        assert_eq!(report.fault.as_deref(), Some(&*absent.to_string()));
    }
    let client = super::client(&server.url());
    client.knock(PATIENCE).await.unwrap_err();
    server.restart();
    super::insist(&client, &["PING"]).await;
}

#[tokio::test]
async fn a_password_that_is_wrong_or_missing_stays_so() {
    let server = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["requirepass".to_owned(), "hunter2".to_owned()]],
        ..ServerOptions::default()
    });
    let place = server.address();
    for url in [
        format!("redis://{place}"),
        format!("redis://:hunter3@{place}"),
    ] {
        let turned = knock(&url).await;
        assert!(matches!(turned, Err(KnockError::Turned(_))), "{turned:?}");
    }
    // As a Sentinel, it wants another password than its master's.
    let turned = knock(&format!("redis+sentinel://:hunter2@{place}/main")).await;
    let said = format!("(says the Sentinel at {place})");
    assert!(
        matches!(&turned, Err(KnockError::Turned(text)) if text.contains(&said)),
        "{turned:?}"
    );
    let right = format!("redis://:hunter2@{place}");
    knock(&right).await.expect("the password is right");
}

#[tokio::test]
async fn a_server_of_something_else_is_told_from_redis() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let turned = knock(&format!("redis://{place}")).await;
    assert!(matches!(turned, Err(KnockError::Turned(_))), "{turned:?}");
}

/// Others may leave.
#[tokio::test]
async fn a_server_that_is_full_of_clients_may_have_room_later() {
    let server = RedisServer::start();
    server.must(&["CONFIG", "SET", "maxclients", "1"]);
    let _other = std::net::TcpStream::connect(server.address()).expect("room for one");
    let absent = knock(&server.url()).await;
    assert!(matches!(absent, Err(KnockError::Absent(_))), "{absent:?}");
}

#[tokio::test]
async fn a_server_that_is_in_no_cluster_is_told_from_one_that_is() {
    let server = RedisServer::start();
    let turned = knock(&format!("redis+cluster://{}", server.address())).await;
    assert!(matches!(turned, Err(KnockError::Turned(_))), "{turned:?}");
}
