//! One HTTP/1 connection.

use std::io;
use std::net::SocketAddr;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::Instant;

use super::connect::OpenedStream;
use super::outgoing::OutgoingBody;
use super::stream::ReadMark;
use super::timer::now;

/// One HTTP/1 connection. A task of its own reads and writes; dropping this lets the task end in good order.
#[derive(Debug)]
pub(super) struct Http1Connection {
    sender: SendRequest<OutgoingBody>,
    task: AbortHandle,
    read_mark: ReadMark,
    pub(super) address: SocketAddr,
    /// The version of the target's addresses that has this one.
    pub(super) list_version: u64,
    pub(super) idle_since: Instant,
}

// === impl Http1Connection ===

impl Http1Connection {
    pub(super) async fn start(opened: OpenedStream, list_version: u64) -> io::Result<Self> {
        let read_mark = opened.stream.read_mark();
        let (sender, connection) = Builder::new()
            .handshake(TokioIo::new(opened.stream))
            .await
            .map_err(io::Error::other)?;
        // Its errors reach the request, or nobody if there is none.
        let task = spawn_local(connection.with_upgrades()).abort_handle();
        Ok(Self {
            sender,
            task,
            read_mark,
            address: opened.address,
            list_version,
            idle_since: now(),
        })
    }

    /// Sends a request. On failure, one of which nothing was written comes back.
    pub(super) fn send(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<OutgoingBody>>>> + use<>
    {
        self.read_mark.clear();
        self.sender.try_send_request(request)
    }

    /// Whether something was read since the last request was sent.
    pub(super) fn was_read(&self) -> bool {
        self.read_mark.is_set()
    }

    /// Whether it waits for a request.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Closes it at once. To drop it would not do: hyper keeps a connection whose request is still being written (hyper#4176).
    pub(super) fn abort(self) {
        self.task.abort();
    }
}
