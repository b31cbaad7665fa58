//! Limits on the frames that clients send once a WebSocket connection is open.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_identify::Recipes;

/// Limits on the frames that clients send on the WebSocket connections of a route. Frames of upstreams are not limited.
///
/// A connection keeps the limits and the descriptors with which it was opened; a change of the rules applies to it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// The descriptors by which the rules limit messages, made of the request that opens the connection. Without it, the rules limit
    /// no message.
    pub descriptors: Option<Arc<Recipes>>,
    /// Messages of one connection; without it, their number has no limit.
    pub messages: Option<FrameLimit>,
    /// Pings, pongs and closes of one connection.
    pub control_frames: FrameLimit,
    /// The answer to a frame that is over a limit.
    pub when_over: WhenOver,
}

/// A number of frames per window. The window is fixed, on the clock of this node's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimit {
    limit: NonZeroU32,
    window: Duration,
}

/// The answer to a frame that is over a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenOver {
    /// The connection is closed.
    #[default]
    Close,
    /// The gateway stops reading from the client until the frame is allowed, while the other direction flows.
    Pause {
        /// The longest pause, after which the connection is closed.
        max_pause: Duration,
    },
}

/// A window that no limit on frames can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window is between 1 ms and 365 days")]
pub struct FrameWindowFault;

// === impl WebSocketLimits ===

impl WebSocketLimits {
    /// Returns true if a descriptor may have a value from a token.
    pub(crate) fn needs_token(&self) -> bool {
        let descriptors = self.descriptors.as_ref();
        descriptors.is_some_and(|recipes| recipes.needs_token())
    }
}

impl Default for WebSocketLimits {
    fn default() -> Self {
        Self {
            descriptors: None,
            messages: None,
            control_frames: FrameLimit::CONTROL_FRAMES,
            when_over: WhenOver::default(),
        }
    }
}

// === impl FrameLimit ===

impl FrameLimit {
    /// The limit on control frames where nobody sets it. A heartbeat a second takes a tenth of it.
    pub const CONTROL_FRAMES: Self = Self {
        limit: NonZeroU32::new(100).expect("it is not zero"),
        window: Duration::from_secs(10),
    };

    const SHORTEST_WINDOW: Duration = Duration::from_millis(1);
    const LONGEST_WINDOW: Duration = Duration::from_hours(365 * 24);

    /// A limit of `limit` frames per window of 1 ms to 365 days.
    pub fn new(limit: NonZeroU32, window: Duration) -> Result<Self, FrameWindowFault> {
        if (Self::SHORTEST_WINDOW..=Self::LONGEST_WINDOW).contains(&window) {
            Ok(Self { limit, window })
        } else {
            Err(FrameWindowFault)
        }
    }

    /// Frames per window.
    pub const fn limit(self) -> NonZeroU32 {
        self.limit
    }

    /// The window.
    pub const fn window(self) -> Duration {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_bounded() {
        let one = NonZeroU32::MIN;
        let longest = Duration::from_hours(365 * 24);
        let just = Duration::from_nanos(1);
        assert_eq!(
            FrameLimit::new(one, longest).map(FrameLimit::window),
            Ok(longest)
        );
        assert_eq!(FrameLimit::new(one, longest + just), Err(FrameWindowFault));
        assert_eq!(FrameLimit::new(one, Duration::ZERO), Err(FrameWindowFault));
    }
}
