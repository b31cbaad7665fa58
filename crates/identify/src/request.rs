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
    /// The value of the header with this name, in lower case; lines that differ joined by [`join_lines`].
    fn value(&self, name: &str) -> Option<Cow<'_, str>>;

    /// Returns true if the header with this name has two lines that are not the same.
    fn has_differing_lines(&self, name: &str) -> bool;
}

/// Joins the lines of the header `name` to one value: those of `cookie` by `; ` (RFC 9113, section 8.2.3:
/// browsers send one line for each cookie over HTTP/2), all others by commas. Bytes that are not UTF-8 are
/// written as [`text_of`] says.
pub fn join_lines<'a>(
    name: &str,
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> Option<Cow<'a, str>> {
    let mut lines = lines.into_iter().map(text_of);
    let first = lines.next()?;
    let separator = if name == "cookie" { "; " } else { "," };
    Some(lines.fold(first, |joined, line| joined + separator + line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_by_what_their_header_separates_values_with() {
        let check = |name: &str, lines: &[&str], expected: Option<&str>| {
            let joined = join_lines(name, lines.iter().map(|line| line.as_bytes()));
            assert_eq!(joined.as_deref(), expected, "{name} {lines:?}");
        };
        check("x-user", &[], None);
        check("x-user", &["7"], Some("7"));
        check("x-user", &["7", "8"], Some("7,8"));
        check("cookie", &["a=1", "b=2"], Some("a=1; b=2"));
    }
}
