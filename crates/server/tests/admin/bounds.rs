//! What a connection is allowed.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::desk::{Desk, exchange};

#[tokio::test]
async fn several_requests_go_over_one_connection() {
    let desk = Desk::start();
    let mut stream = TcpStream::connect(desk.admin).await.unwrap();
    for _ in 0..3 {
        let request = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = [0; 1_024];
        let n_read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..n_read].starts_with(b"HTTP/1.1 200 OK"));
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let desk = Desk::start();
    let query = "x".repeat(20_000);
    let request = format!("GET /api/v1/top?rule={query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(exchange(desk.admin, &request).await.status, 431);
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_too() {
    let desk = Desk::start();
    let chunk = format!("{:x}\r\n{}\r\n", 70_000, " ".repeat(70_000));
    let head =
        "POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = TcpStream::connect(desk.admin).await.unwrap();
    stream
        .write_all(format!("{head}{chunk}").as_bytes())
        .await
        .unwrap();
    let mut answer = vec![0; 1_024];
    let n_read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..n_read].starts_with(b"HTTP/1.1 413 "));
}
