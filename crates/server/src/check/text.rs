//! A JSON body as text, whatever bytes its strings have.
//!
//! A gateway copies a header into a body as it is, or as its language reads bytes that are not UTF-8 (Python: half surrogates such as
//! `\udcff`). Neither is JSON to a strict reader, and a client chooses them, so they are written as [`text_of`] says before the body is
//! read as JSON.

use std::borrow::Cow;

use tidegate_identify::text_of;

/// The characters of `\u` and four digits.
const ESCAPE_BYTES: usize = 6;

/// Returns the body as text whose strings are the texts of their bytes. Valid JSON without U+FFFD is itself.
pub(crate) fn body_text(body: &[u8]) -> Cow<'_, str> {
    match text_of(body) {
        Cow::Borrowed(text) => escaped(text),
        Cow::Owned(text) => Cow::Owned(escaped(&text).into_owned()),
    }
}

/// Replaces the escapes of half surrogates and of U+FFFD.
fn escaped(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut rest, mut copied) = (text, 0);
    while let Some(index) = rest.find('\\') {
        rest = &rest[index..];
        let (length, replacement) = escape(rest.as_bytes());
        let start = text.len() - rest.len();
        if let Some(bytes) = replacement {
            out.push_str(&text[copied..start]);
            out.push_str(&text_of(&bytes));
            copied = start + length;
        }
        // What follows a backslash may be a character of several bytes, or nothing.
        rest = rest.get(length..).unwrap_or_default();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The length of the escape that `rest` begins with, and the bytes to write instead of it.
fn escape(rest: &[u8]) -> (usize, Option<[u8; 3]>) {
    match code_unit(rest) {
        None if rest.get(1).is_some_and(u8::is_ascii) => (2, None),
        None => (1, None),
        Some(unit @ 0xd800..0xdc00) => match code_unit(&rest[ESCAPE_BYTES..]) {
            Some(0xdc00..0xe000) => (2 * ESCAPE_BYTES, None),
            _ => (ESCAPE_BYTES, Some(three_bytes(unit))),
        },
        Some(unit @ (0xdc00..0xe000 | 0xfffd)) => (ESCAPE_BYTES, Some(three_bytes(unit))),
        Some(_) => (ESCAPE_BYTES, None),
    }
}

/// The number of an escape such as `\u00e9`.
fn code_unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

/// A code unit from U+0800 on in the form of UTF-8.
const fn three_bytes(unit: u16) -> [u8; 3] {
    let [high, low] = unit.to_be_bytes();
    [
        0xe0 | high >> 4,
        0x80 | (high & 0xf) << 2 | low >> 6,
        0x80 | low & 0x3f,
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde::de::{Deserializer, Visitor};

    use super::*;

    /// The bytes of a JSON string, as `/json` reads them.
    #[derive(Debug)]
    struct StringBytes(Vec<u8>);

    struct BytesVisitor;

    impl<'de> Deserialize<'de> for StringBytes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(BytesVisitor)
        }
    }

    impl Visitor<'_> for BytesVisitor {
        type Value = StringBytes;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<StringBytes, E> {
            Ok(StringBytes(bytes.to_vec()))
        }
    }

    proptest! {
        /// A string has the same text here as in `/json`: one caller has one counter.
        #[test]
        fn a_string_has_one_text_in_all_bodies(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    &b"\\ud800"[..], b"\\uDFFF", b"\\udc00", b"\\ufffd", b"\\u00e9", b"\\\\", b"\\\"", b"\\n", b"ud800",
                    b"\xff", b"\xed\xa0\x80", "\u{fffd}".as_bytes(), "\u{e9}".as_bytes(), b"a", b"dc00",
                ]),
                0..8,
            ),
        ) {
            let body = [&b"\""[..], &pieces.concat(), b"\""].concat();
            let bytes: StringBytes = serde_json::from_slice(&body).unwrap();
            let text: String = serde_json::from_str(&body_text(&body)).unwrap();
            prop_assert_eq!(text, text_of(&bytes.0));
        }

        /// No body is a panic.
        #[test]
        fn any_bytes_have_a_text(body in prop::collection::vec(prop::sample::select(b"\\ud8f\xc3\xa9\"".to_vec()), 0..12)) {
            body_text(&body);
        }
    }
}
