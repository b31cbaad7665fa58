//! WebSocket connections, whose messages may be limited.
//!
//! Only the headers of frames are looked at. Where messages are limited, frames of the client are charged before they are passed on; all others
//! are told apart so that a close frame of ours never falls into one.
//!
//! ```text
//!            frame over a limit, or malformed; drain
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
mod passed_frames;
mod session;

use std::io;
use std::pin::Pin;
use std::time::Duration;

use tidegate_limiter::Store;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::thread::GatewayThread;
use crate::upgrade::Activity;

use buffer::FrameBuffer;
use client_frames::{ClientEnd, ClientFrames};
use close::{CloseFrame, CloseReason};
use frame::FrameSender;
use meter::{FrameEntries, FrameMeter};
use passed_frames::{MalformedFrames, PassedFrames};
pub(crate) use session::{WebSocketSession, is_websocket};

/// The reason for which the connection is being closed, once there is one.
type Closing = watch::Receiver<Option<CloseReason>>;

/// The time for a boundary between frames of the upstream, and then for the end of its stream.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Passes frames both ways until both sides have ended, or one fails, or the connection is closed: because of the limits of its session, or
/// because the drain has begun.
pub(crate) async fn relay<S: Store>(
    client: impl AsyncRead + AsyncWrite,
    upstream: impl AsyncRead + AsyncWrite,
    session: Option<&WebSocketSession>,
    thread: &GatewayThread<S>,
    activity: &Activity,
    drain: impl Future<Output = ()>,
) -> io::Result<()> {
    let (mut client_read, mut client_write) = split(client);
    let (mut upstream_read, mut upstream_write) = split(upstream);
    let (closing, is_closing) = watch::channel(None);
    // In a box each, so that a connection has no room for what it does not use, and none twice.
    let to_upstream: Pin<Box<dyn Future<Output = io::Result<()>>>> = match session {
        Some(session) => Box::pin(pass_limited(
            session,
            thread,
            activity,
            &mut client_read,
            &mut upstream_write,
            &closing,
        )),
        None => Box::pin(pass_unlimited(
            &mut client_read,
            &mut upstream_write,
            is_closing.clone(),
            activity,
        )),
    };
    let to_client = Box::pin(pass_to_client(
        PassedFrames {
            sender: FrameSender::Server,
            malformed: if session.is_some() {
                MalformedFrames::Cut
            } else {
                MalformedFrames::Pass
            },
            closing: is_closing,
            activity,
        },
        &mut upstream_read,
        &mut client_write,
    ));
    let going_away = async {
        drain.await;
        closing.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert(CloseReason::GoingAway);
            is_first
        });
        std::future::pending::<()>().await;
    };
    let passing = async { tokio::try_join!(to_upstream, to_client).map(|_| ()) };
    tokio::select! {
        biased;
        passed = passing => passed,
        () = going_away => Ok(()),
    }
}

/// Passes frames to the upstream within the limits of a session, and ends its stream. A frame that must not pass begins to close the connection.
async fn pass_limited<S: Store>(
    session: &WebSocketSession,
    thread: &GatewayThread<S>,
    activity: &Activity,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    closing: &watch::Sender<Option<CloseReason>>,
) -> io::Result<()> {
    let entries = FrameEntries::new(session);
    let frames = ClientFrames {
        meter: FrameMeter::new(&entries, thread),
        when_over: session.limits.when_over,
        activity,
        closing: closing.subscribe(),
    };
    let mut buffer = FrameBuffer::new();
    let end = tokio::select! {
        biased;
        end = frames.pass(&mut buffer, from, to) => end?,
        // The client is in the middle of a frame.
        () = closing_timeout(closing.subscribe()) => return Err(io::ErrorKind::TimedOut.into()),
    };
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
    discard_for_close(from).await;
    Ok(())
}

/// Passes frames to the upstream without limits, and ends its stream: with a close frame if the connection is being closed.
async fn pass_unlimited(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    closing: Closing,
    activity: &Activity,
) -> io::Result<()> {
    let mut frames = PassedFrames {
        sender: FrameSender::Client,
        malformed: MalformedFrames::Pass,
        closing: closing.clone(),
        activity,
    };
    let reason = tokio::select! {
        biased;
        passed = frames.pass_to_boundary(from, to) => passed?,
        () = closing_timeout(closing.clone()) => return Err(io::ErrorKind::TimedOut.into()),
    };
    if let Some(reason) = reason {
        let _ = timeout(CLOSE_TIMEOUT, send(&CloseFrame::for_upstream(reason), to)).await;
    }
    if closing.borrow().is_none() {
        return to.shutdown().await;
    }
    discard_for_close(from).await;
    Ok(())
}

/// Passes frames to the client, and ends its stream: with a close frame if the connection is being closed.
async fn pass_to_client(
    mut frames: PassedFrames<'_>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let closing = frames.closing.clone();
    let passed = async {
        if let Some(reason) = frames.pass_to_boundary(from, to).await? {
            send(&CloseFrame::for_client(reason), to).await?;
        }
        to.shutdown().await
    };
    tokio::select! {
        biased;
        passed = passed => passed?,
        () = closing_timeout(closing.clone()) => return Err(io::ErrorKind::TimedOut.into()),
    }
    if closing.borrow().is_some() {
        let _ = timeout(CLOSE_TIMEOUT, discard(from)).await;
    }
    Ok(())
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

/// Reads what a client still sends after its close frame was sent: bytes that nobody read would make the system reset the connection, and the
/// client lose that frame.
async fn discard_for_close(from: &mut (impl AsyncRead + Unpin)) {
    let _ = timeout(2 * CLOSE_TIMEOUT, discard(from)).await;
}

/// Reads to the end of a stream and drops what comes.
async fn discard(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut bytes = [0; 1024];
    while from.read(&mut bytes).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests;
