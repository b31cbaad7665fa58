//! Fewer connections than threads. Here the threads are pools of one thread.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server;
use http::Response;
use tokio::task::{JoinSet, spawn_local, yield_now};

use super::super::UpstreamPool;
use super::bytes_server::{BytesConnection, BytesServer};
use super::{OK, get, read, run, upstream};
use crate::config::UpstreamProtocol;

const N_THREADS: NonZeroUsize = NonZeroUsize::new(4).unwrap();
const MAX_CONNECTIONS: usize = 2;

/// The connections of a server.
#[derive(Debug, Default)]
struct OpenConnections {
    n_open: Cell<usize>,
    most: Cell<usize>,
}

/// One connection, until dropped.
struct OpenGuard(Rc<OpenConnections>);

// === impl OpenConnections ===

impl OpenConnections {
    async fn begin(self: &Rc<Self>) -> OpenGuard {
        // Connections that were closed before this one was opened may not have been noticed.
        for _ in 0..100 {
            yield_now().await;
        }
        self.n_open.set(self.n_open.get() + 1);
        self.most.set(self.most.get().max(self.n_open.get()));
        OpenGuard(Rc::clone(self))
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.n_open.set(self.0.n_open.get() - 1);
    }
}

async fn serve_http1(mut connection: BytesConnection) {
    while connection.head().await.is_some() {
        yield_now().await;
        connection.send(OK).await;
    }
}

async fn serve_http2(connection: BytesConnection) {
    let Ok(mut connection) = server::handshake(connection.stream).await else {
        return;
    };
    while let Some(Ok((_, mut response))) = connection.accept().await {
        spawn_local(async move {
            yield_now().await;
            let stream = response.send_response(Response::new(()), false);
            stream
                .unwrap()
                .send_data(Bytes::from_static(b"ok"), true)
                .unwrap();
        });
    }
}

async fn check(protocol: UpstreamProtocol) {
    let open = Rc::<OpenConnections>::default();
    let counted = Rc::clone(&open);
    let server = BytesServer::start(move |connection| {
        let open = Rc::clone(&counted);
        async move {
            let _open = open.begin().await;
            match protocol {
                UpstreamProtocol::Http2 => serve_http2(connection).await,
                _ => serve_http1(connection).await,
            }
        }
    })
    .await;
    let upstream = upstream(&[&server.url], |config| {
        config.protocol = protocol;
        config.max_connections = MAX_CONNECTIONS;
        // They stand in line for longer than a target takes to accept.
        config.timeouts.connect = Duration::from_mins(1);
    });
    let mut threads = JoinSet::new();
    for _ in 0..N_THREADS.get() {
        let pool = Rc::new(UpstreamPool::new(N_THREADS));
        for _ in 0..5 {
            let (pool, upstream) = (Rc::clone(&pool), Arc::clone(&upstream));
            threads.spawn_local(async move {
                for _ in 0..10 {
                    let response = pool.send(&upstream, get("/"), None).await.unwrap();
                    assert_eq!(read(response).await, "ok");
                }
            });
        }
    }
    while let Some(done) = threads.join_next().await {
        done.unwrap();
    }
    assert_eq!(open.most.get(), MAX_CONNECTIONS);
}

#[test]
fn threads_share_connections_that_are_fewer_than_they_are() {
    run(async {
        check(UpstreamProtocol::Http1).await;
        check(UpstreamProtocol::Http2).await;
    });
}
