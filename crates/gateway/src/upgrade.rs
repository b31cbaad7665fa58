//! Upgraded connections: bytes flow both ways until both sides are done or nothing flows.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, sleep};

use crate::connection::RequestGuard;
use crate::thread::GatewayThread;
use crate::upstream::UpstreamBody;
use crate::websocket::{self, WebSocketSession};

/// An upgraded connection before its two halves are there.
pub(crate) struct Tunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) upstream: OnUpgrade,
    /// The time after which a connection on which nothing flows is closed.
    pub(crate) idle_timeout: Duration,
    pub(crate) protocol: TunnelProtocol,
    /// The request that was upgraded, in progress until the tunnel ends.
    pub(crate) guard: RequestGuard,
    /// The upstream's response, which counts as in progress.
    pub(crate) response: UpstreamBody,
}

/// The protocol of an upgraded connection.
pub(crate) enum TunnelProtocol {
    /// WebSocket, with the limits of its messages if it has any.
    WebSocket(Option<Box<WebSocketSession>>),
    /// Another one, whose bytes pass unread.
    Other,
}

/// The time at which bytes flowed last.
#[derive(Debug)]
pub(crate) struct Activity {
    last: Cell<Instant>,
    /// True if bytes wait for a reason of our own.
    is_kept: Cell<bool>,
}

/// Bytes that are copied at a time; a page of most kernels' socket buffers.
const CHUNK_BYTES: usize = 8 * 1024;

// === impl Tunnel ===

impl Tunnel {
    /// Copies bytes both ways until both sides have ended, one fails, or nothing flows for too long. A WebSocket is closed when the drain
    /// begins.
    pub(crate) async fn run<S: Store>(
        self,
        thread: &GatewayThread<S>,
        drain: impl Future<Output = ()>,
    ) {
        let halves = tokio::join!(self.client, self.upstream);
        if let (Ok(client), Ok(upstream)) = halves {
            let (client, upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            let activity = Activity::new();
            let copied = async {
                match &self.protocol {
                    TunnelProtocol::Other => copy(client, upstream, &activity).await,
                    TunnelProtocol::WebSocket(session) => {
                        let session = session.as_deref();
                        websocket::relay(client, upstream, session, thread, &activity, drain).await
                    }
                }
            };
            // A side that breaks off ends the tunnel; there is nobody to tell.
            tokio::select! {
                biased;
                _ = copied => {}
                () = activity.idle(self.idle_timeout) => {}
            }
        }
        drop((self.response, self.guard));
    }
}

// === impl Activity ===

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            last: Cell::new(Instant::now()),
            is_kept: Cell::new(false),
        }
    }

    /// Notes that bytes flowed now.
    pub(crate) fn note(&self) {
        self.last.set(Instant::now());
    }

    /// Waits for `wait`, and takes bytes that wait for it as bytes that flow.
    pub(crate) async fn keep<T>(&self, wait: impl Future<Output = T>) -> T {
        self.is_kept.set(true);
        let waited = wait.await;
        self.is_kept.set(false);
        self.note();
        waited
    }

    /// Ready once nothing has flowed for `timeout`.
    async fn idle(&self, timeout: Duration) {
        loop {
            // The timer looks at the true deadline when it fires, because bytes flow far more often than it does.
            let left = timeout.saturating_sub(self.last.get().elapsed());
            match (left.is_zero(), self.is_kept.get()) {
                (true, false) => return,
                (true, true) => sleep(timeout).await,
                (false, _) => sleep(left).await,
            }
        }
    }
}

async fn copy(
    client: impl AsyncRead + AsyncWrite,
    upstream: impl AsyncRead + AsyncWrite,
    activity: &Activity,
) -> io::Result<()> {
    let (client_read, client_write) = split(client);
    let (upstream_read, upstream_write) = split(upstream);
    tokio::try_join!(
        copy_one_way(client_read, upstream_write, activity),
        copy_one_way(upstream_read, client_write, activity),
    )
    .map(|_| ())
}

/// Copies until the end, and then tells the other side that nothing more comes.
async fn copy_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let n_bytes = from.read(&mut buffer).await?;
        if n_bytes == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..n_bytes]).await?;
        // TLS keeps bytes that the socket did not take.
        to.flush().await?;
        activity.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_nothing_flows() {
        let second = Duration::from_secs(1);
        let activity = Activity::new();
        let started = Instant::now();
        let flow = async {
            sleep(second / 2).await;
            activity.note();
            activity.keep(sleep(4 * second)).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = activity.idle(second) => {}
            () = flow => {}
        }
        assert_eq!(started.elapsed(), second / 2 + 5 * second);
    }
}
