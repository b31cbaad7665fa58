//! Connections that take long to open, and requests that wait for them.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server;
use http::Response;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use super::super::addresses::{ResolvedAddresses, Resolver};
use super::super::{ForwardError, SharedUpstream};
use super::bytes_server::{BytesConnection, BytesServer};
use super::{OK, get, one_target, pool, read, run, upstream};
use crate::config::{UpstreamConfig, UpstreamProtocol};

const SECOND: Duration = Duration::from_secs(1);

/// An HTTP/2 server whose connections take a time of their own to open.
async fn slow_server(opening: impl Fn(usize) -> Duration + 'static) -> BytesServer {
    BytesServer::start(move |connection| {
        let opening = opening(connection.number);
        async move {
            sleep(opening).await;
            serve_http2(connection).await;
        }
    })
    .await
}

async fn serve_http2(connection: BytesConnection) {
    let Ok(mut connection) = server::handshake(connection.stream).await else {
        return;
    };
    while let Some(Ok((_, mut response))) = connection.accept().await {
        let mut stream = response.send_response(Response::new(()), false).unwrap();
        stream.send_data(Bytes::from_static(b"ok"), true).unwrap();
    }
}

fn http2(server: &BytesServer) -> Arc<SharedUpstream> {
    upstream(&[&server.url], |config| {
        config.protocol = UpstreamProtocol::Http2;
        config.timeouts.connect = 3 * SECOND;
    })
}

#[test]
fn a_connect_after_a_stalled_one_has_the_whole_timeout() {
    run(async {
        tokio::time::pause();
        // The first never opens; the second takes longer than the second request has left of its own time.
        let server = slow_server(|number| if number == 0 { 100 * SECOND } else { SECOND }).await;
        let upstream = http2(&server);
        let pool = pool();
        let first = pool.send(&upstream, get("/"), None);
        let second = async {
            sleep(SECOND / 2).await;
            pool.send(&upstream, get("/"), None).await
        };
        let (first, second) = tokio::join!(first, second);
        let error = first.unwrap_err();
        assert!(matches!(error, ForwardError::ConnectTimedOut), "{error:?}");
        assert_eq!(read(second.unwrap()).await, "ok");
        assert_eq!(upstream.counters.connect_timed_out.get(), 1);
    });
}

#[test]
fn waiting_behind_a_stalled_connect_is_not_a_failure_of_the_target() {
    run(async {
        tokio::time::pause();
        let server = slow_server(|_| 100 * SECOND).await;
        let upstream = http2(&server);
        let pool = Rc::new(pool());
        let mut sends = JoinSet::new();
        for _ in 0..10 {
            let (pool, upstream) = (Rc::clone(&pool), Arc::clone(&upstream));
            sends.spawn_local(async move { pool.send(&upstream, get("/"), None).await });
            sleep(SECOND / 10).await;
        }
        while let Some(sent) = sends.join_next().await {
            sent.unwrap().unwrap_err();
        }
        // The first opened one, the second opened another; the rest only waited for them.
        assert_eq!(upstream.counters.connect_timed_out.get(), 2);
        assert_eq!(upstream.counters.pool_exhausted.get(), 8);
        assert!(upstream.gauges().targets[0].is_up);
    });
}

#[test]
fn a_connection_outlives_the_request_that_opened_it() {
    run(async {
        tokio::time::pause();
        let server = slow_server(|_| SECOND).await;
        let upstream = http2(&server);
        let pool = pool();
        // No client waits long enough, and yet the connection opens.
        for _ in 0..2 {
            let sent = timeout(SECOND * 2 / 5, pool.send(&upstream, get("/"), None)).await;
            assert!(sent.is_err());
        }
        let sent = timeout(SECOND * 2 / 5, pool.send(&upstream, get("/"), None)).await;
        assert_eq!(read(sent.unwrap().unwrap()).await, "ok");
        assert_eq!(upstream.counters.connections.get(), 1);
    });
}

#[test]
fn an_http1_connection_is_kept_if_its_request_left_meanwhile() {
    run(async {
        let n_connections = Rc::new(Cell::new(0));
        let counted = Rc::clone(&n_connections);
        let server = BytesServer::start(move |mut connection| {
            counted.set(counted.get() + 1);
            async move {
                while connection.head().await.is_some() {
                    connection.send(OK).await;
                }
            }
        })
        .await;
        let upstream = one_target(&server.url);
        let pool = pool();
        tokio::select! {
            biased;
            _ = pool.send(&upstream, get("/"), None) => panic!("no socket connects at once"),
            () = std::future::ready(()) => {}
        }
        let opened = async {
            while upstream.counters.connections.get() == 0 {
                yield_now().await;
            }
            yield_now().await;
        };
        timeout(60 * SECOND, opened).await.unwrap();
        let response = pool.send(&upstream, get("/"), None).await.unwrap();
        assert_eq!(read(response).await, "ok");
        assert_eq!(n_connections.get(), 1);
        assert_eq!(upstream.gauges().targets[0].in_progress, 0);
    });
}

/// The settings of a server, and a `GOAWAY` without an error.
const SETTINGS_AND_GO_AWAY: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[test]
fn a_target_that_closes_new_connections_is_not_opened_in_a_loop() {
    run(async {
        let n_connections = Rc::new(Cell::new(0));
        let counted = Rc::clone(&n_connections);
        let server = BytesServer::start(move |mut connection| {
            counted.set(counted.get() + 1);
            async move {
                connection.send(SETTINGS_AND_GO_AWAY).await;
                connection.head().await;
            }
        })
        .await;
        let upstream = upstream(&[&server.url], |config| {
            config.protocol = UpstreamProtocol::Http2;
            config.passive_health.failures = 50;
        });
        let pool = pool();
        // Many, because the end of a connection is noticed now while it is opened, now when it is to be used.
        for n_requests in 1..=50 {
            assert!(upstream.gauges().targets[0].is_up);
            let error = pool.send(&upstream, get("/"), None).await.unwrap_err();
            assert!(matches!(error, ForwardError::ConnectFailed(_)), "{error:?}");
            assert_eq!(n_connections.get(), n_requests);
        }
        assert!(!upstream.gauges().targets[0].is_up);
    });
}

/// A resolver that panics at its first look-up.
#[derive(Debug, Default)]
struct PanickingResolver(AtomicBool);

impl Resolver for PanickingResolver {
    fn resolve(&self, _: &str, _: u16) -> ResolvedAddresses {
        assert!(self.0.swap(true, Ordering::Relaxed), "the first look-up");
        Box::pin(async { Err(io::Error::other("no answer")) })
    }
}

#[test]
fn an_opening_that_panics_frees_the_line_and_its_place() {
    run(async {
        tokio::time::pause();
        let mut config = UpstreamConfig::new("test", vec!["http://upstream.test".parse().unwrap()]);
        config.protocol = UpstreamProtocol::Http2;
        config.max_connections = 1;
        config.timeouts.connect = 3 * SECOND;
        let resolver = Arc::<PanickingResolver>::default();
        let upstream = SharedUpstream::with_resolver(Arc::new(config), None, resolver).unwrap();
        let pool = pool();
        for _ in 0..2 {
            let sent = timeout(60 * SECOND, pool.send(&upstream, get("/"), None)).await;
            let error = sent.unwrap().unwrap_err();
            assert!(matches!(error, ForwardError::ConnectFailed(_)), "{error:?}");
        }
    });
}
