//! Connections of a listener that is full, of one address, and of peers that are gone.

use std::fs;
use std::net::SocketAddr;

use tidegate_server::{ListenConfig, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::harness::{
    LONG, QUESTION, Running, any_port, ask, head, post, read_reply, try_ask, try_call,
};

/// A listener for so many connections, which one address may have all of.
fn places(n: usize) -> ListenConfig {
    ListenConfig {
        max_connections: n,
        max_connections_per_address: Some(usize::MAX),
        ..any_port()
    }
}

fn http(listener: ListenConfig) -> ServerConfig {
    ServerConfig {
        http: vec![listener],
        ..ServerConfig::default()
    }
}

/// Waits until the server closes the connection.
async fn closed(io: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = timeout(LONG, io.read_to_end(&mut rest)).await;
    assert!(read.expect("an end").is_err() || rest.is_empty());
}

/// A connection from another address of this machine.
async fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((source, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

#[tokio::test]
async fn a_full_listener_evicts_the_idlest_connection() {
    let server = Running::start(http(places(3)));
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut io = server.connect(0).await;
        assert_eq!(ask(&mut io, &post()).await.status, 200);
        open.push(io);
    }
    // The first is the one that asked last.
    assert_eq!(ask(&mut open[0], &post()).await.status, 200);
    let mut late = server.connect(0).await;
    assert_eq!(ask(&mut late, &post()).await.status, 200);
    closed(&mut open[1]).await;
    for index in [0, 2] {
        assert_eq!(ask(&mut open[index], &post()).await.status, 200);
    }
}

#[tokio::test]
async fn a_connection_with_a_request_under_way_is_not_evicted() {
    let server = Running::start(http(places(2)));
    let mut busy = server.connect(0).await;
    // The server waits for the body, and says so.
    let begin = head("POST /json", QUESTION.len());
    let begin = begin.replace("Host", "Expect: 100-continue\r\nHost");
    busy.write_all(begin.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    busy.read_exact(&mut go_on).await.unwrap();
    let mut idle = server.connect(0).await;
    assert_eq!(ask(&mut idle, &post()).await.status, 200);
    for _ in 0..8 {
        let mut late = server.connect(0).await;
        assert_eq!(ask(&mut late, &post()).await.status, 200);
    }
    closed(&mut idle).await;
    busy.write_all(QUESTION.as_bytes()).await.unwrap();
    assert_eq!(read_reply(&mut busy).await.unwrap().status, 200);
}

#[tokio::test]
async fn connections_that_never_ask_do_not_shut_out_others() {
    let config = ServerConfig {
        http: vec![places(8)],
        grpc: vec![places(8)],
        ..ServerConfig::default()
    };
    let server = Running::start(config);
    let mut silent = Vec::new();
    for index in [0, 1] {
        for _ in 0..8 {
            silent.push(server.connect(index).await);
        }
    }
    let mut io = server.connect(0).await;
    assert_eq!(ask(&mut io, &post()).await.status, 200);
    let called = try_call(server.connect(1).await).await;
    assert_eq!(called.as_deref(), Some("0"));
}

#[tokio::test]
async fn one_address_has_half_of_the_places() {
    let listener = ListenConfig {
        max_connections: 4,
        ..any_port()
    };
    let server = Running::start(http(listener));
    let mut open = [server.connect(0).await, server.connect(0).await];
    for io in &mut open {
        assert_eq!(ask(io, &post()).await.status, 200);
    }
    let mut third = server.connect(0).await;
    assert_eq!(try_ask(&mut third, &post()).await, None);
    let mut other = connect_from([127, 0, 0, 2], server.tcp(0)).await;
    assert_eq!(ask(&mut other, &post()).await.status, 200);
    // Those that the address has go on.
    for io in &mut open {
        assert_eq!(ask(io, &post()).await.status, 200);
    }
}

#[tokio::test]
async fn an_exempt_peer_has_all_places() {
    let listener = ListenConfig {
        max_connections: 4,
        exempt_peers: ["127.0.0.0/8".parse().unwrap()].into_iter().collect(),
        ..any_port()
    };
    let server = Running::start(http(listener));
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut io = server.connect(0).await;
        assert_eq!(ask(&mut io, &post()).await.status, 200);
        open.push(io);
    }
}

/// The kernel's timer of the server's side of a connection: 2 is keepalive.
fn timer_of(local: SocketAddr, peer: SocketAddr) -> Option<u8> {
    let end = |address: SocketAddr| format!("{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields[1].ends_with(&end(local)) && fields[2].ends_with(&end(peer));
        is_it.then(|| fields[5][..2].parse().unwrap())
    })
}

#[tokio::test]
async fn the_kernel_looks_for_peers_that_are_gone() {
    let server = Running::start(http(places(2)));
    let mut io = server.connect(0).await;
    assert_eq!(ask(&mut io, &post()).await.status, 200);
    let (server, client) = (io.peer_addr().unwrap(), io.local_addr().unwrap());
    // What was sent is acknowledged soon; until then another timer may run.
    let looked = timeout(LONG, async {
        while timer_of(server, client) != Some(2) {
            tokio::task::yield_now().await;
        }
    });
    assert!(looked.await.is_ok());
}
