//! Paths in one spelling, and the two ways in which servers read them.
//!
//! `/login`, `//login`, `/./login` and `/%6Cogin` reach the same handler; if each were a value of its own, a client would choose its
//! counter. The *normal form* is the one spelling. Some servers read more into it: they decode every escape before they split the path
//! at slashes, take a backslash for a slash, or leave `;parameters` out. [`LooseReading`] is the path as those see it.

use std::borrow::Cow;
use std::num::NonZeroU8;

use crate::uri::{escaped, split_query};

/// A path as a server sees it that decodes all it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseReading {
    /// The path, in its normal form.
    pub path: String,
    /// True if dot segments, a NUL or overlong forms of dots and slashes come to light, so that the path leads elsewhere than its normal
    /// form or is cut short.
    pub is_unsafe: bool,
}

/// True for bytes that stand for themselves however a path is read. `;` is not among them, because it may begin parameters.
static IS_PLAIN: [bool; 256] = {
    let mut is_plain = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        is_plain[byte as usize] = is_legal(byte) && byte != b';';
        byte += 1;
    }
    is_plain
};

/// The path of a URI in its normal form (RFC 3986, section 6.2.2): no escapes of characters that a segment may have, other escapes in
/// upper case, no dot segments; and, as servers have it, no empty segments. Escapes of `;` and `+` stay, because servers tell them from
/// the characters. It is borrowed if it has only one reading.
pub fn normal_path(uri: &str) -> Option<Cow<'_, str>> {
    // Most are nothing but a path: a `?` is not plain.
    if uri.starts_with('/') && is_plain(uri) {
        return Some(Cow::Borrowed(uri));
    }
    let path = without_authority(split_query(uri).0);
    if path.is_empty() {
        return None;
    }
    if is_plain(path) {
        return Some(Cow::Borrowed(path));
    }
    let is_decoded = |byte| is_legal(byte) && !matches!(byte, b'/' | b';' | b'+');
    Some(Cow::Owned(without_dots(&with_escapes(path, is_decoded))))
}

/// The path that is sent on in place of `path`: the same, but escapes of reserved characters stay, because an upstream may tell them
/// apart and a client may have signed them.
pub fn forwarded_path(path: &str) -> Cow<'_, str> {
    if is_plain(path) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(without_dots(&with_escapes(path, is_unreserved)))
}

/// The path of a URI by which requests are counted: its loose reading, so that no spelling has a counter of its own.
pub(crate) fn counted_path(uri: &str) -> Option<Cow<'_, str>> {
    Some(match normal_path(uri)? {
        Cow::Borrowed(path) => Cow::Borrowed(path),
        Cow::Owned(path) => Cow::Owned(LooseReading::of(&path).path),
    })
}

/// A path without the slash at its end, unless it is all of the path.
pub(crate) fn without_last_slash(path: Cow<'_, str>) -> Cow<'_, str> {
    match path {
        path if path == "/" || !path.ends_with('/') => path,
        Cow::Borrowed(path) => Cow::Borrowed(path.trim_end_matches('/')),
        Cow::Owned(path) => Cow::Owned(path.trim_end_matches('/').to_owned()),
    }
}

/// The segment with this number, counted from 1, of the path by which requests are counted.
pub(crate) fn path_segment(uri: &str, number: NonZeroU8) -> Option<Cow<'_, str>> {
    // The text before the first slash is segment 0.
    let number = usize::from(number.get());
    match counted_path(uri)? {
        Cow::Borrowed(path) => path.split('/').nth(number).map(Cow::Borrowed),
        Cow::Owned(path) => path
            .split('/')
            .nth(number)
            .map(|segment| Cow::Owned(segment.to_owned())),
    }
}

// === impl LooseReading ===

