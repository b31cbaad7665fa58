//! The headers on which the way of a request depends.

use http::header::{CONTENT_TYPE, EXPECT, HeaderName, ORIGIN, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue};

use crate::answer::Dialogue;

/// A header on which the way of a request depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotedHeader {
    ContentType,
    Expect,
    Origin,
    TransferEncoding,
    Upgrade,
}

/// The noted headers that a request has. One pass over its headers costs less than a look for each, and most requests have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotedHeaders(u8);

const NAMES: [(NotedHeader, HeaderName); 5] = [
    (NotedHeader::ContentType, CONTENT_TYPE),
    (NotedHeader::Expect, EXPECT),
    (NotedHeader::Origin, ORIGIN),
    (NotedHeader::TransferEncoding, TRANSFER_ENCODING),
    (NotedHeader::Upgrade, UPGRADE),
];

// === impl NotedHeaders ===

impl NotedHeaders {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut found = 0;
        for name in headers.keys() {
            for (noted, noted_name) in &NAMES {
                found |= u8::from(name == noted_name) << *noted as u8;
            }
        }
        Self(found)
    }

    pub(crate) const fn has(self, header: NotedHeader) -> bool {
        self.0 >> header as u8 & 1 == 1
    }

    /// The client's side of the response to a request with these headers.
    pub(crate) fn dialogue(self, headers: &HeaderMap) -> Dialogue {
        if self.has(NotedHeader::ContentType) {
            Dialogue::of(headers)
        } else {
            Dialogue::Http
        }
    }

    /// The origin of the page that sends a request with these headers.
    pub(crate) fn origin(self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.has(NotedHeader::Origin) {
            headers.get(ORIGIN).cloned()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_and_no_other() {
        for (present, name) in &NAMES {
            let line = |name: &HeaderName| (name.clone(), HeaderValue::from_static("x"));
            let headers = HeaderMap::from_iter([name, &http::header::HOST].map(line));
            let found = NotedHeaders::of(&headers);
            for (noted, _) in &NAMES {
                assert_eq!(found.has(*noted), noted == present, "{noted:?}");
            }
        }
    }
}
