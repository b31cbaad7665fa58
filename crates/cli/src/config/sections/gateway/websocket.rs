//! Limits on the frames that clients send on WebSocket connections.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::{FrameLimit, WebSocketLimits, WhenOver};
use tidegate_rules::document::Code;

use super::super::authorize;
use crate::config::reader::Section;
use crate::config::value::{Count, Words};

/// The answer to a frame over a limit, before its longest pause is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverLimit {
    Close,
    Pause,
}

/// The window where nobody sets it.
const WINDOW: Duration = Duration::from_secs(1);

/// The longest pause where nobody sets it; half of the time that many clients wait for a pong.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Reads the block `websocket` of a route, if it is written.
pub(super) fn read(route: &mut Section<'_, '_>) -> Option<WebSocketLimits> {
    let is_written = route.is_written("websocket");
    let mut section = route.block(
        "websocket",
        "Limits on the messages that clients send on WebSocket connections; if not set, none",
    );
    let descriptors = authorize::own_descriptors(
        &mut section,
        "The descriptors by which the rules limit messages, made of the request that opens the connection",
    );
    let messages = frame_limit(section.block(
        "messages",
        "Messages of one connection; if not set, their number has no limit",
    ));
    let control_frames = frame_limit(section.block(
        "control_frames",
        "Pings, pongs and closes of one connection; 100 in 10s, if not set",
    ));
    let limits = WebSocketLimits {
        descriptors: descriptors.map(Arc::new),
        messages,
        control_frames: control_frames.unwrap_or(FrameLimit::CONTROL_FRAMES),
        when_over: when_over(&mut section),
    };
    is_written.then_some(limits)
}

fn frame_limit(mut section: Section<'_, '_>) -> Option<FrameLimit> {
    let limit: Option<Count<1>> = section.optional("limit", "Frames per window");
    let window: Option<Duration> =
        section.optional("window", "The window, from 1ms to 365 days; 1s, if not set");
    let Some(limit) = limit.and_then(|Count(limit)| NonZeroU32::new(limit)) else {
        if !section.is_written("limit") {
            section.refuse_alone(&["window"], "`limit`");
        }
        return None;
    };
    match FrameLimit::new(limit, window.unwrap_or(WINDOW)) {
        Ok(limit) => Some(limit),
        Err(fault) => {
            let hint = "write a duration such as 1s";
            section.fault("window", Code::BadValue, fault.to_string(), hint);
            None
        }
    }
}

fn when_over(section: &mut Section<'_, '_>) -> WhenOver {
    let over: Option<OverLimit> = section.optional(
        "when_over",
        "The answer to a frame over a limit: `close` the connection (if not set), or `pause` reading from the client",
    );
    let max_pause: Option<Duration> = section.optional(
        "max_pause",
        "The longest pause, after which the connection is closed; 10s, if not set",
    );
    match over {
        // A word that was not understood has its fault already.
        None if section.is_written("when_over") => WhenOver::Close,
        Some(OverLimit::Close) | None => {
            section.refuse_alone(&["max_pause"], "`when_over: pause`");
            WhenOver::Close
        }
        Some(OverLimit::Pause) => {
            if max_pause.is_some_and(|pause| pause.is_zero()) {
                let message = "`max_pause` must be greater than zero".to_owned();
                let hint = "write a duration such as 5s";
                section.fault("max_pause", Code::BadValue, message, hint);
            }
            WhenOver::Pause {
                max_pause: max_pause.unwrap_or(MAX_PAUSE),
            }
        }
    }
}

// === impl OverLimit ===

impl Words for OverLimit {
    const EXPECTED: &'static str = "an answer";
    const WORDS: &'static [(&'static str, Self)] =
        &[("close", Self::Close), ("pause", Self::Pause)];
}