impl LooseReading {
    /// Reads a path that is in its normal form.
    pub fn of(normal: &str) -> Self {
        let mut decoded = Vec::with_capacity(normal.len());
        for byte in normal.bytes() {
            decoded.push(byte);
            // A decoded byte may be the end of another escape: `%252E` is `%2E` and then a dot.
            while let Some(at) = decoded.len().checked_sub(3)
                && let Some(byte) = escaped(&decoded[at..])
            {
                decoded.truncate(at);
                decoded.push(byte);
            }
        }
        // A server that decodes before it looks for the query ends the path there.
        let end = decoded.iter().position(|byte| matches!(byte, b'?' | b'#'));
        decoded.truncate(end.unwrap_or(decoded.len()));
        let is_overlong = |pair: &[u8]| matches!(pair, b"\xC0\xAE" | b"\xC0\xAF" | b"\xC1\x9C");
        let mut is_unsafe = decoded.contains(&0) || decoded.windows(2).any(is_overlong);
        let mut path = String::with_capacity(normal.len());
        let segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
        // The first one is what stands before the first slash.
        for segment in segments.skip(1) {
            let name = segment.split(|byte| *byte == b';').next();
            let name = name.unwrap_or_default();
            is_unsafe |= matches!(name, b"." | b"..");
            path.push('/');
            for byte in name {
                push(&mut path, *byte);
            }
        }
        Self {
            path: without_dots(&path),
            is_unsafe,
        }
    }

    /// The path of a safe reading by a server that takes an escaped slash for a part of its segment, and decodes all else.
    pub fn with_escaped_slashes(normal: &str) -> String {
        // A path with a NUL is not safe, so a NUL can stand for the slash meanwhile.
        let reading = Self::of(&normal.replace("%2F", "%00"));
        reading.path.replace("%00", "%2F")
    }
}

/// True if a path has one reading and is in its normal form. One pass over the bytes, because each request takes it.
fn is_plain(path: &str) -> bool {
    let mut before = 0;
    path.bytes().all(|byte| {
        let is_plain =
            IS_PLAIN[usize::from(byte)] && !(before == b'/' && matches!(byte, b'/' | b'.'));
        before = byte;
        is_plain
    })
}

/// True if a path may have this byte as it is (RFC 3986, section 3.3).
const fn is_legal(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'/' | b':' | b'@' | b'!' | b'$' | b'&'..=b',' | b';' | b'='
        )
}

/// True if an escape of this byte means the same as the byte, by every reading.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
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

/// Decodes some escapes, writes the others in upper case, and escapes what a path cannot have as it is.
fn with_escapes(path: &str, is_decoded: impl Fn(u8) -> bool) -> String {
    let mut written = String::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match escaped(rest) {
            Some(byte) if is_decoded(byte) => written.push(byte.into()),
            Some(byte) => push_escape(&mut written, byte),
            // A percent sign alone could become an escape together with what follows, so it is escaped.
            None => push(&mut written, *first),
        }
        rest = if escaped(rest).is_some() {
            &rest[3..]
        } else {
            after
        };
    }
    written
}

/// Writes a byte as it is, or as an escape if a path cannot have it.
fn push(path: &mut String, byte: u8) {
    if is_legal(byte) {
        path.push(byte.into());
    } else {
        push_escape(path, byte);
    }
}

