//! Servers behind the gateway that fail, as the log tells of them.

use std::net::TcpListener;

use super::{NO_OTHERS, ask};
use crate::program::command;
use crate::server::Server;

#[test]
fn failed_requests_are_logged_at_once_and_then_at_intervals() {
    // A port at which nobody listens.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let server = Server::run(command(&[&front[..], &NO_OTHERS].concat()));
    for _ in 0..8 {
        assert_eq!(ask(&server, "GET /", &[]).status(), 502);
    }
    let log = server.end();
    let is_failure = |line: &&String| line.contains("request failed: ");
    let lines: Vec<&String> = log.iter().filter(is_failure).collect();
    assert_eq!(lines.len(), 1, "{log:?}");
    assert!(
        lines[0].contains("upstream=\"default\" n_failed=1"),
        "{lines:?}"
    );
}
