//! HTTP/1: reuse, bodies, timeouts, the connection limit, broken-off exchanges, upgrades.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{spawn_local, yield_now};
use tokio::time::timeout;

use super::super::{ForwardError, Reached, UpstreamBodyError};
use super::bytes_server::BytesServer;
use super::client_body::{client_body, whole_body};
use super::{OK, get, one_target, pool, read, request, run, upstream};
use crate::body::BodyFault;

/// Short for a test, long for a busy machine.
const BRIEF: Duration = Duration::from_millis(200);

#[test]
fn a_connection_serves_one_request_after_the_other() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            while let Some(head) = connection.head().await {
                assert!(head.starts_with("GET /path?query HTTP/1.1\r\nhost: upstream.test\r\n"));
                connection.send(OK).await;
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        for _ in 0..10 {
            let response = pool
                .send(&upstream, get("/path?query"), None)
                .await
                .unwrap();
            assert_eq!(read(response).await, "ok");
        }
        assert_eq!(upstream.counters.connections.get(), 1);
        assert_eq!(upstream.counters.requests.get(), 10);
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

#[test]
fn chunked_bodies_and_empty_ones_give_the_connection_back() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            while let Some(head) = connection.head().await {
                let answer = match head.split(' ').nth(1).unwrap() {
                    "/chunked" => {
                        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
                    }
                    "/empty" => "HTTP/1.1 204 No Content\r\n\r\n",
                    "/head" => "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n",
                    _ => panic!("{head}"),
                };
                connection.send(answer).await;
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        for _ in 0..3 {
            let sent = pool.send(&upstream, get("/chunked"), None).await;
            assert_eq!(read(sent.unwrap()).await, "ok");
            let sent = pool.send(&upstream, get("/empty"), None).await;
            // Nothing is left to read, so nothing need be read.
            drop(sent.unwrap());
            let head = request(Method::HEAD, "/head");
            drop(pool.send(&upstream, head, None).await.unwrap());
        }
        assert_eq!(upstream.counters.connections.get(), 1);
    });
}

#[test]
fn a_body_reaches_the_upstream_whole_while_it_is_still_being_written() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            while let Some(head) = connection.head().await {
                assert!(head.contains("content-length: 300000\r\n"), "{head}");
                let body = connection.body(300_000).await.unwrap();
                assert!(body.iter().all(|byte| *byte == b'x'));
                connection.send(OK).await;
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        for _ in 0..2 {
            let (body, mut client) = client_body(300_000).await;
            let mut post = request(Method::POST, "/").map(|_| body);
            post.headers_mut()
                .insert("content-length", "300000".parse().unwrap());
            spawn_local(async move {
                for _ in 0..3 {
                    client.write_all(&vec![b'x'; 100_000]).await.unwrap();
                    yield_now().await;
                }
                client.read_u8().await
            });
            let response = pool.send(&upstream, post, None).await.unwrap();
            assert_eq!(read(response).await, "ok");
        }
        assert_eq!(upstream.counters.connections.get(), 1);
    });
}

