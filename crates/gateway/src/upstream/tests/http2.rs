//! HTTP/2: shared connections, saturation, streams that are refused, reset or left unread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use h2::{Reason, server};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{JoinSet, spawn_local, yield_now};
use tokio::time::Instant;

use super::super::{ForwardError, Reached, SharedUpstream, UpstreamPool};
use super::bytes_server::{BytesConnection, BytesServer};
use super::client_body::{client_body, whole_body, whole_body_on_demand};
use super::{get, pool, read, request, run, upstream};
use crate::body::CONTINUE_TIMEOUT;
use crate::config::UpstreamProtocol;

/// A request as an HTTP/2 server receives it.
type ServedRequest = (Request<h2::RecvStream>, server::SendResponse<Bytes>);

/// An HTTP/2 server whose requests a function serves.
async fn http2_server<S, F>(max_streams: Option<u32>, serve: S) -> BytesServer
where
    S: Fn(usize, ServedRequest) -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let serve = Rc::new(serve);
    BytesServer::start(move |connection| {
        let serve = Rc::clone(&serve);
        async move {
            let mut builder = server::Builder::new();
            if let Some(max_streams) = max_streams {
                builder.max_concurrent_streams(max_streams);
            }
            let number = connection.number;
            let Ok(mut connection) = builder.handshake(connection.stream).await else {
                return;
            };
            while let Some(Ok(request)) = connection.accept().await {
                spawn_local(serve(number, request));
            }
        }
    })
    .await
}

fn http2(server: &BytesServer, max_streams: usize) -> Arc<SharedUpstream> {
    upstream(&[&server.url], |config| {
        config.protocol = UpstreamProtocol::Http2;
        config.max_streams = max_streams;
    })
}

fn answer(response: &mut server::SendResponse<Bytes>, body: &'static [u8]) {
    let mut stream = response.send_response(Response::new(()), false).unwrap();
    stream.send_data(Bytes::from_static(body), true).unwrap();
}

async fn get_all(pool: &Rc<UpstreamPool>, upstream: &Arc<SharedUpstream>, n_requests: usize) {
    let mut requests = JoinSet::new();
    for _ in 0..n_requests {
        let (pool, upstream) = (Rc::clone(pool), Arc::clone(upstream));
        requests.spawn_local(async move {
            let response = pool.send(&upstream, get("/"), None).await.unwrap();
            assert_eq!(read(response).await, "ok");
        });
    }
    while let Some(done) = requests.join_next().await {
        done.unwrap();
    }
}

/// hyper reports no 100 of an HTTP/2 server, so the body would wait for the whole timeout.
#[test]
fn a_body_is_not_held_back_until_the_target_asks_for_it() {
    run(async {
        let server = http2_server(None, |_, (request, mut response)| async move {
            let (head, mut body) = request.into_parts();
            assert!(!head.headers.contains_key("expect"));
            while let Some(piece) = body.data().await {
                piece.unwrap();
            }
            answer(&mut response, b"ok");
        })
        .await;
        let (upstream, pool) = (http2(&server, 100), pool());
        let opened = pool.send(&upstream, get("/"), None).await.unwrap();
        assert_eq!(read(opened).await, "ok");
        let (body, _client) = whole_body_on_demand(b"hello").await;
        let mut post = request(Method::POST, "/").map(|_| body);
        let expect = HeaderValue::from_static("100-continue");
        post.headers_mut().insert("expect", expect);
        let began = Instant::now();
        let answered = pool.send(&upstream, post, None).await.unwrap();
        assert_eq!(read(answered).await, "ok");
        assert!(began.elapsed() < CONTINUE_TIMEOUT);
    });
}

