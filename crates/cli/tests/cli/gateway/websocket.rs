//! WebSocket connections through the gateway when it stops.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::NO_OTHERS;
use crate::program::command;
use crate::server::Server;

/// Reads the head of a request or a response.
fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn both_sides_get_a_close_frame_when_the_gateway_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let mut command = command(&[&front[..], &NO_OTHERS].concat());
    // What ends before has not waited for it.
    command.env("TIDEGATE_DRAIN_GRACE", "1000h");
    let server = Server::run(command);
    let mut client = TcpStream::connect(&server.address).unwrap();
    client
        .write_all(
            b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        )
        .unwrap();
    let (mut upstream, _) = listener.accept().unwrap();
    read_head(&mut upstream);
    upstream
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 101 "));
    // A message of the upstream, the first half of the next one, and after the signal its other half.
    upstream.write_all(b"\x81\x05hello\x81\x05wo").unwrap();
    let mut first = [0; 11];
    client.read_exact(&mut first).unwrap();
    server.send("-TERM");
    let mut close = [0; 18];
    upstream.read_exact(&mut close).unwrap();
    assert_eq!(close[..2], [0x88, 0x8c], "a close frame with a mask");
    upstream.write_all(b"rld").unwrap();
    assert_eq!(read_all(&mut client), b"rld\x88\x0c\x03\xe9going away");
    drop((client, upstream));
    assert_eq!(server.wait().code(), Some(0));
}