#[test]
fn a_target_that_gives_up_on_a_late_body_stays_healthy() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection.body(4).await;
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.passive_health.failures = 1);
        let (body, mut client) = client_body(100).await;
        client.write_all(b"half").await.unwrap();
        let mut post = request(Method::POST, "/").map(|_| body);
        post.headers_mut()
            .insert("content-length", "100".parse().unwrap());
        let error = pool().send(&upstream, post, None).await.unwrap_err();
        assert!(matches!(error, ForwardError::Broken { .. }), "{error:?}");
        assert_eq!(upstream.counters.broken.get(), 1);
        assert!(upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn a_body_that_fails_after_the_head_of_the_response_is_not_the_fault_of_the_upstream() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection
                .send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
                .await;
            while connection.body(1).await.is_some() {}
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.passive_health.failures = 1);
        let (body, client) = client_body(100).await;
        let mut post = request(Method::POST, "/").map(|_| body);
        post.headers_mut()
            .insert("content-length", "100".parse().unwrap());
        let response = pool().send(&upstream, post, None).await.unwrap();
        drop(client);
        response.into_body().collect().await.unwrap_err();
        assert_eq!(upstream.counters.body_broken.get(), 0);
        assert!(upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn a_client_that_sends_no_body_after_the_head_of_the_response_leaves_the_target_healthy() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
            connection.send(half).await;
            while connection.body(1).await.is_some() {}
        })
        .await;
        let upstream = upstream(&[&server.url], |config| {
            config.passive_health.failures = 1;
            config.timeouts.idle = BRIEF;
        });
        let (body, _client) = client_body(100).await;
        let mut post = request(Method::POST, "/").map(|_| body);
        post.headers_mut()
            .insert("content-length", "100".parse().unwrap());
        let response = pool().send(&upstream, post, None).await.unwrap();
        let error = response.into_body().collect().await.unwrap_err();
        assert!(matches!(error, UpstreamBodyError::TimedOut), "{error:?}");
        assert_eq!(upstream.counters.body_broken.get(), 1);
        assert!(upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn a_client_that_goes_away_in_its_body_is_not_the_fault_of_the_upstream() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            while connection.body(1).await.is_some() {}
        })
        .await;
        let upstream = one_target(&server.url);
        let (body, mut client) = client_body(100).await;
        client.write_all(b"half").await.unwrap();
        let post = request(Method::POST, "/").map(|_| body);
        let pool = pool();
        let sent = pool.send(&upstream, post, None);
        let gone = async {
            // The upstream has the first half before the client goes.
            yield_now().await;
            drop(client);
        };
        let (sent, ()) = tokio::join!(sent, gone);
        let error = sent.unwrap_err();
        assert!(
            matches!(
                error,
                ForwardError::RequestBodyFailed(BodyFault::Incomplete)
            ),
            "{error:?}"
        );
        assert_eq!(upstream.counters.broken.get(), 0);
    });
}

#[test]
fn a_response_that_does_not_come_times_out() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            while connection.body(1).await.is_some() {}
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.timeouts.first_byte = BRIEF);
        let pool = pool();
        let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::ResponseTimedOut), "{error:?}");
        assert_eq!(error.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(error.was_reached(), Reached::Maybe);
        let (body, _client) = whole_body(b"hello").await;
        let post = request(Method::POST, "/").map(|_| body);
        let error = pool.send(&upstream, post, None).await.unwrap_err();
        assert!(matches!(error, ForwardError::ResponseTimedOut), "{error:?}");
    });
}

#[test]
fn the_first_byte_is_waited_for_from_the_end_of_the_request() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection.body(10).await;
            connection.send(OK).await;
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.timeouts.first_byte = BRIEF);
        let (body, mut client) = client_body(10).await;
        let post = request(Method::POST, "/").map(|_| body);
        let pool = pool();
        let slow_client = async {
            // Much longer in all than the timeout.
            let mut ticks = tokio::time::interval(BRIEF / 4);
            for _ in 0..10 {
                ticks.tick().await;
                client.write_all(b"x").await.unwrap();
            }
            client
        };
        let (sent, _client) = tokio::join!(pool.send(&upstream, post, None), slow_client);
        assert_eq!(read(sent.unwrap()).await, "ok");
    });
}

