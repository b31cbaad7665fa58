//! Clients that send too much, too slowly, or no HTTP at all.

use std::time::Duration;

use tidegate_server::HttpConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    let path = "x".repeat(70 * 1024);
    let request = format!("GET /json HTTP/1.1\r\nHost: test\r\nCookie: {path}\r\n\r\n");
    assert_eq!(server.exchange(&request).await.status, 431);
}

/// nginx hands on every line of its client's head.
#[tokio::test]
async fn a_head_of_many_lines_is_read() {
    let server = Server::start(RULES).await;
    let check = async |n_lines: usize, expected: u16| {
        let lines = "a:b\r\n".repeat(n_lines - 2);
        let head = "GET /v1/authorize?domain=api HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
        let reply = server.exchange(&format!("{head}{lines}\r\n")).await;
        assert_eq!(reply.status, expected, "{n_lines}");
    };
    check(101, 200).await;
    check(1_024, 200).await;
    check(1_025, 431).await;
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
    config.http[0].max_connections_per_address = Some(2);
    let server = Server::start_as(RULES, config).await;
    let mut first = server.connect().await;
    // Its request is under way until its body arrives: the server has read the head when it asks for the body.
    let request = post(SMALL).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    first
        .write_all(format!("{head}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut interim = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    first.read_exact(&mut interim).await.unwrap();
    let mut second = server.connect().await;
    second.write_all(post(SMALL).as_bytes()).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(50), second.readable()).await;
    assert!(
        waits.is_err(),
        "the second connection was served beside the first"
    );
    first.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_to_end(&mut first).await.status, 200);
    assert_eq!(read_to_end(&mut second).await.status, 200);
}
