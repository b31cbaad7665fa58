//! Bodies of clients: hyper makes them only from connections, so here is one in memory.

use std::time::Duration;

use http::Response;
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

use crate::body::{ClientBody, ContinueGate, RequestBody, StreamedBody};

/// A body of this length, and the client that has yet to write it. The body fails if the client is dropped before.
pub(super) async fn client_body(length: usize) -> (RequestBody, DuplexStream) {
    client_body_behind(length, None).await
}

/// The same, which waits for a gate.
async fn client_body_behind(
    length: usize,
    gate: Option<ContinueGate>,
) -> (RequestBody, DuplexStream) {
    let (mut client, server) = duplex(1024 * 1024);
    let head = format!("POST / HTTP/1.1\r\nhost: gateway.test\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let (sender, mut bodies) = mpsc::unbounded_channel();
    let service = service_fn(move |request: http::Request<Incoming>| {
        sender.send(request.into_body()).unwrap();
        std::future::pending::<Result<Response<Empty<Bytes>>, hyper::Error>>()
    });
    spawn_local(http1::Builder::new().serve_connection(TokioIo::new(server), service));
    let body = ClientBody {
        incoming: bodies.recv().await.unwrap(),
        window: Ok(None),
    };
    let (body, _) = StreamedBody::new(body, u64::MAX, Duration::from_mins(1), gate);
    (RequestBody::Stream(Box::new(body)), client)
}

/// A body that the client has written whole.
pub(super) async fn whole_body(bytes: &[u8]) -> (RequestBody, DuplexStream) {
    let (body, mut client) = client_body(bytes.len()).await;
    client.write_all(bytes).await.unwrap();
    (body, client)
}

/// The same, which waits until the upstream asks for it.
pub(super) async fn whole_body_on_demand(bytes: &[u8]) -> (RequestBody, DuplexStream) {
    let gate = Some(ContinueGate::new());
    let (body, mut client) = client_body_behind(bytes.len(), gate).await;
    client.write_all(bytes).await.unwrap();
    (body, client)
}
