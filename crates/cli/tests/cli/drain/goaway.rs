//! HTTP/2 connections when the server stops: GOAWAY twice (RFC 9113, section 6.8), and a request between the two is answered.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::gateway::upstream::Upstream;
use crate::program::command;
use crate::server::{OTHERS, Server};

/// Frame types.
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;

/// `GET http://a/`, compressed: the first three are numbers of a table.
const REQUEST: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'a'];

/// A frame of the server.
#[derive(Debug)]
struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

#[test]
fn a_grpc_connection_is_told_twice_to_go() {
    let server = Server::start(&["--rules", "valid.yaml"]);
    let address = server.grpc_address();
    check(server, &address);
}

#[test]
fn an_http2_connection_of_the_gateway_is_told_twice_to_go() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let args = ["serve", "--http", "off", "--gateway", "127.0.0.1:0"];
    let server = Server::run(command(
        &[&args[..], &["--upstream", &url], &OTHERS].concat(),
    ));
    let address = server.address.clone();
    check(server, &address);
}

#[track_caller]
fn check(server: Server, address: &str) {
    let mut client = TcpStream::connect(address).unwrap();
    client
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    send(&mut client, SETTINGS, 0, 0, &[]);
    next(&mut client, SETTINGS);
    send(&mut client, SETTINGS, ACK, 0, &[]);
    server.send("-TERM");

    // The largest number of a stream: further requests are answered.
    assert_eq!(last_stream(&next(&mut client, GOAWAY)), 0x7fff_ffff);
    let ping = next(&mut client, PING);
    send(&mut client, HEADERS, END_STREAM_AND_HEADERS, 1, &REQUEST);
    assert_eq!(next(&mut client, HEADERS).stream, 1);
    send(&mut client, PING, ACK, 0, &ping.payload);
    assert_eq!(last_stream(&next(&mut client, GOAWAY)), 1);
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(server.wait().code(), Some(0));
}

fn send(client: &mut TcpStream, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u8::try_from(payload.len()).unwrap();
    let mut frame = vec![0, 0, length, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    client.write_all(&frame).unwrap();
}

/// The next frame of that kind that is not an acknowledgement; others are passed over.
fn next(client: &mut TcpStream, kind: u8) -> Frame {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        client.read_exact(&mut payload).unwrap();
        let is_ack = matches!(head[3], SETTINGS | PING) && head[4] == ACK;
        if head[3] == kind && !is_ack {
            return Frame {
                kind,
                stream: u32::from_be_bytes(head[5..].try_into().unwrap()),
                payload,
            };
        }
    }
}

fn last_stream(goaway: &Frame) -> u32 {
    assert_eq!(goaway.kind, GOAWAY);
    u32::from_be_bytes(goaway.payload[..4].try_into().unwrap())
}
