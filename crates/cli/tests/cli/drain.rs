//! The end of a process, and what it lives through.

mod goaway;
mod restarts;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::server::{Server, USER};

const RULES: [&str; 2] = ["--rules", "valid.yaml"];

/// Longer than any test takes: what ends before has not waited for it.
const NEVER: &str = "1000h";

/// Sends half a request, and waits until the server has seen it.
fn half_a_request(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let length = USER.len();
    let head =
        format!("POST /json HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on[..], b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(&USER.as_bytes()[..10]).unwrap();
    stream
}

fn health(server: &Server) -> String {
    get(&server.address, "/healthcheck")
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    let mut server = Server::start_with(&RULES, &[("TIDEGATE_DRAIN_GRACE", NEVER)]);
    let mut half = half_a_request(&server);
    server.send("-TERM");
    server.next_line("listeners closed");
    assert!(TcpStream::connect(&server.address).is_err());
    half.write_all(&USER.as_bytes()[10..]).unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    server.next_line("all pending requests were answered");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn health_turns_during_the_delay_and_a_second_signal_ends_it() {
    let mut server = Server::start_with(&RULES, &[("TIDEGATE_DRAIN_DELAY", NEVER)]);
    let admin = server.admin_address();
    assert!(health(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200 OK\r\n"));
    server.send("-TERM");
    server.next_line("stopping");
    while !health(&server).starts_with("HTTP/1.1 500 ") {}
    assert!(get(&admin, "/healthcheck").starts_with("HTTP/1.1 500 "));
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503 "));
    assert!(server.ask(USER).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(server.stop("-TERM").code(), Some(0));
}

#[test]
fn answers_close_their_connections_during_the_delay() {
    let server = Server::start_with(&RULES, &[("TIDEGATE_DRAIN_DELAY", NEVER)]);
    let mut kept = TcpStream::connect(&server.address).unwrap();
    let request = b"GET /healthcheck HTTP/1.1\r\nHost: a\r\n\r\n";
    kept.write_all(request).unwrap();
    let mut answer = [0; 512];
    let n_bytes = kept.read(&mut answer).unwrap();
    assert!(answer[..n_bytes].starts_with(b"HTTP/1.1 200 OK\r\n"));
    server.send("-TERM");
    while !health(&server).starts_with("HTTP/1.1 500 ") {}
    kept.write_all(request).unwrap();
    let mut answer = String::new();
    kept.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(server.stop("-TERM").code(), Some(0));
}

#[test]
fn an_interrupt_waits_for_no_load_balancer() {
    let server = Server::start_with(&RULES, &[("TIDEGATE_DRAIN_DELAY", NEVER)]);
    assert_eq!(server.stop("-INT").code(), Some(0));
}

#[test]
fn a_client_that_never_finishes_is_cut_off_after_the_grace_period() {
    let mut server = Server::start_with(&RULES, &[("TIDEGATE_DRAIN_GRACE", "50ms")]);
    let mut half = half_a_request(&server);
    server.send("-TERM");
    server.next_line("pending requests were cut off");
    assert_eq!(half.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn with_few_file_descriptors_a_listener_takes_fewer_connections() {
    let mut server = Server::start_with_files("-n", 192, &["--threads", "2"]);
    let line = server.next_line("the limit of open files is lower");
    // Three listeners of 4,096, and what two threads and the rest of the process need.
    assert!(line.contains("limit=192 needed=12400"), "{line}");
    let connect = |_| TcpStream::connect(&server.address).unwrap();
    let many: Vec<TcpStream> = (0..200).map(connect).collect();
    // The idlest of them makes room.
    assert!(health(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    drop(many);
    stop_without_failed_accepts(server);
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let server = Server::start_with_files("-Sn", 64, &[]);
    let connect = |_| TcpStream::connect(&server.address).unwrap();
    let many: Vec<TcpStream> = (0..100).map(connect).collect();
    assert!(health(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    drop(many);
    stop_without_failed_accepts(server);
}

fn stop_without_failed_accepts(mut server: Server) {
    server.send("-TERM");
    let ended = |line: &String| line.contains("all pending requests were answered");
    let log = server.log_until(ended);
    assert!(
        !log.iter().any(|line| line.contains("cannot accept")),
        "{log:?}"
    );
}

#[test]
fn a_server_full_of_connections_says_so_and_comes_back() {
    let variables = [
        ("TIDEGATE_LIMITS_CONNECTIONS", "10"),
        // More than there are: those that closed count until the server has seen it.
        ("TIDEGATE_LIMITS_CONNECTIONS_PER_ADDRESS", "100"),
    ];
    let mut server = Server::start_with(&RULES, &variables);
    // None of them is idle.
    let mut many: Vec<TcpStream> = (0..10).map(|_| half_a_request(&server)).collect();
    many.push(TcpStream::connect(&server.address).unwrap());
    let line = server.next_line("connection limit reached");
    assert!(line.contains("max_connections=10"), "{line}");
    drop(many);
    assert!(health(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(health(&server).starts_with("HTTP/1.1 200 OK\r\n"));
    server.next_line("there is room for connections again");
}

#[test]
fn a_collector_that_never_answers_does_not_put_off_the_end() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let variables = [
        ("TIDEGATE_OBSERVING_TRACES_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
    ];
    let server = Server::start_with(&RULES, &variables);
    assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    let _sending = collector.accept().unwrap();
    assert_eq!(server.stop("-TERM").code(), Some(0));
}
