//! Other paths, several requests on a connection, and the end.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{self, Server, post, read_to_end};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 2}
";

const QUESTION: &str =
    r#"{"domain": "api", "descriptors": [{"entries": [{"key": "user", "value": "alice"}]}]}"#;

#[tokio::test]
async fn the_server_says_that_it_is_well() {
    let server = Server::start(RULES).await;
    let reply = server.get("/healthcheck").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "OK"));
}

#[tokio::test]
async fn what_is_only_read_takes_no_other_method() {
    let server = Server::start(RULES).await;
    for path in ["/healthcheck", "/v1/openapi.json"] {
        for (method, status) in [("HEAD", 200), ("DELETE", 405), ("POST", 405)] {
            let request =
                format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
            let reply = server.exchange(request).await;
            assert_eq!(reply.status, status, "{method} {path}");
            if status == 405 {
                assert_eq!(reply.header("allow"), Some("GET, HEAD"), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn other_paths_say_where_to_go() {
    let server = Server::start(RULES).await;
    let reply = server.get("/nothing?here=1").await;
    assert_eq!(reply.status, 404);
    assert!(
        reply.body.contains("there is no /nothing here; POST"),
        "{}",
        reply.body
    );
}

#[tokio::test]
async fn any_method_may_ask() {
    let server = Server::start(RULES).await;
    for method in ["GET", "PUT"] {
        let request = post(QUESTION).replace("POST", method);
        assert_eq!(server.exchange(&request).await.status, 200);
    }
    assert_eq!(server.ask(QUESTION).await.status, 429);
}

#[tokio::test]
async fn a_connection_is_good_for_several_requests() {
    let server = Server::start(RULES).await;
    let mut stream = server.connect().await;
    let keep_alive = post(QUESTION).replace("Connection: close\r\n", "");
    stream
        .write_all(format!("{keep_alive}{keep_alive}{}", post(QUESTION)).as_bytes())
        .await
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let statuses: Vec<&str> = text
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|reply| &reply[..3])
        .collect();
    assert_eq!(statuses, ["200", "200", "429"]);
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_end() {
    let server = Server::start(RULES).await;
    let address = server.address;
    let mut stream = server.connect().await;
    let request = post(QUESTION);
    let (first, rest) = request.split_at(request.len() - 10);
    stream.write_all(first.as_bytes()).await.unwrap();
    // Another request that comes after proves that the server has seen the first half.
    server.get("/healthcheck").await;
    let stopped = server.stop();
    stream.write_all(rest.as_bytes()).await.unwrap();
    assert_eq!(read_to_end(&mut stream).await.status, 200);
    stopped.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_client_that_never_finishes_does_not_hold_up_the_end() {
    let mut config = client::config();
    config.drain.grace = Duration::from_millis(50);
    let server = Server::start_as(RULES, config).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /json HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
        .await
        .unwrap();
    server.get("/healthcheck").await;
    server.stop().await.unwrap();
}
