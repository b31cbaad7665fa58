//! What a connection is allowed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_server::test_util::AdminCore;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::desk::{Desk, Hooks, TOKEN, admin, exchange, guarded, local};
use crate::store::TestStore;

/// Sends `request` over a connection without a listener, on a clock that jumps, and gives all that comes
/// back until it is closed, and how long that took.
async fn converse(request: &str) -> (String, Duration) {
    let core = AdminCore::new(admin(Arc::new(Hooks::new()), local()));
    converse_with(&core, request).await
}

/// The same with a listener of its own.
async fn converse_with(core: &AdminCore<TestStore>, request: &str) -> (String, Duration) {
    let (mut ours, theirs) = duplex(1 << 16);
    let started = Instant::now();
    ours.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let ((), read) = tokio::join!(core.serve(theirs), ours.read_to_string(&mut answer));
    read.unwrap();
    (answer, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let request = "POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    let (answer, took) = converse(request).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(
        answer.contains("the body did not arrive in time"),
        "{answer}"
    );
    // Ten seconds for the body, and the time that a next request may take to begin.
    assert!(took < Duration::from_mins(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let (answer, took) = converse("GET /healthcheck HTTP/1.1\r\nHost: local").await;
    assert!(!answer.contains("200 OK"), "{answer}");
    assert_eq!(took.as_secs(), 60);
}

#[tokio::test]
async fn no_page_comes_over_a_unix_socket() {
    let request = "GET /api/v1/log-level HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n";
    let (answer, _) = converse(request).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn several_requests_go_over_one_connection() {
    let desk = Desk::start();
    let mut stream = TcpStream::connect(desk.admin).await.unwrap();
    for _ in 0..3 {
        let request = b"GET /healthcheck HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = [0; 1_024];
        let n_read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..n_read].starts_with(b"HTTP/1.1 200 OK"));
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let desk = Desk::start();
    let query = "x".repeat(20_000);
    let request = format!("GET /api/v1/top?rule={query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(exchange(desk.admin, &request).await.status, 431);
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_too() {
    let desk = Desk::start();
    let chunk = format!("{:x}\r\n{}\r\n", 70_000, " ".repeat(70_000));
    let head =
        "POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = TcpStream::connect(desk.admin).await.unwrap();
    stream
        .write_all(format!("{head}{chunk}").as_bytes())
        .await
        .unwrap();
    let mut answer = vec![0; 1_024];
    let n_read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..n_read].starts_with(b"HTTP/1.1 413 "));
}

/// A request with this token.
fn bring(token: &str) -> String {
    format!(
        "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_slowed_and_the_right_one_is_not() {
    let core = AdminCore::new(admin(Arc::new(Hooks::new()), guarded()));
    let mut delays = Vec::new();
    for _ in 0..8 {
        let (answer, took) = converse_with(&core, &bring("guess")).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        delays.push(took.as_millis());
    }
    assert_eq!(delays[..4], [0; 4]);
    assert!(delays[4] >= 50 && delays[7] >= 400, "{delays:?}");
    let (answer, took) = converse_with(&core, &bring(TOKEN)).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_of_clients_that_do_not_wait_are_counted() {
    let core = AdminCore::new(admin(Arc::new(Hooks::new()), guarded()));
    let guess = bring("guess");
    for _ in 0..40 {
        // Dropped, the client is gone, and the server's end of its connection with it.
        let _ = timeout(Duration::from_millis(1), converse_with(&core, &guess)).await;
    }
    let (answer, took) = converse_with(&core, &guess).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(took >= Duration::from_secs(2), "{took:?}");
}

/// Nobody gets more guesses by asking before the answers are there.
#[tokio::test(start_paused = true)]
async fn wrong_tokens_in_parallel_are_slowed_as_those_one_after_the_other() {
    let core = AdminCore::new(admin(Arc::new(Hooks::new()), guarded()));
    let (guess, right) = (bring("guess"), bring(TOKEN));
    let mut guesses = pin!(join_all((0..40).map(|_| converse_with(&core, &guess))));
    let soon = timeout(Duration::from_millis(1), &mut guesses).await;
    assert!(soon.is_err(), "the others wait");
    let (answer, took) = converse_with(&core, &right).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(took, Duration::ZERO);
    let (mut n_at_once, mut n_longest) = (0, 0);
    for (answer, took) in guesses.await {
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        n_at_once += usize::from(took.is_zero());
        n_longest += usize::from(took >= Duration::from_secs(2));
    }
    assert_eq!((n_at_once, n_longest), (4, 30));
}
