//! The headers of a request, for `tidegate-identify`.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};
use tidegate_identify::{Headers, join_lines};

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

// === impl HeaderLines ===

impl Headers for HeaderLines<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let lines = self.0.get_all(name).iter();
        join_lines(name, lines.map(HeaderValue::as_bytes))
    }
}
