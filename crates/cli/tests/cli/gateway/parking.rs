//! Parked connections when the gateway stops.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::NO_OTHERS;
use super::upstream::Upstream;
use crate::program::command;
use crate::server::Server;

#[test]
fn parked_connections_close_at_once_when_the_gateway_stops() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let mut command = command(&[&front[..], &NO_OTHERS].concat());
    // A gateway that ends before has not waited for its clients.
    command.env("TIDEGATE_DRAIN_GRACE", "1000h");
    let server = Server::run(command);
    // Parked from the start, parked after a request, and not parked yet because requests follow each other.
    let mut clients = [0, 1, 2].map(|n_requests| {
        let mut client = TcpStream::connect(&server.address).unwrap();
        for _ in 0..n_requests {
            ask(&mut client);
        }
        client
    });
    server.send("-TERM");
    for client in &mut clients {
        // One that was never used may not even be accepted yet, and is reset.
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    }
    assert_eq!(server.wait().code(), Some(0));
}

/// Sends a request on a connection that stays open.
fn ask(client: &mut TcpStream) {
    let request = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(request).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
}
