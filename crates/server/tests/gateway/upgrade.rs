//! Connections that become something else.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::harness::{LONG, RunningGateway, receive};

#[tokio::test]
async fn bytes_flow_both_ways_after_an_upgrade() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RunningGateway::start(listener.local_addr().unwrap());
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.contains("\r\nupgrade: echo\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello")
            .await
            .unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word).await.unwrap();
        // The client has ended its half; ours is still open.
        assert_eq!(stream.read(&mut word).await.unwrap(), 0);
        stream.write_all(b"last").await.unwrap();
    });
    let mut stream = gateway.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping")
        .await
        .unwrap();
    let received = receive(&mut stream).await.unwrap();
    assert_eq!(received.status, 101);
    assert_eq!(received.header("upgrade"), Some("echo"));
    stream.shutdown().await.unwrap();
    let mut rest = received.body().as_bytes().to_vec();
    timeout(LONG, stream.read_to_end(&mut rest))
        .await
        .expect("an end")
        .unwrap();
    assert_eq!(rest, b"hellopinglast");
    upstream.await.unwrap();
}

#[tokio::test]
async fn a_connection_is_upgraded_after_other_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = RunningGateway::start(listener.local_addr().unwrap());
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answers = [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n",
        ];
        for answer in answers {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word).await.unwrap();
    });
    let mut stream = gateway.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(receive(&mut stream).await.unwrap().status, 200);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping")
        .await
        .unwrap();
    let received = receive(&mut stream).await.unwrap();
    assert_eq!(received.status, 101);
    let mut rest = received.body().as_bytes().to_vec();
    timeout(LONG, stream.read_to_end(&mut rest))
        .await
        .expect("an end")
        .unwrap();
    assert_eq!(rest, b"ping");
    upstream.await.unwrap();
}
