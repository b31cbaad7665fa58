//! Clients that send too much, too slowly, or no HTTP at all.

use std::time::Duration;

use tidegate_server::HttpConfig;
use tokio::io::AsyncWriteExt;

use crate::client::{self, Server, post, read_to_end};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2}
";

const SMALL: &str = r#"{"domain": "api", "descriptors": [{}]}"#;

/// A bound that is meant to be reached.
const SHORT: Duration = Duration::from_millis(50);

fn config() -> HttpConfig {
    HttpConfig {
        max_body_bytes: 100,
        ..HttpConfig::default()
    }
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let server = Server::start(RULES).await;
    let path = "x".repeat(20 * 1024);
    let request = format!("GET /json HTTP/1.1\r\nHost: test\r\nCookie: {path}\r\n\r\n");
    assert_eq!(server.exchange(&request).await.status, 431);
}

#[tokio::test]
async fn a_large_body_is_refused_before_it_arrives() {
    let server = Server::start_with(RULES, config()).await;
    // Only the head is sent: the announced length is enough.
    let head =
        "POST /json HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 101\r\n\r\n";
    let reply = server.exchange(head).await;
    assert_eq!(reply.status, 413);
    assert!(reply.body.contains("more than 100 bytes"), "{}", reply.body);
}

#[tokio::test]
async fn a_large_body_of_unknown_length_is_refused_when_it_is_too_large() {
    let server = Server::start_with(RULES, config()).await;
    let chunk = "41\r\n".to_owned() + &"x".repeat(65) + "\r\n";
    let head = "POST /json HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = server.exchange(&format!("{head}{chunk}{chunk}")).await;
    assert_eq!(reply.status, 413);
}

#[tokio::test]
async fn a_body_of_just_the_bound_is_taken() {
    let server = Server::start_with(RULES, config()).await;
    let body = format!("{SMALL:<100}");
    assert_eq!(server.ask(&body).await.status, 200);
}

#[tokio::test]
async fn a_slow_body_is_given_up() {
    let config = HttpConfig {
        body_timeout: SHORT,
        ..HttpConfig::default()
    };
    let server = Server::start_with(RULES, config).await;
    let head =
        "POST /json HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{";
    let reply = server.exchange(head).await;
    assert_eq!(reply.status, 408);
}

#[tokio::test]
async fn a_client_that_never_reads_is_given_up() {
    let config = HttpConfig {
        write_timeout: SHORT,
        ..HttpConfig::default()
    };
    let server = Server::start_with(RULES, config).await;
    let mut stream = server.connect().await;
    let question = post(SMALL).replace("Connection: close\r\n", "");
    let ask_for_ever = async { while stream.write_all(question.as_bytes()).await.is_ok() {} };
    let given_up = tokio::time::timeout(Duration::from_mins(1), ask_for_ever).await;
    assert!(given_up.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn what_is_no_http_is_answered_with_400() {
    let server = Server::start(RULES).await;
    assert_eq!(server.exchange("hello\r\n\r\n").await.status, 400);
    // The server lives on.
    assert_eq!(server.ask(SMALL).await.status, 200);
}

#[tokio::test]
async fn connections_above_the_bound_wait_for_a_place() {
    let mut config = client::config();
    config.http[0].max_connections = 1;
    let server = Server::start_as(RULES, config).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    second.write_all(post(SMALL).as_bytes()).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(50), second.readable()).await;
    assert!(
        waits.is_err(),
        "the second connection was served beside the first"
    );
    first.write_all(post(SMALL).as_bytes()).await.unwrap();
    assert_eq!(read_to_end(&mut first).await.status, 200);
    assert_eq!(read_to_end(&mut second).await.status, 200);
}
