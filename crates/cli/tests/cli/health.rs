//! `tidegate health`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::program::{check, run};
use crate::server::Server;

#[test]
fn a_server_that_takes_requests_is_well() {
    let server = Server::start(&[]);
    let health = run(&["health", "--http", &server.address]);
    assert_eq!(
        (health.code, health.stdout.as_str()),
        (Some(0), "OK\n"),
        "{health:?}"
    );
}

#[test]
fn a_server_that_is_not_there_is_not() {
    // A listener that is gone: nobody else has its port for now.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = address.unwrap().to_string();
    let health = run(&["health", "--http", &address]);
    assert_eq!(health.code, Some(1));
    let expected = format!("error: no server takes requests at {address}: ");
    assert!(health.stderr.starts_with(&expected), "{}", health.stderr);
}

/// Asks a server that answers with `answer`, and gives what is said about it.
fn said_about(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let read = stream.read(&mut [0; 1024]).unwrap();
        assert!(read > 0);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let health = run(&["health", "--http", &address]);
    serving.join().unwrap();
    assert_eq!(health.code, Some(1));
    health.stderr
}

#[test]
fn a_server_that_says_so_is_not() {
    let said = said_about("HTTP/1.1 500 Internal Server Error\r\n\r\nDRAINING");
    assert!(said.ends_with(": it answers 500 DRAINING\n"), "{said}");
    for answer in ["220 mail.example ESMTP\r\n", ""] {
        let said = said_about(answer);
        assert!(said.ends_with(": it does not speak HTTP\n"), "{said}");
    }
}

#[test]
fn without_a_listener_there_is_nobody_to_ask() {
    check(
        "health_nobody",
        &["health", "--http", "off", "--admin", "off"],
    );
}
