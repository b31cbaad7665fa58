//! The request that a client made, as far as it is known.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::{Claims, Identities, text_of};

/// A request, as far as somebody trusted described it. An unknown part is `None`.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its method.
    pub method: Option<&'a str>,
    /// Its path and query, as the client sent them.
    pub uri: Option<&'a str>,
    /// The host it was sent to.
    pub host: Option<&'a str>,
    /// Its sender, as [`ClientAddress::find`](crate::ClientAddress::find) says.
    pub client: Option<IpAddr>,
    /// Its headers.
    pub headers: &'a dyn Headers,
    /// The tables by which callers are identified.
    pub identities: &'a Identities,
    /// The claims of its token, which must have been verified.
    pub claims: Option<&'a Claims>,
    /// The subject of the TLS client certificate, which must have been verified.
    pub certificate: Option<&'a str>,
    /// The name of its route in the gateway.
    pub route: Option<&'a str>,
}

/// The headers of a request.
pub trait Headers {
    /// The value of the header with this name, in lower case.
    fn value(&self, name: &str) -> Option<HeaderText<'_>>;
}

/// The value of a header, made of all its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderText<'a> {
    /// The one line; lines that differ are joined: those of `cookie` by `; ` (RFC 9113, section 8.2.3: browsers send one line for
    /// each cookie over HTTP/2), all others by commas. Bytes that are not UTF-8 are written as [`text_of`] says.
    pub text: Cow<'a, str>,
    /// True if two lines are not the same.
    pub has_differing_lines: bool,
    /// True if such lines have names of different [spelling](is_same_variable), such as `X-User` and `X_User`.
    pub has_differing_spellings: bool,
}

// === impl HeaderText ===

impl<'a> HeaderText<'a> {
    /// The value of the header `name` with these lines; `None` if it has none.
    pub fn of_lines<I: Iterator<Item = &'a [u8]>>(
        name: &str,
        lines: impl Fn() -> I,
    ) -> Option<Self> {
        let mut others = lines();
        let first = others.next()?;
        let has_differing_lines = others.any(|line| line != first);
        let is_cookie = name == "cookie";
        let mut text = text_of(first);
        if is_cookie || has_differing_lines {
            let separator = if is_cookie { "; " } else { "," };
            let others = lines().skip(1).map(text_of);
            text = others.fold(text, |joined, line| joined + separator + line);
        }
        Some(Self {
            text,
            has_differing_lines,
            has_differing_spellings: false,
        })
    }
}

impl HeaderText<'_> {
    /// The same, if a proxy joined the lines with commas: the values between commas are lines.
    #[must_use]
    pub fn split_lines(self) -> Self {
        let mut lines = self.text.split(',').map(str::trim_ascii);
        let first = lines.next().unwrap_or_default();
        if lines.any(|line| line != first) {
            return Self {
                has_differing_lines: true,
                ..self
            };
        }
        // Lines that are the same count as one.
        let text = Cow::Owned(first.to_owned());
        Self { text, ..self }
    }
}

impl<'a> From<&'a str> for HeaderText<'a> {
    /// The value of a header with this one line.
    fn from(line: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(line),
            has_differing_lines: false,
            has_differing_spellings: false,
        }
    }
}

/// True if servers that make variables of headers (CGI, WSGI, PHP) take both names, in lower case, for one: `x-user` and `x_user`.
pub fn is_same_variable(name: &str, other: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let is_same = |(one, other): (u8, u8)| fold(one) == fold(other);
    name.len() == other.len() && name.bytes().zip(other.bytes()).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_by_what_their_header_separates_values_with() {
        let check = |name: &str, lines: &[&str], expected: Option<(&str, bool)>| {
            let value = HeaderText::of_lines(name, || lines.iter().map(|line| line.as_bytes()));
            let found = value.as_ref().map(|it| (&*it.text, it.has_differing_lines));
            assert_eq!(found, expected, "{name} {lines:?}");
        };
        check("x-user", &[], None);
        check("x-user", &["7"], Some(("7", false)));
        check("x-user", &["7", "7"], Some(("7", false)));
        check("x-user", &["7", "7", "8"], Some(("7,7,8", true)));
        check("cookie", &["a=1", "b=2"], Some(("a=1; b=2", true)));
        check("cookie", &["a=1", "a=1"], Some(("a=1; a=1", false)));
    }

    #[test]
    fn values_of_a_joined_line_differ_unless_all_are_the_same() {
        for (joined, text, has_differing_lines) in [
            ("", "", false),
            ("a", "a", false),
            ("a,a", "a", false),
            ("a, a", "a", false),
            ("a,b", "a,b", true),
            ("a,", "a,", true),
            (",a", ",a", true),
            ("a,a,b", "a,a,b", true),
        ] {
            let split = HeaderText::from(joined).split_lines();
            let found = (&*split.text, split.has_differing_lines);
            assert_eq!(found, (text, has_differing_lines));
        }
    }
}
