//! The writes that answers cost: denied calls share them as allowed ones do.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::join_all;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::client::{Client, Server, run};
use crate::wire::{Code, RateLimitRequest, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 64 }
";

/// Calls that arrive together.
const N_CALLS: usize = 64;

/// A stream that counts writes and takes several pieces in one, as a socket does.
struct CountedWrites {
    stream: DuplexStream,
    n_writes: Rc<Cell<usize>>,
}

impl AsyncRead for CountedWrites {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedWrites {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.n_writes.set(self.n_writes.get() + 1);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.n_writes.set(self.n_writes.get() + 1);
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The writes of a server that answers the same calls twice: first all are allowed, then all are denied.
async fn writes(question: RateLimitRequest) -> [usize; 2] {
    let server = Server::new(RULES);
    let n_writes = Rc::new(Cell::new(0));
    let (ours, stream) = tokio::io::duplex(1 << 20);
    server.serve(CountedWrites {
        stream,
        n_writes: Rc::clone(&n_writes),
    });
    let client = Client::new(ours).await;
    let mut counts = [0; 2];
    for (count, expected) in counts.iter_mut().zip([Code::Ok, Code::OverLimit]) {
        let before = n_writes.get();
        let calls = (0..N_CALLS).map(|_| {
            let (mut client, question) = (client.clone(), question.clone());
            async move { client.ask(&question).await }
        });
        for answer in join_all(calls).await {
            assert_eq!(answer.overall_code(), expected);
        }
        *count = n_writes.get() - before;
    }
    counts
}

#[test]
fn denied_calls_are_answered_in_as_few_writes_as_allowed_ones() {
    run(async {
        let [allowed, denied] = writes(ask("api", &[("user", "7")])).await;
        assert!(
            denied <= allowed + 1,
            "{denied} writes, {allowed} if allowed"
        );
    });
}
