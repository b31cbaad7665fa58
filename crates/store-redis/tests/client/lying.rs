//! A server that says what no Redis says, or stops in the middle.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::thread;

use tidegate_store::StoreError;
use tidegate_store::report::Breaker;

use super::{ask, client, insist, until_open};

/// What a server does when it was asked something.
enum Deed {
    Say(String),
    /// Says this, and its own port.
    Own(&'static str),
    /// Nothing, for ever.
    Hang,
    /// It ends the connection.
    Close,
}

/// Listens on a free port and does to each question what it is told; ends with the process.
fn serve(deed: impl Fn(&str) -> Deed + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let deed = Arc::new(deed);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let deed = Arc::clone(&deed);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    match deed(&String::from_utf8_lossy(&bytes[..length])) {
                        Deed::Say(reply) => stream.write_all(reply.as_bytes()).unwrap(),
                        Deed::Own(reply) => {
                            write!(stream, "{reply}{}\r\n", address.port()).unwrap();
                        }
                        Deed::Hang => {}
                        Deed::Close => return,
                    }
                }
            });
        }
    });
    address
}

/// Whoever looks whether a server is back looks again when it hangs in the middle of that.
#[tokio::test]
async fn a_server_that_hangs_while_it_is_looked_at_is_looked_at_again() {
    let (n_pings, n_roles) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let address = serve(move |question| {
        let is_first = |count: &AtomicUsize, first| count.fetch_add(1, Ordering::Relaxed) < first;
        if question.contains("EVAL") {
            return Deed::Say(":1\r\n".to_owned());
        }
        if question.contains("ROLE") {
            if is_first(&n_roles, 1) {
                return Deed::Hang;
            }
            return Deed::Say("*1\r\n$6\r\nmaster\r\n".to_owned());
        }
        if is_first(&n_pings, 5) {
            return Deed::Close;
        }
        Deed::Say("+PONG\r\n".to_owned())
    });
    let client = client(&format!("redis://{address}"));
    until_open(&client, &["PING"]).await;
    insist(&client, &["PING"]).await;
}

/// A server that sends calls to ever more others does not make us connect to all of them.
#[tokio::test]
async fn calls_are_sent_on_to_a_bounded_number_of_servers() {
    let (n_told, next_port) = (AtomicUsize::new(0), AtomicU16::new(1));
    let address = serve(move |question| {
        if !question.contains("CLUSTER") {
            let port = next_port.fetch_add(1, Ordering::Relaxed);
            return Deed::Say(format!("-ASK 1 127.0.0.2:{port}\r\n"));
        }
        // All slots are at the port that is asked. It tells so once: those who learn it again forget the
        // servers that they were sent to.
        match n_told.fetch_add(1, Ordering::Relaxed) {
            0 => Deed::Own("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:"),
            _ => Deed::Close,
        }
    });
    let client = client(&format!("redis+cluster://{address}"));
    let mut n_sent_on = 0;
    loop {
        let error = ask(&client, &["GET", "a"]).await.unwrap_err().to_string();
        if error.contains("more servers than have slots") {
            break;
        }
        n_sent_on += 1;
        assert!(n_sent_on < 1000, "{error}");
    }
    assert_eq!(client.servers(), 1);
}

/// That nobody answers for a Cluster is to be seen, though none of its servers is known.
#[tokio::test]
async fn a_cluster_that_nobody_answers_for_is_not_whole() {
    let client = client("redis+cluster://127.0.0.1:1,127.0.0.1:2");
    assert_eq!(client.report(), []);
    until_open(&client, &["PING"]).await;
    let report = client.report();
    let addresses: Vec<&str> = report.iter().map(|server| &*server.address).collect();
    assert_eq!(addresses, ["127.0.0.1:1", "127.0.0.1:2"]);
    for server in &report {
        assert_eq!(server.breaker, Breaker::Open);
        assert!(server.fault.is_some(), "{server:?}");
    }
    assert_eq!(ask(&client, &["PING"]).await, Err(StoreError::Open));
}
