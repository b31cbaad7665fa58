//! Parked connections when the gateway stops.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::NO_OTHERS;
use super::upstream::Upstream;
use crate::program::command;
use crate::server::Server;

#[test]
fn parked_connections_are_answered_once_more_when_the_gateway_stops() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let mut command = command(&[&front[..], &NO_OTHERS].concat());
    // A gateway that ends before has not waited for it.
    command.env("TIDEGATE_DRAIN_GRACE", "1000h");
    let mut server = Server::run(command);
    let mut clients = idle_clients(&server);
    server.send("-TERM");
    server.next_line("listeners closed");
    for client in &mut clients {
        // Each thread hears of the drain a moment later.
        while !ask(client).contains("connection: close") {}
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn parked_connections_close_when_the_grace_is_over() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let mut command = command(&[&front[..], &NO_OTHERS].concat());
    command.env("TIDEGATE_DRAIN_GRACE", "50ms");
    let mut server = Server::run(command);
    let mut clients = idle_clients(&server);
    server.send("-TERM");
    for client in &mut clients {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    // They are not cut off, though their clients do not close them.
    server.next_line("idle connections were closed");
    assert_eq!(server.wait().code(), Some(0));
}

/// Connections that are parked from the start, parked after a request, and not parked yet because requests follow each other.
fn idle_clients(server: &Server) -> [TcpStream; 3] {
    [0, 1, 2].map(|n_requests| {
        let mut client = TcpStream::connect(&server.address).unwrap();
        for _ in 0..n_requests {
            ask(&mut client);
        }
        client
    })
}

/// Sends a request, and returns the head of its response in lower case.
fn ask(client: &mut TcpStream) -> String {
    let request = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write_all(request).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}
