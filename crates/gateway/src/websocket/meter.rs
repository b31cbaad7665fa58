//! The charges of frames.
//!
//! Every limit on frames goes through the limiter, so that the store's clock decides and a message is charged to the rules and to
//! the limit of its connection in one step. The limit of a connection is one that comes with the request, in the terms of the
//! limiter; this node counts it by itself, because no other node sees the connection.

use std::time::Duration;

use tidegate_limiter::{
    Consistency, Descriptor, Entry, Hits, LimitOverride, LimiterError, Retry, Store,
};
use tidegate_observe::{LimiterRequest, TraceHeaders};

use super::frame::FrameKind;
use super::session::WebSocketSession;
use crate::config::FrameLimit;
use crate::thread::GatewayThread;

/// The entries of a connection's descriptors, which a meter borrows.
pub(super) struct FrameEntries<'a> {
    session: &'a WebSocketSession,
    by_rules: Vec<Vec<Entry<'a>>>,
    messages: [Entry<'a>; 1],
    control_frames: [Entry<'a>; 1],
}

/// Charges the frames of one connection. Charging a frame makes no descriptor anew.
pub(super) struct FrameMeter<'a, S> {
    thread: &'a GatewayThread<S>,
    domain: &'a str,
    messages: Vec<Descriptor<'a>>,
    control_frames: [Descriptor<'a>; 1],
}

/// The decision on one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameDecision {
    Allowed,
    Denied {
        /// The time after which it would be allowed, if ever.
        retry_after: Option<Duration>,
    },
}

// === impl FrameEntries ===

impl<'a> FrameEntries<'a> {
    pub(super) fn new(session: &'a WebSocketSession) -> Self {
        let entry = |(key, value): &'a (String, String)| Entry { key, value };
        let by_rules = session.descriptors.iter();
        let of_connection = |key| {
            [Entry {
                key,
                value: &session.id,
            }]
        };
        Self {
            session,
            by_rules: by_rules
                .map(|entries| entries.iter().map(entry).collect())
                .collect(),
            messages: of_connection("websocket_messages"),
            control_frames: of_connection("websocket_control_frames"),
        }
    }
}

// === impl FrameMeter ===

impl<'a, S: Store> FrameMeter<'a, S> {
    pub(super) fn new(entries: &'a FrameEntries<'a>, thread: &'a GatewayThread<S>) -> Self {
        let limits = &entries.session.limits;
        let by_rules = entries.by_rules.iter();
        let mut messages: Vec<Descriptor<'_>> =
            by_rules.map(|entries| Descriptor::new(entries)).collect();
        messages.extend(
            limits
                .messages
                .map(|limit| limited(&entries.messages, limit)),
        );
        Self {
            thread,
            domain: &entries.session.domain,
            messages,
            control_frames: [limited(&entries.control_frames, limits.control_frames)],
        }
    }

    /// Decides on a frame, and charges it if it is allowed. Continuations are part of a message that was charged.
    pub(super) async fn charge(&self, kind: FrameKind) -> Result<FrameDecision, LimiterError> {
        let descriptors = match kind {
            FrameKind::Continuation => &[],
            FrameKind::Message => self.messages.as_slice(),
            FrameKind::Control | FrameKind::Close => &self.control_frames,
        };
        if descriptors.is_empty() {
            return Ok(FrameDecision::Allowed);
        }
        let request = LimiterRequest {
            domain: self.domain,
            descriptors,
            hits: 1,
            route: None,
            trace: TraceHeaders::default(),
        };
        let decided = self.thread.check(&request, |verdict, _| {
            if verdict.is_allowed() {
                return FrameDecision::Allowed;
            }
            let retry_after = match verdict.retry() {
                Some(Retry::After(time)) => Some(time),
                Some(Retry::Never) | None => None,
            };
            FrameDecision::Denied { retry_after }
        });
        decided.await
    }
}

/// A descriptor with a limit of its own.
fn limited<'a>(entries: &'a [Entry<'a>], limit: FrameLimit) -> Descriptor<'a> {
    Descriptor {
        entries,
        hits: Hits::OfRequest,
        limit: Some(LimitOverride {
            requests: limit.limit().get().into(),
            window: limit.window(),
            consistency: Some(Consistency::Node),
        }),
    }
}
