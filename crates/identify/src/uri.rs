//! Paths, queries and hosts, each in one spelling.
//!
//! `/login`, `//login`, `/./login` and `/%6Cogin` reach the same handler; if each were a value of its
//! own, a client would choose its counter.

use std::borrow::Cow;
use std::num::NonZeroU8;

/// The path of a URI in its normal form (RFC 3986, section 6.2.2): unreserved characters decoded, other
/// escapes in upper case, no dot segments; and, as servers have it, no empty segments.
pub fn path(uri: &str) -> Option<Cow<'_, str>> {
    let path = split_query(uri).0;
    let path = without_authority(path);
    if path.is_empty() {
        return None;
    }
    if is_normal(path) {
        return Some(Cow::Borrowed(path));
    }
    Some(Cow::Owned(without_dots(&decode_unreserved(path))))
}

/// Whether a path has no escape, no empty segment and no segment that begins with a dot. One pass over the bytes, because each request
/// takes it.
fn is_normal(path: &str) -> bool {
    let mut before = 0;
    path.bytes().all(|byte| {
        let is_normal = byte != b'%' && !(before == b'/' && matches!(byte, b'/' | b'.'));
        before = byte;
        is_normal
    })
}

/// The segment of the path in its normal form with this number, counted from 1.
pub(crate) fn path_segment(uri: &str, number: NonZeroU8) -> Option<Cow<'_, str>> {
    // The text before the first slash is segment 0.
    let number = usize::from(number.get());
    match path(uri)? {
        Cow::Borrowed(path) => path.split('/').nth(number).map(Cow::Borrowed),
        Cow::Owned(path) => path
            .split('/')
            .nth(number)
            .map(|segment| Cow::Owned(segment.to_owned())),
    }
}

/// The first value that the query of a URI has for `name`, decoded.
pub(crate) fn query<'a>(uri: &'a str, name: &str) -> Option<Cow<'a, str>> {
    query_parameters(split_query(uri).1?)
        .find(|(its_name, _)| its_name == name)
        .map(|(_, value)| value)
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
fn split_query(uri: &str) -> (&str, Option<&str>) {
    let uri = uri.split_once('#').map_or(uri, |(uri, _)| uri);
    uri.split_once('?')
        .map_or((uri, None), |(path, query)| (path, Some(query)))
}

/// The path of `http://host/path`, which a client may send to a proxy.
fn without_authority(path: &str) -> &str {
    if path.starts_with('/') {
        return path;
    }
    match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => path,
    }
}

/// Decodes the escapes that mean the same as the character they stand for, and writes the others in
/// upper case.
fn decode_unreserved(path: &str) -> String {
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let Some(byte) = escaped(&rest.as_bytes()[at..]) else {
            // Left alone it could become an escape together with what follows.
            decoded.push_str("%25");
            rest = &rest[at + 1..];
            continue;
        };
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            decoded.push(byte.into());
        } else {
            decoded.push_str(&rest[at..at + 3].to_ascii_uppercase());
        }
        rest = &rest[at + 3..];
    }
    decoded.push_str(rest);
    decoded
}

/// Resolves `.` and `..` and drops empty segments. A last slash stays.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    let is_folder = ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let mut normal = String::with_capacity(path.len());
    for segment in &kept {
        normal.push('/');
        normal.push_str(segment);
    }
    if kept.is_empty() || is_folder {
        normal.push('/');
    }
    normal
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
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// The byte that `%41` stands for.
fn escaped(text: &[u8]) -> Option<u8> {
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
    fn a_path_has_one_spelling() {
        let check = |uri: &str, expected: &str| {
            assert_eq!(path(uri).as_deref(), Some(expected), "{uri}");
        };
        for login in [
            "/login",
            "//login",
            "/./login",
            "/x/../login",
            "/%6cogin",
            "/%6Cogin",
            "/../../login",
            "/x/%2e%2E/login",
            "/login?next=/home",
            "/login#top",
            "http://api.example/login",
            "///login?a=//b",
        ] {
            check(login, "/login");
        }
        check("/", "/");
        check("//", "/");
        check("/..", "/");
        check("http://api.example", "/");
        check("/a/", "/a/");
        check("/a//", "/a/");
        check("/a/b/..", "/a/");
        check("/a/.", "/a/");
        check("/a/.well-known", "/a/.well-known");
        check("/a..b/...", "/a..b/...");
        check("/a%2fb", "/a%2Fb");
        check("/caf%c3%a9", "/caf%C3%A9");
        check("/100%", "/100%25");
        check("/%zz%4", "/%25zz%254");
        check("/%%341", "/%2541");
        check("/é%C3é", "/é%C3é");
        check("/Login", "/Login");
        check("*", "*");
        check("api.example:443", "api.example:443");
        assert_eq!(path(""), None);
        assert_eq!(path("?a=b"), None);
    }

    #[test]
    fn segments_are_counted_from_one() {
        let check = |uri: &str, number: u8, expected: Option<&str>| {
            let number = NonZeroU8::new(number).expect("not zero");
            assert_eq!(path_segment(uri, number).as_deref(), expected, "{uri}");
        };
        check("/users/42/posts?x=/y", 1, Some("users"));
        check("/users/42/posts", 2, Some("42"));
        check("/users/42/posts", 3, Some("posts"));
        check("/users/42/posts", 4, None);
        check("//users/./%34%32", 2, Some("42"));
        check("/users/a%2fb", 2, Some("a%2Fb"));
        check("/users/", 2, Some(""));
        check("/", 1, Some(""));
        check("*", 1, None);
        check("", 1, None);
    }

    #[test]
    fn a_parameter_is_decoded_and_the_first_of_its_name() {
        let check = |uri: &str, expected: Option<&str>| {
            assert_eq!(query(uri, "user id").as_deref(), expected, "{uri}");
        };
        check("/a?user+id=4%322+x", Some("422 x"));
        check("/a?x=1&user%20id=7&user+id=8", Some("7"));
        check("/a?user+id", Some(""));
        check("/a?user+id=a=b", Some("a=b"));
        check("/a?user+id=%zz%", Some("%zz%"));
        check("/a?user+id=%ff", Some("\u{fffd}"));
        check("/a?x=1#?user+id=7", None);
        check("/user+id=7", None);
        check("", None);
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
