//! The headers of a request, for `tidegate-identify`.

use std::borrow::Cow;

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use tidegate_identify::{Headers, join_lines};

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

// === impl HeaderLines ===

impl Headers for HeaderLines<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let lines = self.0.get_all(name);
        let is_list = name == COOKIE || self.has_differing_lines(name);
        let counted = if is_list { usize::MAX } else { 1 };
        join_lines(name, lines.iter().take(counted).map(HeaderValue::as_bytes))
    }

    fn has_differing_lines(&self, name: &str) -> bool {
        let mut lines = self.0.get_all(name).iter();
        let first = lines.next();
        lines.any(|line| Some(line) != first)
    }
}
