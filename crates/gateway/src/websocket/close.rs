//! Close frames of our own.

use std::hash::{BuildHasher, RandomState};

/// The reason for which the gateway closes a WebSocket connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client sent a frame that it must not send.
    ProtocolError,
    /// Too many messages.
    MessageLimit,
    /// Too many pings, pongs and closes.
    ControlFrameLimit,
    /// The limits could not be decided.
    InternalError,
    /// The gateway stops.
    GoingAway,
}

/// A close frame, ready to be sent.
#[derive(Debug)]
pub(crate) struct CloseFrame(Vec<u8>);

/// A whole close frame, which is never fragmented.
const CLOSE: u8 = 0x88;

const MASKED: u8 = 0x80;

// === impl CloseReason ===

impl CloseReason {
    /// The status code (RFC 6455, section 7.4.1).
    const fn code(self) -> u16 {
        match self {
            Self::ProtocolError => 1002,
            Self::MessageLimit | Self::ControlFrameLimit => 1008,
            Self::InternalError => 1011,
            Self::GoingAway => 1001,
        }
    }

    /// The reason as peers are told it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::ProtocolError => "protocol error",
            Self::MessageLimit => "message limit reached",
            Self::ControlFrameLimit => "control frame limit reached",
            Self::InternalError => "internal error",
            Self::GoingAway => "going away",
        }
    }

    /// The payload: the code and the text, which fit the 125 bytes of a control frame.
    fn payload(self) -> impl Iterator<Item = u8> {
        self.code()
            .to_be_bytes()
            .into_iter()
            .chain(self.text().bytes())
    }
}

// === impl CloseFrame ===

impl CloseFrame {
    /// The frame for a client, without a mask as servers send it.
    pub(crate) fn for_client(reason: CloseReason) -> Self {
        let header = [CLOSE, Self::length(reason)];
        Self(header.into_iter().chain(reason.payload()).collect())
    }

    /// The frame for an upstream, masked as clients must.
    pub(crate) fn for_upstream(reason: CloseReason) -> Self {
        let [a, b, c, d, ..] = RandomState::new().hash_one(()).to_be_bytes();
        let mask = [a, b, c, d];
        let header = [CLOSE, MASKED | Self::length(reason)];
        let payload = reason.payload().zip(mask.into_iter().cycle());
        let masked = payload.map(|(byte, mask)| byte ^ mask);
        Self(header.into_iter().chain(mask).chain(masked).collect())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn length(reason: CloseReason) -> u8 {
        // Every text is short; the test below would find one that is not.
        u8::try_from(reason.payload().count()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reason: CloseReason, code: u16) {
        let payload = [&code.to_be_bytes(), reason.text().as_bytes()].concat();
        let length = u8::try_from(payload.len()).unwrap();
        assert!(length <= 125, "a control frame has at most 125 bytes");
        let frame = CloseFrame::for_client(reason);
        assert_eq!(
            frame.as_bytes(),
            [&[0x88, length], payload.as_slice()].concat()
        );
        let frame = CloseFrame::for_upstream(reason);
        let [first, second, a, b, c, d, masked @ ..] = frame.as_bytes() else {
            panic!("no header: {frame:?}");
        };
        assert_eq!([*first, *second], [0x88, 0x80 | length]);
        let mask = [a, b, c, d].into_iter().cycle();
        let unmasked: Vec<u8> = masked
            .iter()
            .zip(mask)
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        assert_eq!(unmasked, payload);
    }

    #[test]
    fn close_frames_carry_code_and_reason() {
        check(CloseReason::ProtocolError, 1002);
        check(CloseReason::MessageLimit, 1008);
        check(CloseReason::ControlFrameLimit, 1008);
        check(CloseReason::InternalError, 1011);
        check(CloseReason::GoingAway, 1001);
    }
}
