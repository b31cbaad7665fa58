//! The headers of a request, for `tidegate-identify`.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_identify::{HeaderText, Headers, is_same_variable};

/// The headers of a request. Names that servers [take for one](is_same_variable) are one header.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

// === impl HeaderLines ===

impl Headers for HeaderLines<'_> {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        let lines = self.0.get_all(name);
        let others = || {
            let names = self.0.keys().map(HeaderName::as_str);
            names.filter(|other| is_same_variable(other, name) && *other != name)
        };
        if others().next().is_none() {
            return HeaderText::of_lines(name, || lines.iter().map(HeaderValue::as_bytes));
        }
        let of_others = || others().flat_map(|other| self.0.get_all(other));
        let all = || lines.iter().chain(of_others()).map(HeaderValue::as_bytes);
        let value = HeaderText::of_lines(name, all)?;
        Some(HeaderText {
            has_differing_spellings: value.has_differing_lines,
            ..value
        })
    }
}
