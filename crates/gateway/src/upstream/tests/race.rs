//! Kept connections that the upstream closes just as a request is sent.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use http::Method;
use tokio::task::JoinSet;

use super::super::{ForwardError, Reached};
use super::bytes_server::{BytesConnection, BytesServer};
use super::client_body::whole_body;
use super::{OK, get, one_target, pool, read, request, run, upstream};
use crate::body::RequestBody;

/// The ways in which a connection that has served a request can end.
#[derive(Clone, Copy, Debug)]
enum ConnectionEnd {
    /// After a response.
    Finished,
    /// After a response, by a reset.
    Reset,
    /// When a request arrives, unread.
    FinishedUnread,
    /// When a request was read.
    FinishedRead,
    /// When a request was read, by a reset.
    ResetRead,
}

/// Requests that arrived, by their id.
type Arrivals = Rc<RefCell<HashMap<String, usize>>>;

const ENDS: [ConnectionEnd; 5] = [
    ConnectionEnd::Finished,
    ConnectionEnd::Reset,
    ConnectionEnd::FinishedUnread,
    ConnectionEnd::FinishedRead,
    ConnectionEnd::ResetRead,
];

/// Answers some requests, at least one, and ends in one of the ways.
async fn serve(mut connection: BytesConnection, arrivals: Arrivals, mut random: u32) {
    loop {
        let Some(head) = connection.head().await else {
            return;
        };
        note(&head, &arrivals);
        if head.contains("content-length: 5\r\n") {
            connection.body(5).await;
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let end = ENDS.get((random >> 20) as usize % 10);
        connection.send(OK).await;
        match end {
            None => {}
            Some(ConnectionEnd::Finished) => return,
            Some(ConnectionEnd::Reset) => return connection.reset(),
            Some(ConnectionEnd::FinishedUnread) => {
                connection.stream.readable().await.unwrap();
                return;
            }
            Some(end @ (ConnectionEnd::FinishedRead | ConnectionEnd::ResetRead)) => {
                if let Some(head) = connection.head().await {
                    note(&head, &arrivals);
                }
                if let ConnectionEnd::ResetRead = end {
                    connection.reset();
                }
                return;
            }
        }
    }
}

fn note(head: &str, arrivals: &Arrivals) {
    let id = head.split(' ').nth(1).unwrap().to_owned();
    *arrivals.borrow_mut().entry(id).or_default() += 1;
}

async fn start() -> (BytesServer, Arrivals) {
    let arrivals = Arrivals::default();
    let noted = Rc::clone(&arrivals);
    let server = BytesServer::start(move |connection| {
        let seed = u32::try_from(connection.number).unwrap();
        serve(
            connection,
            Rc::clone(&noted),
            seed.wrapping_mul(2_654_435_761),
        )
    });
    (server.await, arrivals)
}

/// As many as `TIDEGATE_RACE_REQUESTS` says (`scripts/attack races` does), or as CI has time for.
fn n_requests() -> usize {
    let asked = std::env::var("TIDEGATE_RACE_REQUESTS").ok();
    asked.map_or(20_000, |asked| asked.parse().unwrap())
}

#[test]
fn gets_never_fail_because_a_kept_connection_was_closed() {
    const N_WORKERS: usize = 8;
    run(async {
        let (server, _) = start().await;
        let upstream = one_target(&server.url);
        let pool = Rc::new(pool());
        let mut workers = JoinSet::new();
        for _ in 0..N_WORKERS {
            let (pool, upstream) = (Rc::clone(&pool), upstream.clone());
            workers.spawn_local(async move {
                for _ in 0..n_requests() / N_WORKERS {
                    let response = pool.send(&upstream, get("/"), None).await.unwrap();
                    assert_eq!(read(response).await, "ok");
                }
            });
        }
        while let Some(done) = workers.join_next().await {
            done.unwrap();
        }
        // It was a test of something.
        assert!(upstream.counters.retries.get() > 100);
        assert_eq!(upstream.counters.broken.get(), 0);
    });
}

#[test]
fn posts_never_arrive_twice() {
    run(async {
        let (server, arrivals) = start().await;
        let upstream = one_target(&server.url);
        let pool = pool();
        let n_failed = Cell::new(0);
        for number in 0..n_requests() / 4 {
            let post = request(Method::POST, &format!("/{number}"));
            // Half of them have a body.
            let (body, _client) = if number % 2 == 0 {
                let (body, client) = whole_body(b"hello").await;
                (body, Some(client))
            } else {
                (RequestBody::Empty, None)
            };
            match pool.send(&upstream, post.map(|_| body), None).await {
                Ok(response) => assert_eq!(read(response).await, "ok"),
                Err(error) => {
                    assert!(matches!(error, ForwardError::Broken { .. }), "{error:?}");
                    assert_eq!(error.was_reached(), Reached::Maybe);
                    n_failed.set(n_failed.get() + 1);
                }
            }
        }
        assert!(n_failed.get() > 10);
        assert_eq!(upstream.counters.broken.get(), n_failed.get());
        assert!(arrivals.borrow().values().all(|count| *count == 1));
    });
}

#[test]
fn a_new_connection_that_breaks_is_not_tried_again() {
    run(async {
        let n_heads = Rc::new(Cell::new(0));
        let counted = Rc::clone(&n_heads);
        let server = BytesServer::start(move |mut connection| {
            let n_heads = Rc::clone(&counted);
            async move {
                connection.head().await;
                n_heads.set(n_heads.get() + 1);
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let error = pool().send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::Broken { .. }), "{error:?}");
        assert_eq!(n_heads.get(), 1);
    });
}

#[test]
fn a_post_that_breaks_on_a_kept_connection_counts_as_a_failure_of_the_target() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection.send(OK).await;
            connection.head().await;
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.passive_health.failures = 1);
        let pool = pool();
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
        let post = request(Method::POST, "/");
        let error = pool.send(&upstream, post, None).await.unwrap_err();
        assert_eq!(error.was_reached(), Reached::Maybe);
        assert_eq!(upstream.counters.broken.get(), 1);
        assert!(!upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn half_a_head_is_not_tried_again() {
    run(async {
        let n_heads = Rc::new(Cell::new(0));
        let counted = Rc::clone(&n_heads);
        let server = BytesServer::start(move |mut connection| {
            let n_heads = Rc::clone(&counted);
            async move {
                connection.head().await;
                connection.send(OK).await;
                connection.head().await;
                n_heads.set(n_heads.get() + 1);
                connection.send("HTTP/1.1 200 O").await;
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
        let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
        assert_eq!(error.was_reached(), Reached::Yes);
        assert_eq!(n_heads.get(), 1);
    });
}
