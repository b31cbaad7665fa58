//! The headers of a request, for `tidegate-identify`.

use http::{HeaderMap, HeaderValue};
use tidegate_identify::{HeaderText, Headers};

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

// === impl HeaderLines ===

impl Headers for HeaderLines<'_> {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        let lines = self.0.get_all(name);
        HeaderText::of_lines(name, || lines.iter().map(HeaderValue::as_bytes))
    }
}
