//! Upgraded connections: bytes flow both ways until both sides are done or nothing flows.

use std::io;
use std::pin::pin;
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::connection::RequestGuard;
use crate::upstream::UpstreamBody;

/// An upgraded connection before its two halves are there.
pub(crate) struct Tunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) upstream: OnUpgrade,
    /// The time after which a connection on which nothing flows is closed.
    pub(crate) idle_timeout: Duration,
    /// The request that was upgraded, in progress until the tunnel ends.
    pub(crate) guard: RequestGuard,
    /// The upstream's response, which counts as in progress.
    pub(crate) response: UpstreamBody,
}

/// Bytes that are copied at a time; a page of most kernels' socket buffers.
const CHUNK_BYTES: usize = 8 * 1024;

// === impl Tunnel ===

impl Tunnel {
    /// Copies bytes both ways until both sides have ended, one fails, or nothing flows for too long.
    pub(crate) async fn run(self) {
        let halves = tokio::join!(self.client, self.upstream);
        if let (Ok(client), Ok(upstream)) = halves {
            // A side that breaks off ends the tunnel; there is nobody to tell.
            let _: io::Result<()> = copy(client, upstream, self.idle_timeout).await;
        }
        drop((self.response, self.guard));
    }
}

async fn copy(client: Upgraded, upstream: Upgraded, idle_timeout: Duration) -> io::Result<()> {
    let (client_read, client_write) = split(TokioIo::new(client));
    let (upstream_read, upstream_write) = split(TokioIo::new(upstream));
    let (active, mut last_active) = watch::channel(Instant::now());
    let both = async {
        tokio::try_join!(
            copy_one_way(client_read, upstream_write, &active),
            copy_one_way(upstream_read, client_write, &active),
        )
    };
    let mut both = pin!(both);
    loop {
        let idle_at = *last_active.borrow_and_update() + idle_timeout;
        tokio::select! {
            copied = both.as_mut() => return copied.map(|_| ()),
            () = sleep_until(idle_at) => {
                if !last_active.has_changed().unwrap_or(false) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }
}

/// Copies until the end, and then tells the other side that nothing more comes.
async fn copy_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    active: &watch::Sender<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let n_bytes = from.read(&mut buffer).await?;
        if n_bytes == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..n_bytes]).await?;
        active.send_replace(Instant::now());
    }
}
