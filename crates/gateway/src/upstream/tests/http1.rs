//! HTTP/1: reuse, closed connections, timeouts, early answers, upgrades.

use std::cell::Cell;
use std::rc::Rc;

use super::bytes_server::BytesServer;
use super::{get, pool, read, run, upstream};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

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
        let upstream = upstream(std::slice::from_ref(&server.url), |_| {});
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
        assert_eq!(upstream.report()[0].in_progress, 0);
    });
}
