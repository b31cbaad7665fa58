//! Restarts under load: no request on a kept-alive connection is lost.
//!
//! `TIDEGATE_TEST_RESTARTS=20` runs as many restarts as that, as `scripts/attack restarts` does; fewer do for an ordinary run of the tests.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::gateway::upstream::Upstream;
use crate::program::command;
use crate::server::{OTHERS, Server, USER};

/// Connections that are kept alive.
const N_CLIENTS: usize = 64;

/// Pauses between the requests of one client.
const PAUSES_MS: [u64; 16] = [
    0, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 2_000,
];

/// The listener that the clients ask.
#[derive(Clone, Copy)]
enum Listener {
    Http,
    Admin,
    Gateway,
}

/// Two nodes and what their clients saw.
#[derive(Default)]
struct Fleet {
    addresses: Mutex<Vec<String>>,
    is_over: AtomicBool,
    n_answered: AtomicU64,
    broken: Mutex<Vec<String>>,
}

type Connection = BufReader<TcpStream>;

#[test]
fn restarts_break_no_request_to_the_http_listener() {
    check(Listener::Http, 3, &[]);
}

#[test]
fn restarts_break_no_request_to_the_admin_listener() {
    check(Listener::Admin, 3, &[]);
}

#[test]
fn restarts_break_no_request_to_the_gateway() {
    check(Listener::Gateway, 3, &[]);
}

/// Restarts one node after the other while clients ask, and go to the other node if one takes no connection.
fn check(listener: Listener, n_restarts: usize, variables: &[(&str, &str)]) {
    let n_restarts = std::env::var("TIDEGATE_TEST_RESTARTS")
        .map_or(n_restarts, |number| number.parse().unwrap());
    let upstream = Upstream::start();
    let start = || listener.start(&upstream, variables);
    let mut nodes = [start(), start()];
    let fleet = Fleet::default();
    *fleet.addresses.lock().unwrap() = nodes.iter().map(|it| listener.address(it)).collect();
    thread::scope(|scope| {
        for index in 0..N_CLIENTS {
            let (fleet, request) = (&fleet, listener.request());
            scope.spawn(move || fleet.ask_until_the_end(index, &request));
        }
        for restart in 0..n_restarts {
            fleet.wait_for_answers();
            let place = restart % nodes.len();
            let next = start();
            fleet.addresses.lock().unwrap()[place] = listener.address(&next);
            let mut last = std::mem::replace(&mut nodes[place], next);
            last.send("-TERM");
            last.next_line("all pending requests were answered");
            assert_eq!(last.wait().code(), Some(0));
        }
        fleet.is_over.store(true, Ordering::Relaxed);
    });
    let broken = fleet.broken.into_inner().unwrap();
    let n_answered = fleet.n_answered.into_inner();
    let n_broken = broken.len();
    println!("{n_restarts} restarts: {n_answered} requests answered, {n_broken} broken");
    assert!(broken.is_empty(), "{broken:?}");
}

// === impl Listener ===

impl Listener {
    fn start(self, upstream: &Upstream, variables: &[(&str, &str)]) -> Server {
        let url = upstream.url();
        let args = match self {
            Self::Http | Self::Admin => vec!["--http", "127.0.0.1:0", "--rules", "valid.yaml"],
            Self::Gateway => vec![
                "--http",
                "off",
                "--gateway",
                "127.0.0.1:0",
                "--upstream",
                &url,
            ],
        };
        let mut command = command(&[&["serve"], &args[..], &OTHERS].concat());
        command.envs(variables.iter().copied());
        Server::run(command)
    }

    fn address(self, server: &Server) -> String {
        match self {
            Self::Http | Self::Gateway => server.address.clone(),
            Self::Admin => server.admin_address(),
        }
    }

    fn request(self) -> String {
        match self {
            Self::Http => format!(
                "POST /json HTTP/1.1\r\nContent-Length: {}\r\n\r\n{USER}",
                USER.len()
            ),
            Self::Admin => "GET /api/v1/rules HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
            Self::Gateway => "GET /x HTTP/1.1\r\nHost: shop.example\r\n\r\n".to_owned(),
        }
    }
}

// === impl Fleet ===

impl Fleet {
    /// Asks again and again on one connection, and on another if the answer says that it closes.
    fn ask_until_the_end(&self, index: usize, request: &str) {
        // Clients with a pause have an idle connection most of the time, those without hardly ever. The longest pause is shorter
        // than the default grace, in which every client asks at least once.
        let pause = Duration::from_millis(PAUSES_MS[index % PAUSES_MS.len()]);
        let mut kept = None;
        while !self.is_over.load(Ordering::Relaxed) {
            let mut connection = kept.take().unwrap_or_else(|| self.connect(index));
            match exchange(&mut connection, request) {
                Ok(is_open) => {
                    self.n_answered.fetch_add(1, Ordering::Relaxed);
                    kept = is_open.then_some(connection);
                }
                Err(error) => {
                    let mut text = String::new();
                    write!(text, "client {index}: {error}").unwrap();
                    self.broken.lock().unwrap().push(text);
                }
            }
            thread::park_timeout(pause);
        }
    }

    /// Connects to the first node that takes a connection.
    fn connect(&self, index: usize) -> Connection {
        for turn in index.. {
            let addresses = self.addresses.lock().unwrap().clone();
            if let Ok(stream) = TcpStream::connect(&addresses[turn % addresses.len()]) {
                return BufReader::new(stream);
            }
        }
        unreachable!("a node is always there")
    }

    /// Waits until the clients have had as many answers again as they have connections.
    fn wait_for_answers(&self) {
        let before = self.n_answered.load(Ordering::Relaxed);
        while self.n_answered.load(Ordering::Relaxed) < before + 2 * N_CLIENTS as u64 {
            thread::yield_now();
        }
    }
}

/// Sends a request and reads the whole answer. True if the connection stays open.
fn exchange(connection: &mut Connection, request: &str) -> io::Result<bool> {
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut length, mut is_open) = (0, true);
    let mut line = String::new();
    connection.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 ") {
        return Err(io::Error::other(format!("no answer: {line:?}")));
    }
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            None => break,
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(("connection", "close")) => is_open = false,
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(is_open)
}