fn push_escape(path: &mut String, byte: u8) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    path.push('%');
    path.push(DIGITS[usize::from(byte >> 4)]);
    path.push(DIGITS[usize::from(byte & 15)]);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        let check = |uri: &str, expected: &str| {
            assert_eq!(normal_path(uri).as_deref(), Some(expected), "{uri}");
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
            "/x/.%2e/login",
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
        check("/a\\b%5c", "/a%5Cb%5C");
        check("/%40me%3a%21", "/@me:!");
        check("/a;b=c%3bd%2b", "/a;b=c%3Bd%2B");
        check("/caf%c3%a9", "/caf%C3%A9");
        check("/café", "/caf%C3%A9");
        check("/{a}|\"", "/%7Ba%7D%7C%22");
        check("/100%", "/100%25");
        check("/%zz%4", "/%25zz%254");
        check("/%%341", "/%2541");
        check("/é%C3é", "/%C3%A9%C3%C3%A9");
        check("/Login", "/Login");
        check("*", "*");
        check("api.example:443", "api.example:443");
        assert_eq!(normal_path(""), None);
        assert_eq!(normal_path("?a=b"), None);
    }

    #[test]
    fn reserved_characters_are_sent_on_as_they_came() {
        let check = |path: &str, expected: &str| {
            assert_eq!(forwarded_path(path), expected, "{path}");
        };
        check("/a", "/a");
        check("/arn%3Aaws%3a%40", "/arn%3Aaws%3A%40");
        check("/x/%2e%2e/%6cogin//", "/login/");
        check("/a%2fb;c", "/a%2Fb;c");
        check("/é\\", "/%C3%A9%5C");
    }

    proptest! {
        /// A route is matched by the normal form and cuts the forwarded one at the same slash.
        #[test]
        fn both_forms_have_the_same_segments(path in "/([/.;%\\\\@:é]|%2[eEfF5]|%40|%3[aB]|%5c|[ab2]){0,12}") {
            let normal = normal_path(&path).expect("a path");
            let forwarded = forwarded_path(&path);
            prop_assert_eq!(normal_path(&forwarded), Some(normal.clone()));
            let n_segments = |path: &str| path.split('/').count();
            prop_assert_eq!(n_segments(&forwarded), n_segments(&normal));
            let pairs = normal.split('/').zip(forwarded.split('/'));
            for (segment, sent) in pairs.skip(1) {
                let (segment, sent) = (format!("/{segment}"), format!("/{sent}"));
                prop_assert_eq!(normal_path(&sent), Some(Cow::Owned(segment)));
            }
        }
    }

    #[test]
    fn a_loose_reading_decodes_all_it_can() {
        let check = |uri: &str, expected: &str, is_unsafe: bool| {
            let reading = LooseReading::of(&normal_path(uri).unwrap());
            assert_eq!(reading.path, expected, "{uri}");
            assert_eq!(reading.is_unsafe, is_unsafe, "{uri}");
            assert_eq!(counted_path(uri).as_deref(), Some(expected), "{uri}");
        };
        check("/login", "/login", false);
        check("/projects/a%2fb", "/projects/a/b", false);
        check("/%2flogin", "/login", false);
        check("/a\\b%5Cc", "/a/b/c", false);
        check("/a;v=1/b;c", "/a/b", false);
        check("/;/b/", "/b/", false);
        check("/100%25", "/100%25", false);
        check("/caf%C3%A9%20x", "/caf%C3%A9%20x", false);
        check("/a%252Fb", "/a/b", false);
        check("/login%3Fx", "/login", false);
        check("/login%2523x/y", "/login", false);
        check("/%C0%AE%C0%AE/login", "/%C0%AE%C0%AE/login", true);
        for unsafe_uri in [
            "/x/..%2flogin",
            "/x%2f..%2flogin",
            "/x/%2e%2e%2Flogin",
            "/x/..%5clogin",
            "/x\\..\\login",
            "/x/..;/login",
            "/x/..;a=b/login",
            "/x/..%3B/login",
            "/x/%252e%252e/login",
            "/x/%25252e./login",
        ] {
            check(unsafe_uri, "/login", true);
        }
        check("/x/.;/y", "/x/y", true);
        check("/login%00", "/login%00", true);
        check("/login%2500", "/login%00", true);
    }

    #[test]
    fn a_loose_reading_may_leave_escaped_slashes() {
        let check = |uri: &str, expected: &str| {
            let normal = normal_path(uri).unwrap();
            assert_eq!(LooseReading::with_escaped_slashes(&normal), expected);
        };
        check("/a%2fb", "/a%2Fb");
        check("/a%2Fb;c/d%5ce", "/a%2Fb/d/e");
        check("/a%252Fb", "/a/b");
        check("/a%2%2Fb", "/a%252%2Fb");
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
        check("/users/42;a=1", 2, Some("42"));
        check("/users/42;a=2/posts", 2, Some("42"));
        check("/users;x/%2534%2532", 2, Some("42"));
        check("/login;x", 1, Some("login"));
        check("/;x/login", 1, Some("login"));
        check("/users\\42", 2, Some("42"));
        check("/users/a%2fb", 2, Some("a"));
        check("/users/a%2fb", 3, Some("b"));
        check("/users/caf%c3%a9", 2, Some("caf%C3%A9"));
        check("/users/", 2, Some(""));
        check("/", 1, Some(""));
        check("*", 1, None);
        check("", 1, None);
    }
}
