//! A WebSocket connection as the request that opened it made it: its limits and its descriptors.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use http::HeaderMap;
use http::header::UPGRADE;
use tidegate_limiter::{Descriptor, Entry};

use crate::config::WebSocketLimits;

/// The limits of a WebSocket connection, with the descriptors of the request that opened it.
#[derive(Debug)]
pub(crate) struct WebSocketSession {
    pub(super) limits: Arc<WebSocketLimits>,
    /// The domain of the rules.
    pub(super) domain: String,
    /// The entries of each descriptor of a message.
    pub(super) descriptors: Vec<Vec<(String, String)>>,
    /// Tells the counters of this connection from those of others.
    pub(super) id: String,
}

// === impl WebSocketSession ===

impl WebSocketSession {
    /// A session whose messages are charged by `descriptors` in `domain`.
    pub(crate) fn new(
        limits: &Arc<WebSocketLimits>,
        domain: &str,
        descriptors: &[Descriptor<'_>],
    ) -> Self {
        let owned = |entry: &Entry<'_>| (entry.key.to_owned(), entry.value.to_owned());
        let descriptors = descriptors
            .iter()
            .map(|descriptor| descriptor.entries.iter().map(owned).collect())
            .collect();
        Self {
            limits: Arc::clone(limits),
            domain: domain.to_owned(),
            descriptors,
            // Every state has keys of its own, so this is as good as a random number.
            id: format!("{:016x}", RandomState::new().hash_one(())),
        }
    }
}

/// Returns true if a response switches to the WebSocket protocol.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let tokens = |line: &http::HeaderValue| {
        line.as_bytes()
            .split(|byte| *byte == b',')
            .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"websocket"))
    };
    headers.get_all(UPGRADE).iter().any(tokens)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(upgrade: &'static str, expected: bool) {
        let headers = HeaderMap::from_iter([(UPGRADE, HeaderValue::from_static(upgrade))]);
        assert_eq!(is_websocket(&headers), expected, "{upgrade}");
    }

    #[test]
    fn only_websocket_is_scanned() {
        check("websocket", true);
        check("WebSocket", true);
        check("h2c, websocket", true);
        check("h2c", false);
        check("websocket2", false);
        assert!(!is_websocket(&HeaderMap::new()));
    }
}