#[test]
fn a_body_that_stalls_times_out_and_its_connection_closes() {
    run(async {
        let (closed, mut closes) = mpsc::unbounded_channel();
        let server = BytesServer::start(move |mut connection| {
            let closed = closed.clone();
            async move {
                connection.head().await;
                let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
                connection.send(half).await;
                assert!(connection.head().await.is_none());
                closed.send(()).unwrap();
            }
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.timeouts.idle = BRIEF);
        let response = pool().send(&upstream, get("/"), None).await.unwrap();
        let error = response.into_body().collect().await.unwrap_err();
        assert!(matches!(error, UpstreamBodyError::TimedOut), "{error:?}");
        closes.recv().await.unwrap();
        assert_eq!(upstream.counters.body_broken.get(), 1);
    });
}

#[test]
fn an_unused_connection_is_closed_after_the_idle_timeout() {
    run(async {
        let (closed, mut closes) = mpsc::unbounded_channel();
        let server = BytesServer::start(move |mut connection| {
            let closed = closed.clone();
            async move {
                while connection.head().await.is_some() {
                    connection.send(OK).await;
                }
                closed.send(()).unwrap();
            }
        })
        .await;
        let upstream = upstream(&[&server.url], |config| config.idle_timeout = BRIEF);
        let pool = pool();
        for n_connections in 1..=2 {
            let response = pool.send(&upstream, get("/"), None).await.unwrap();
            read(response).await;
            closes.recv().await.unwrap();
            assert_eq!(upstream.counters.connections.get(), n_connections);
        }
    });
}

#[test]
fn a_connection_that_the_target_closes_is_closed_within_seconds() {
    run(async {
        let (closed, mut closes) = mpsc::unbounded_channel();
        let is_kept = Rc::new(Notify::new());
        let close = Rc::clone(&is_kept);
        let server = BytesServer::start(move |mut connection| {
            let (closed, close) = (closed.clone(), Rc::clone(&close));
            async move {
                connection.head().await;
                connection.send(OK).await;
                close.notified().await;
                connection.stream.shutdown().await.unwrap();
                assert!(connection.head().await.is_none());
                closed.send(()).unwrap();
            }
        })
        .await;
        let upstream = upstream(&[&server.url], |config| {
            config.idle_timeout = Duration::from_mins(10);
        });
        let pool = pool();
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
        is_kept.notify_one();
        let closed = timeout(Duration::from_secs(10), closes.recv()).await;
        assert!(closed.is_ok());
    });
}

#[test]
fn connections_close_with_their_upstream() {
    run(async {
        let closed = Rc::new(Notify::new());
        let noted = Rc::clone(&closed);
        let server = BytesServer::start(move |mut connection| {
            let closed = Rc::clone(&noted);
            async move {
                while connection.head().await.is_some() {
                    connection.send(OK).await;
                }
                closed.notify_one();
            }
        })
        .await;
        let pool = pool();
        let old = one_target(&server.url);
        read(pool.send(&old, get("/"), None).await.unwrap()).await;
        drop(old);
        // The next generation of a reload.
        let new = one_target(&server.url);
        read(pool.send(&new, get("/"), None).await.unwrap()).await;
        closed.notified().await;
    });
}

/// A server that answers each request when it is allowed to, and its log of paths.
async fn gated_server(
    gate: &Rc<Semaphore>,
    paths: &Rc<RefCell<Vec<String>>>,
    closed: &Rc<Notify>,
) -> BytesServer {
    let (gate, paths, closed) = (Rc::clone(gate), Rc::clone(paths), Rc::clone(closed));
    BytesServer::start(move |mut connection| {
        let (gate, paths, closed) = (Rc::clone(&gate), Rc::clone(&paths), Rc::clone(&closed));
        async move {
            while let Some(head) = connection.head().await {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                paths.borrow_mut().push(path);
                tokio::select! {
                    permit = gate.acquire() => permit.unwrap().forget(),
                    rest = connection.head() => {
                        assert!(rest.is_none());
                        break;
                    }
                }
                connection.send(OK).await;
            }
            closed.notify_one();
        }
    })
    .await
}

#[test]
fn requests_beyond_the_connection_limit_wait_in_order() {
    run(async {
        let (gate, paths) = (Rc::new(Semaphore::new(0)), Rc::default());
        let server = gated_server(&gate, &paths, &Rc::default()).await;
        let upstream = upstream(&[&server.url], |config| config.max_connections = 1);
        let pool = Rc::new(pool());
        let mut waiting = Vec::new();
        for path in ["/1", "/2", "/3", "/4"] {
            let (pool, upstream) = (Rc::clone(&pool), upstream.clone());
            waiting.push(spawn_local(async move {
                read(pool.send(&upstream, get(path), None).await.unwrap()).await
            }));
            yield_now().await;
        }
        // One that waits and goes away leaves nothing behind.
        waiting.remove(2).abort();
        gate.add_permits(3);
        for task in waiting {
            assert_eq!(task.await.unwrap(), "ok");
        }
        assert_eq!(*paths.borrow(), ["/1", "/2", "/4"]);
        assert_eq!(upstream.counters.connections.get(), 1);
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

#[test]
fn a_request_that_gets_no_connection_in_time_is_told_so() {
    run(async {
        let (gate, paths) = (Rc::new(Semaphore::new(0)), Rc::default());
        let server = gated_server(&gate, &paths, &Rc::default()).await;
        let upstream = upstream(&[&server.url], |config| {
            config.max_connections = 1;
            config.timeouts.connect = BRIEF;
        });
        let pool = pool();
        let first = pool.send(&upstream, get("/1"), None);
        let second = async {
            let error = pool.send(&upstream, get("/2"), None).await.unwrap_err();
            assert!(matches!(error, ForwardError::PoolExhausted), "{error:?}");
            assert_eq!(error.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(error.was_reached(), Reached::No);
            gate.add_permits(1);
        };
        let (first, ()) = tokio::join!(first, second);
        read(first.unwrap()).await;
        assert_eq!(*paths.borrow(), ["/1"]);
    });
}

#[test]
fn a_request_that_is_dropped_closes_its_connection() {
    run(async {
        let (gate, paths, closed) = (Rc::new(Semaphore::new(0)), Rc::default(), Rc::default());
        let server = gated_server(&gate, &paths, &closed).await;
        let upstream = upstream(&[&server.url], |config| config.max_connections = 1);
        let pool = pool();
        let seen = async {
            while paths.borrow().is_empty() {
                yield_now().await;
            }
        };
        tokio::select! {
            _ = pool.send(&upstream, get("/1"), None) => panic!("it has no answer"),
            () = seen => {}
        }
        closed.notified().await;
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
        gate.add_permits(1);
        read(pool.send(&upstream, get("/2"), None).await.unwrap()).await;
    });
}

#[test]
fn a_response_that_is_dropped_closes_its_connection() {
    run(async {
        let closed = Rc::new(Notify::new());
        let noted = Rc::clone(&closed);
        let server = BytesServer::start(move |mut connection| {
            let closed = Rc::clone(&noted);
            async move {
                connection.head().await;
                let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
                connection.send(half).await;
                assert!(connection.head().await.is_none());
                closed.notify_one();
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        drop(pool.send(&upstream, get("/"), None).await.unwrap());
        closed.notified().await;
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

/// An upstream that answers before it has the body does not keep connections for ever (hyper#4176).
#[test]
fn early_answers_leave_no_connections_behind() {
    const N_REQUESTS: usize = 10_000;
    run(async {
        let (n_open, n_most) = (Rc::new(Cell::new(0_usize)), Rc::new(Cell::new(0_usize)));
        let (open, most) = (Rc::clone(&n_open), Rc::clone(&n_most));
        let server = BytesServer::start(move |mut connection| {
            let (open, most) = (Rc::clone(&open), Rc::clone(&most));
            async move {
                open.set(open.get() + 1);
                most.set(most.get().max(open.get()));
                while connection.head().await.is_some() {
                    connection
                        .send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno")
                        .await;
                }
                open.set(open.get() - 1);
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        for number in 0..N_REQUESTS {
            let (body, _client) = client_body(1_000_000).await;
            let post = request(Method::POST, "/").map(|_| body);
            let response = pool.send(&upstream, post, None).await;
            let response = response.unwrap_or_else(|error| panic!("{number}: {error:?}"));
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
            assert_eq!(read(response).await, "no");
        }
        while n_open.get() > 0 {
            yield_now().await;
        }
        assert!(n_most.get() < 10, "{} connections at once", n_most.get());
    });
}

#[test]
fn an_upgrade_is_a_tunnel_that_holds_its_place() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            let head = connection.head().await.unwrap();
            if !head.contains("upgrade: echo") {
                connection.send(OK).await;
                return;
            }
            assert!(head.contains("connection: upgrade\r\n"), "{head}");
            let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nfirst";
            connection.send(switch).await;
            while let Some(byte) = connection.body(1).await {
                connection.send(byte).await;
            }
        })
        .await;
        let upstream = upstream(&[&server.url], |config| {
            config.max_connections = 1;
            config.timeouts.connect = BRIEF;
        });
        let pool = pool();
        let mut upgrade = get("/socket");
        let headers = upgrade.headers_mut();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "echo".parse().unwrap());
        let mut response = pool.send(&upstream, upgrade, None).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let tunnel = hyper::upgrade::on(&mut response).await.unwrap();
        let mut tunnel = TokioIo::new(tunnel);
        let mut bytes = [0; 5];
        tunnel.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"first");
        tunnel.write_all(b"hello").await.unwrap();
        tunnel.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"hello");
        let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::PoolExhausted), "{error:?}");
        assert_eq!(upstream.gauges().targets[0].in_progress, 1);
        drop((tunnel, response));
        read(pool.send(&upstream, get("/"), None).await.unwrap()).await;
    });
}
