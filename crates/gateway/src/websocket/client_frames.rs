//! Frames of the client on their way to the upstream, each charged before it is passed on.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tidegate_limiter::{LimiterError, Store};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::buffer::{FrameBuffer, ReadEnd};
use super::close::CloseReason;
use super::frame::{FrameKind, FramePart, FrameScanner, FrameSender};
use super::meter::{FrameDecision, FrameMeter};
use super::{Closing, reason};
use crate::config::WhenOver;
use crate::upgrade::Activity;

/// The frames of one client.
pub(super) struct ClientFrames<'a, S> {
    pub(super) meter: FrameMeter<'a, S>,
    pub(super) when_over: WhenOver,
    pub(super) activity: &'a Activity,
    /// The reason to close the connection that is found elsewhere.
    pub(super) closing: Closing,
}

/// The end of the frames of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientEnd {
    /// It has ended its stream.
    EndOfStream,
    /// The connection is to be closed. The frames before are passed, but some may not be written.
    Close {
        reason: CloseReason,
        /// True if the client's own close frame was passed on, after which no other may be sent.
        is_close_passed: bool,
    },
}

/// The shortest wait between two charges of one frame: timers are no finer.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

// === impl ClientFrames ===

impl<S: Store> ClientFrames<'_, S> {
    /// Passes frames on until the client ends its stream or the connection is to be closed.
    pub(super) async fn pass(
        &self,
        buffer: &mut FrameBuffer,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<ClientEnd> {
        let mut scanner = FrameScanner::new(FrameSender::Client);
        let mut is_close_passed = false;
        let mut closing = self.closing.clone();
        loop {
            if scanner.is_at_boundary()
                && let Some(reason) = *closing.borrow()
            {
                return Ok(close(reason, is_close_passed));
            }
            match scanner.scan(buffer.unscanned()) {
                Ok(FramePart::Header { kind, n_bytes }) => {
                    if let Some(reason) = self.charge(kind, buffer, to).await? {
                        return Ok(close(reason, is_close_passed));
                    }
                    is_close_passed |= kind == FrameKind::Close;
                    buffer.pass(n_bytes);
                }
                Ok(FramePart::Payload { n_bytes }) => buffer.pass(n_bytes),
                Ok(FramePart::Incomplete) => {
                    buffer.write(to).await?;
                    self.activity.note();
                    tokio::select! {
                        biased;
                        reason = reason(&mut closing), if scanner.is_at_boundary() => {
                            return Ok(close(reason, is_close_passed));
                        }
                        read = buffer.read(from) => if read? == ReadEnd::EndOfStream {
                            return Ok(ClientEnd::EndOfStream);
                        }
                    }
                }
                Err(fault) => {
                    tracing::debug!(%fault, "malformed WebSocket frame");
                    return Ok(close(CloseReason::ProtocolError, is_close_passed));
                }
            }
        }
    }

    /// Charges a frame, and gives the reason to close the connection if it may not pass.
    async fn charge(
        &self,
        kind: FrameKind,
        buffer: &mut FrameBuffer,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<Option<CloseReason>> {
        let mut charge = pin!(self.meter.charge(kind));
        let at_once = poll_fn(|context| Poll::Ready(charge.as_mut().poll(context))).await;
        let mut decision = match at_once {
            Poll::Ready(decision) => decision,
            Poll::Pending => {
                // Frames that were passed do not wait for the store's decision on the next.
                let (decision, written) = tokio::join!(charge, buffer.write(to));
                written?;
                decision
            }
        };
        if let Ok(FrameDecision::Denied {
            retry_after: Some(time),
        }) = decision
            && let WhenOver::Pause { max_pause } = self.when_over
        {
            buffer.write(to).await?;
            let pause = timeout(max_pause, self.pause(kind, time));
            let mut closing = self.closing.clone();
            tokio::select! {
                biased;
                reason = reason(&mut closing) => return Ok(Some(reason)),
                paused = self.activity.keep(pause) => if let Ok(later) = paused {
                    decision = later;
                }
            }
        }
        Ok(match decision {
            Ok(FrameDecision::Allowed) => None,
            Ok(FrameDecision::Denied { .. }) => Some(match kind {
                FrameKind::Message | FrameKind::Continuation => CloseReason::MessageLimit,
                FrameKind::Control | FrameKind::Close => CloseReason::ControlFrameLimit,
            }),
            Err(error) => {
                tracing::warn!(%error, "limits of a WebSocket frame could not be decided");
                Some(CloseReason::InternalError)
            }
        })
    }

    /// Charges a frame that was denied again and again, until it is allowed or never will be.
    async fn pause(
        &self,
        kind: FrameKind,
        mut retry_after: Duration,
    ) -> Result<FrameDecision, LimiterError> {
        loop {
            sleep(retry_after.max(SHORTEST_WAIT)).await;
            match self.meter.charge(kind).await? {
                FrameDecision::Denied {
                    retry_after: Some(time),
                } => retry_after = time,
                decision => return Ok(decision),
            }
        }
    }
}

fn close(reason: CloseReason, is_close_passed: bool) -> ClientEnd {
    tracing::debug!(reason = reason.text(), "closing WebSocket connection");
    ClientEnd::Close {
        reason,
        is_close_passed,
    }
}