#[test]
fn a_request_takes_the_form_of_http2() {
    run(async {
        let server = http2_server(None, |_, (request, mut response)| async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(head.uri, "http://upstream.test/path?query");
            for forbidden in ["host", "connection", "keep-alive", "transfer-encoding"] {
                assert!(!head.headers.contains_key(forbidden), "{forbidden}");
            }
            assert_eq!(head.headers["te"], "trailers");
            let mut received = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                body.flow_control().release_capacity(piece.len()).unwrap();
                received.extend_from_slice(&piece);
            }
            assert_eq!(received, b"hello");
            let mut stream = response.send_response(Response::new(()), false).unwrap();
            stream.send_data("ok".into(), false).unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            stream.send_trailers(trailers).unwrap();
        })
        .await;
        let upstream = http2(&server, 100);
        let (body, _client) = whole_body(b"hello").await;
        let mut post = request(Method::POST, "/path?query").map(|_| body);
        for (name, value) in [
            ("connection", "keep-alive"),
            ("keep-alive", "1"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
        ] {
            post.headers_mut().insert(name, value.parse().unwrap());
        }
        let response = pool().send(&upstream, post, None).await.unwrap();
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(body.to_bytes(), "ok");
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

/// A server that answers when as many requests are in progress as it waits for.
async fn crowded_server(max_streams: Option<u32>, crowd: usize) -> (BytesServer, Rc<Cell<usize>>) {
    let (n_waiting, all_there) = (Rc::new(Cell::new(0)), Rc::new(Semaphore::new(0)));
    let most_streams = Rc::new(Cell::new(0));
    let by_connection = Rc::new(RefCell::new([0_usize; 100]));
    let most = Rc::clone(&most_streams);
    let server = http2_server(max_streams, move |number, (_, mut response)| {
        let (n_waiting, all_there) = (Rc::clone(&n_waiting), Rc::clone(&all_there));
        let (by_connection, most) = (Rc::clone(&by_connection), Rc::clone(&most));
        async move {
            by_connection.borrow_mut()[number] += 1;
            most.set(most.get().max(by_connection.borrow()[number]));
            n_waiting.set(n_waiting.get() + 1);
            if n_waiting.get() == crowd {
                all_there.add_permits(crowd);
            }
            all_there.acquire().await.unwrap().forget();
            by_connection.borrow_mut()[number] -= 1;
            answer(&mut response, b"ok");
        }
    })
    .await;
    (server, most_streams)
}

#[test]
fn requests_share_a_connection_until_it_is_full() {
    run(async {
        let (server, most_streams) = crowded_server(None, 25).await;
        let upstream = http2(&server, 10);
        get_all(&Rc::new(pool()), &upstream, 25).await;
        assert_eq!(upstream.counters.connections.get(), 3);
        assert_eq!(most_streams.get(), 10);
    });
}

#[test]
fn the_server_may_allow_fewer_streams() {
    run(async {
        let (server, most_streams) = crowded_server(Some(5), 25).await;
        let upstream = http2(&server, 100);
        get_all(&Rc::new(pool()), &upstream, 25).await;
        assert_eq!(upstream.counters.connections.get(), 5);
        assert_eq!(most_streams.get(), 5);
        assert_eq!(upstream.counters.retries.get(), 0);
    });
}

#[test]
fn requests_beyond_all_streams_wait_for_one() {
    run(async {
        let (server, most_streams) = crowded_server(None, 4).await;
        let upstream = upstream(&[&server.url], |config| {
            config.protocol = UpstreamProtocol::Http2;
            config.max_streams = 2;
            config.max_connections = 2;
        });
        let pool = Rc::new(pool());
        // Four at a time: the crowd of the first four opens the gate for all.
        let mut requests = JoinSet::new();
        for _ in 0..4 {
            let (pool, upstream) = (Rc::clone(&pool), upstream.clone());
            requests.spawn_local(async move {
                read(pool.send(&upstream, get("/"), None).await.unwrap()).await
            });
        }
        while upstream.gauges().targets[0].in_progress < 4 {
            yield_now().await;
        }
        // The fifth waits, and one that goes away while it waits leaves nothing behind.
        let gone = {
            let (pool, upstream) = (Rc::clone(&pool), upstream.clone());
            spawn_local(async move { pool.send(&upstream, get("/"), None).await.map(drop) })
        };
        yield_now().await;
        gone.abort();
        while let Some(done) = requests.join_next().await {
            assert_eq!(done.unwrap(), "ok");
        }
        assert_eq!(upstream.counters.connections.get(), 2);
        assert_eq!(most_streams.get(), 2);
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

#[test]
fn one_client_that_reads_nothing_does_not_hold_up_the_others() {
    const N_STREAMS: usize = 64;
    const BODY: &[u8] = &[b'x'; 1024 * 1024];
    run(async {
        let server = http2_server(None, |_, (_, mut response)| async move {
            let mut stream = response.send_response(Response::new(()), false).unwrap();
            let mut rest = Bytes::from_static(BODY);
            while !rest.is_empty() {
                stream.reserve_capacity(rest.len());
                let capacity = std::future::poll_fn(|context| stream.poll_capacity(context));
                let Some(Ok(capacity)) = capacity.await else {
                    return;
                };
                let piece = rest.split_to(capacity.min(rest.len()));
                stream.send_data(piece, rest.is_empty()).unwrap();
            }
        })
        .await;
        let upstream = http2(&server, N_STREAMS);
        let pool = pool();
        let unread = pool.send(&upstream, get("/"), None).await.unwrap();
        let mut responses = Vec::new();
        for _ in 1..N_STREAMS {
            responses.push(pool.send(&upstream, get("/"), None).await.unwrap());
        }
        assert_eq!(upstream.counters.connections.get(), 1);
        for response in responses {
            assert_eq!(read(response).await.len(), BODY.len());
        }
        assert_eq!(read(unread).await.len(), BODY.len());
    });
}

#[test]
fn a_dropped_response_and_a_dropped_request_reset_their_streams() {
    run(async {
        let (seen, resets) = (Rc::new(Notify::new()), Rc::new(RefCell::new(Vec::new())));
        let (is_seen, noted) = (Rc::clone(&seen), Rc::clone(&resets));
        let server = http2_server(None, move |_, (request, mut response)| {
            let (is_seen, noted) = (Rc::clone(&is_seen), Rc::clone(&noted));
            async move {
                is_seen.notify_one();
                let path = request.uri().path().to_owned();
                let mut stream = (path == "/answered")
                    .then(|| response.send_response(Response::new(()), false).unwrap());
                let reset = std::future::poll_fn(|context| match &mut stream {
                    Some(stream) => stream.poll_reset(context),
                    None => response.poll_reset(context),
                });
                let reset = reset.await.unwrap();
                noted.borrow_mut().push((path, reset));
                is_seen.notify_one();
            }
        })
        .await;
        let upstream = http2(&server, 100);
        let pool = pool();
        drop(pool.send(&upstream, get("/answered"), None).await.unwrap());
        seen.notified().await;
        while resets.borrow().is_empty() {
            seen.notified().await;
        }
        tokio::select! {
            _ = pool.send(&upstream, get("/silent"), None) => panic!("it has no answer"),
            () = seen.notified() => {}
        }
        while resets.borrow().len() < 2 {
            seen.notified().await;
        }
        let paths: Vec<String> = resets
            .borrow()
            .iter()
            .map(|(path, _)| path.clone())
            .collect();
        assert_eq!(paths, ["/answered", "/silent"]);
        assert_eq!(upstream.counters.connections.get(), 1);
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

#[test]
fn an_early_answer_ends_the_body() {
    run(async {
        let ended = Rc::new(Notify::new());
        let has_ended = Rc::clone(&ended);
        let server = http2_server(None, move |_, (request, mut response)| {
            let has_ended = Rc::clone(&has_ended);
            async move {
                let mut head = Response::new(());
                *head.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                let mut stream = response.send_response(head, false).unwrap();
                stream.send_data("no".into(), true).unwrap();
                let mut body = request.into_body();
                while let Some(Ok(piece)) = body.data().await {
                    body.flow_control().release_capacity(piece.len()).unwrap();
                }
                has_ended.notify_one();
            }
        })
        .await;
        let upstream = http2(&server, 100);
        // The client neither sends the rest nor goes away.
        let (body, _client) = client_body(1_000_000).await;
        let post = request(Method::POST, "/").map(|_| body);
        let response = pool().send(&upstream, post, None).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(read(response).await, "no");
        ended.notified().await;
    });
}

/// A server that refuses the first streams of each connection.
async fn refusing_server(reason: Reason, n_refused: usize) -> (BytesServer, Rc<Cell<usize>>) {
    let n_requests = Rc::new(Cell::new(0));
    let counted = Rc::clone(&n_requests);
    let server = http2_server(None, move |_, (request, mut response)| {
        let number = counted.get();
        counted.set(number + 1);
        async move {
            if number < n_refused {
                response.send_reset(reason);
                return;
            }
            let mut body = request.into_body();
            let mut n_bytes = 0;
            while let Some(Ok(piece)) = body.data().await {
                n_bytes += piece.len();
            }
            assert!(n_bytes == 0 || n_bytes == 5, "{n_bytes}");
            answer(&mut response, b"ok");
        }
    })
    .await;
    (server, n_requests)
}

#[test]
fn a_refused_stream_is_sent_again_once_whatever_the_method() {
    run(async {
        for method in [Method::GET, Method::POST] {
            let (server, n_requests) = refusing_server(Reason::REFUSED_STREAM, 1).await;
            let upstream = http2(&server, 100);
            let (body, _client) = whole_body(b"hello").await;
            let sent = request(method, "/").map(|_| body);
            let response = pool().send(&upstream, sent, None).await.unwrap();
            assert_eq!(read(response).await, "ok");
            assert_eq!(n_requests.get(), 2);
            assert_eq!(upstream.counters.connections.get(), 2);
        }
        let (server, n_requests) = refusing_server(Reason::REFUSED_STREAM, 100).await;
        let upstream = http2(&server, 100);
        let error = pool().send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::Refused(_)), "{error:?}");
        assert_eq!(error.was_reached(), Reached::No);
        assert_eq!(n_requests.get(), 2);
    });
}

#[test]
fn a_reset_for_another_reason_is_not_tried_again() {
    run(async {
        for reason in [
            Reason::PROTOCOL_ERROR,
            Reason::ENHANCE_YOUR_CALM,
            Reason::INTERNAL_ERROR,
            Reason::CANCEL,
        ] {
            let (server, n_requests) = refusing_server(reason, 100).await;
            let upstream = http2(&server, 100);
            let error = pool().send(&upstream, get("/"), None).await.unwrap_err();
            assert!(matches!(error, ForwardError::Broken { .. }), "{error:?}");
            assert_eq!(error.was_reached(), Reached::Maybe);
            assert_eq!(n_requests.get(), 1);
        }
    });
}

/// The frames of HTTP/2 that are written here by hand.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum FrameKind {
    Headers = 1,
    Settings = 4,
    GoAway = 7,
}

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind as u8, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn go_away(last_stream: u32, reason: Reason) -> Vec<u8> {
    let payload = [last_stream.to_be_bytes(), u32::from(reason).to_be_bytes()].concat();
    frame(FrameKind::GoAway, 0, 0, &payload)
}

/// The stream of the next request.
async fn next_request(connection: &mut BytesConnection) -> Option<u32> {
    loop {
        let head = connection.body(9).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        connection.body(length as usize).await?;
        if head[3] == FrameKind::Headers as u8 {
            return Some(stream);
        }
    }
}

/// A server that says on its first connection that it goes away and has not looked at the second request. The first gets its answer.
async fn leaving_server(reason: Reason, n_requests: &Rc<Cell<usize>>) -> BytesServer {
    let n_requests = Rc::clone(n_requests);
    BytesServer::start(move |mut connection| {
        let n_requests = Rc::clone(&n_requests);
        async move {
            connection
                .body(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len())
                .await;
            connection.send(frame(FrameKind::Settings, 0, 0, &[])).await;
            // `:status: 200` by its place in the table of RFC 7541, the end of the headers and of the stream.
            let ok = |stream| frame(FrameKind::Headers, 0b101, stream, &[0x88]);
            let mut first = None;
            while let Some(stream) = next_request(&mut connection).await {
                n_requests.set(n_requests.get() + 1);
                match (connection.number, first) {
                    (0, None) => first = Some(stream),
                    (0, Some(first)) => {
                        connection.send(go_away(first, reason)).await;
                        connection.send(ok(first)).await;
                    }
                    _ => connection.send(ok(stream)).await,
                }
            }
        }
    })
    .await
}

#[test]
fn a_request_that_a_leaving_server_has_not_looked_at_is_sent_again() {
    run(async {
        let n_requests = Rc::new(Cell::new(0));
        let server = leaving_server(Reason::NO_ERROR, &n_requests).await;
        let upstream = http2(&server, 100);
        let pool = pool();
        let first = pool.send(&upstream, get("/1"), None);
        let second = async {
            while n_requests.get() == 0 {
                yield_now().await;
            }
            let (body, client) = whole_body(b"hello").await;
            let post = request(Method::POST, "/2").map(|_| body);
            let sent = pool.send(&upstream, post, None).await;
            drop(client);
            sent
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!(first.unwrap().status(), StatusCode::OK);
        assert_eq!(second.unwrap().status(), StatusCode::OK);
        assert_eq!(n_requests.get(), 3);
        // The connection that goes away is not used any more.
        drop(pool.send(&upstream, get("/3"), None).await.unwrap());
        assert_eq!(upstream.counters.connections.get(), 2);
    });
}

#[test]
fn a_server_that_leaves_because_of_us_is_not_tried_again() {
    run(async {
        for reason in [Reason::PROTOCOL_ERROR, Reason::ENHANCE_YOUR_CALM] {
            let n_requests = Rc::new(Cell::new(0));
            let server = leaving_server(reason, &n_requests).await;
            let upstream = http2(&server, 100);
            let pool = pool();
            let first = pool.send(&upstream, get("/1"), None);
            let second = async {
                while n_requests.get() == 0 {
                    yield_now().await;
                }
                pool.send(&upstream, get("/2"), None).await
            };
            let (_, second) = tokio::join!(first, second);
            let error = second.unwrap_err();
            assert!(matches!(error, ForwardError::Broken { .. }), "{error:?}");
            assert_eq!(n_requests.get(), 2);
        }
    });
}

#[test]
fn a_server_that_does_not_speak_http2_is_noticed() {
    run(async {
        let server = BytesServer::start(|mut connection| async move {
            connection.head().await;
            connection
                .send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await;
        })
        .await;
        let upstream = http2(&server, 100);
        let error = pool().send(&upstream, get("/"), None).await.unwrap_err();
        assert!(matches!(error, ForwardError::ConnectFailed(_)), "{error:?}");
    });
}
