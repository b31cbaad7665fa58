//! The headers of a request, for `tidegate-identify`.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};
use tidegate_identify::Headers;

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

// === impl HeaderLines ===

impl Headers for HeaderLines<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut lines = self.0.get_all(name).iter().map(HeaderValue::as_bytes);
        let first = String::from_utf8_lossy(lines.next()?);
        Some(lines.fold(first, |joined, line| {
            joined + "," + String::from_utf8_lossy(line)
        }))
    }
}
