//! Queries and hosts, each in one spelling.

use std::borrow::Cow;

use crate::text_of;
use crate::value_list::{AmbiguousValue, ListPlace};

/// The value that the query of a URI has for `name`, decoded.
///
/// # Errors
///
/// If there are several that differ.
pub(crate) fn query<'a>(uri: &'a str, name: &str) -> Result<Option<Cow<'a, str>>, AmbiguousValue> {
    ListPlace::Query.only(name, query_values(uri, name))
}

/// All values that the query of a URI has for `name`, decoded.
pub(crate) fn query_values<'a>(uri: &'a str, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    let parameters = split_query(uri).1.into_iter().flat_map(query_parameters);
    parameters.filter_map(move |(its_name, value)| (its_name == name).then_some(value))
}

/// The names and values of a query, in order and decoded; one without a `=` has an empty value.
pub fn query_parameters(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

/// A host in lower case, without port and trailing dot.
pub fn host(host: &str) -> Cow<'_, str> {
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

/// What stands before the `?`, and what after it; a fragment is neither.
pub(crate) fn split_query(uri: &str) -> (&str, Option<&str>) {
    let uri = uri.split_once('#').map_or(uri, |(uri, _)| uri);
    uri.split_once('?')
        .map_or((uri, None), |(path, query)| (path, Some(query)))
}

/// Decodes a name or value of a query.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        decoded.push(match first {
            b'+' => b' ',
            b'%' => match escaped_tail(after) {
                Some(byte) => {
                    rest = &after[2..];
                    byte
                }
                None => b'%',
            },
            other => *other,
        });
    }
    Cow::Owned(text_of(&decoded).into_owned())
}

/// The byte that `%41` stands for.
pub(crate) fn escaped(text: &[u8]) -> Option<u8> {
    escaped_tail(text.strip_prefix(b"%")?)
}

fn escaped_tail(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded_and_has_one_value() {
        let check = |uri: &str, expected: Option<&str>| {
            let value = query(uri, "user id").expect("one value");
            assert_eq!(value.as_deref(), expected, "{uri}");
        };
        check("/a?user+id=4%322+x", Some("422 x"));
        check("/a?x=1&user%20id=7&user+id=%37", Some("7"));
        check("/a?user+id", Some(""));
        check("/a?user+id=a=b", Some("a=b"));
        check("/a?user+id=%zz%", Some("%zz%"));
        check("/a?user+id=%ff", Some("\u{fffd}ff"));
        check("/a?user+id=%fe", Some("\u{fffd}fe"));
        check("/a?x=1#?user+id=7", None);
        check("/user+id=7", None);
        check("", None);
        for uri in ["/a?user+id=7&user%20id=8", "/a?user+id=7&user+id"] {
            let fault = query(uri, "user id").expect_err(uri).to_string();
            assert_eq!(fault, "the query parameters `user id` differ");
        }
    }

    #[test]
    fn a_host_has_one_spelling() {
        for text in [
            "api.example",
            "API.Example",
            "api.example:8080",
            "api.example.",
            "Api.example.:80",
        ] {
            assert_eq!(host(text), "api.example");
        }
        assert_eq!(host("[2001:DB8::1]:80"), "[2001:db8::1]");
        assert_eq!(host("[2001:db8::1]"), "[2001:db8::1]");
    }
}
