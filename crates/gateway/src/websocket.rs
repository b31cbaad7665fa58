//! WebSocket connections whose messages are limited.
//!
//! Only the headers of frames are looked at. Frames of the client are charged before they are passed on; frames of the upstream are
//! told apart so that a close frame of ours never falls into one.
//!
//! ```text
//!            frame over a limit, or malformed
//!  open ──────────────────────────────────────► closing ──both sides closed, or time is up──► over
//!   │  ▲                                          upstream: close frame after the frames that were allowed, within 1 s
//!   ▼  │ allowed                                  client: close frame at the next boundary; without one for 1 s, cut
//!  paused ──max_pause──► closing
//! ```

mod buffer;
mod client_frames;
mod close;
mod frame;
mod meter;
mod session;

use std::io;
use std::time::Duration;

use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::thread::GatewayThread;
use crate::upgrade::Activity;

use buffer::{FrameBuffer, ReadEnd};
use client_frames::{ClientEnd, ClientFrames};
use close::{CloseFrame, CloseReason};
use frame::{FrameKind, FramePart, FrameScanner, FrameSender};
use meter::{FrameEntries, FrameMeter};
pub(crate) use session::{WebSocketSession, is_websocket};

/// The reason for which the connection is being closed, once there is one.
type Closing = watch::Receiver<Option<CloseReason>>;

/// The time for a boundary between frames of the upstream, and then for the end of its stream.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Passes frames both ways until both sides have ended, or one fails, or the connection is closed because of its limits.
pub(crate) async fn relay<S: Store>(
    client: impl AsyncRead + AsyncWrite,
    upstream: impl AsyncRead + AsyncWrite,
    session: &WebSocketSession,
    thread: &GatewayThread<S>,
    activity: &Activity,
) -> io::Result<()> {
    let (mut client_read, mut client_write) = split(client);
    let (mut upstream_read, mut upstream_write) = split(upstream);
    let entries = FrameEntries::new(session);
    let frames = ClientFrames {
        meter: FrameMeter::new(&entries, thread),
        when_over: session.limits.when_over,
        activity,
    };
    let (closing, is_closing) = watch::channel(None);
    let to_upstream = pass_to_upstream(&frames, &mut client_read, &mut upstream_write, &closing);
    let to_client = async {
        let passed = pass_to_client(
            &mut upstream_read,
            &mut client_write,
            is_closing.clone(),
            activity,
        );
        tokio::select! {
            biased;
            passed = passed => passed?,
            () = closing_timeout(is_closing.clone()) => return Err(io::ErrorKind::TimedOut.into()),
        }
        if is_closing.borrow().is_some() {
            let _ = timeout(CLOSE_TIMEOUT, discard(&mut upstream_read)).await;
        }
        Ok(())
    };
    tokio::try_join!(to_upstream, to_client).map(|_| ())
}

/// Passes frames to the upstream, and ends its stream. A frame that must not pass begins to close the connection.
async fn pass_to_upstream<S: Store>(
    frames: &ClientFrames<'_, S>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    closing: &watch::Sender<Option<CloseReason>>,
) -> io::Result<()> {
    let mut buffer = FrameBuffer::new();
    let end = frames.pass(&mut buffer, from, to).await?;
    let ClientEnd::Close {
        reason,
        is_close_passed,
    } = end
    else {
        return to.shutdown().await;
    };
    closing.send_replace(Some(reason));
    let close = async {
        buffer.write(to).await?;
        if is_close_passed {
            return Ok(());
        }
        send(&CloseFrame::for_upstream(reason), to).await
    };
    // An upstream that takes nothing does not keep the client from its close frame.
    let _ = timeout(CLOSE_TIMEOUT, close).await;
    // Bytes that nobody read would make the system reset the connection, and the client lose its close frame.
    let _ = timeout(2 * CLOSE_TIMEOUT, discard(from)).await;
    Ok(())
}

/// Passes frames to the client, and ends its stream: with a close frame if the connection is being closed.
async fn pass_to_client(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    closing: Closing,
    activity: &Activity,
) -> io::Result<()> {
    if let Some(reason) = pass_to_boundary(from, to, closing, activity).await? {
        send(&CloseFrame::for_client(reason), to).await?;
    }
    to.shutdown().await
}

/// Passes frames until the upstream ends its stream or, once the connection is being closed, until the next boundary. Gives the reason
/// that the client is still to be told.
async fn pass_to_boundary(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut closing: Closing,
    activity: &Activity,
) -> io::Result<Option<CloseReason>> {
    let mut scanner = FrameScanner::new(FrameSender::Server);
    let mut buffer = FrameBuffer::new();
    let mut is_close_passed = false;
    loop {
        tokio::select! {
            biased;
            reason = reason(&mut closing), if scanner.is_at_boundary() => {
                return Ok(Some(reason).filter(|_| !is_close_passed));
            }
            read = buffer.read(from) => if read? == ReadEnd::EndOfStream {
                return Ok(None);
            }
        }
        while !(scanner.is_at_boundary() && closing.borrow().is_some()) {
            match scanner.scan(buffer.unscanned()) {
                Ok(FramePart::Header { kind, n_bytes }) => {
                    is_close_passed |= kind == FrameKind::Close;
                    buffer.pass(n_bytes);
                }
                Ok(FramePart::Payload { n_bytes }) => buffer.pass(n_bytes),
                Ok(FramePart::Incomplete) => break,
                Err(fault) => return Err(io::Error::new(io::ErrorKind::InvalidData, fault)),
            }
        }
        buffer.write(to).await?;
        activity.note();
    }
}

/// Ready once the connection is being closed.
async fn reason(closing: &mut Closing) -> CloseReason {
    loop {
        if let Some(reason) = *closing.borrow_and_update() {
            return reason;
        }
        if closing.changed().await.is_err() {
            // The connection is over without being closed by us.
            return std::future::pending().await;
        }
    }
}

/// Ready once the connection has been closing for too long.
async fn closing_timeout(mut closing: Closing) {
    reason(&mut closing).await;
    sleep(CLOSE_TIMEOUT).await;
}

async fn send(frame: &CloseFrame, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    to.write_all(frame.as_bytes()).await?;
    to.flush().await
}

/// Reads to the end of a stream and drops what comes.
async fn discard(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut bytes = [0; 1024];
    while from.read(&mut bytes).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests;
