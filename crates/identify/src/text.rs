//! The text by which bytes of a client are counted.
//!
//! Header values are bytes, and a client sends the bytes it likes; keys and values of descriptors are text. Bytes that are valid UTF-8
//! are their own text. Each byte that is not is written as U+FFFD and two hexadecimal digits: `bob\xff` is counted as `bob�ff`. So is
//! U+FFFD itself, as the three bytes of its UTF-8 form, because a text that holds it could otherwise be mistaken for an escape. Hence
//! no two byte strings have the same text, and a text is at most five times as long as its bytes.

use std::borrow::Cow;

/// The character before the two digits of an escaped byte.
const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// Returns the text of `bytes`, borrowed unless it has escapes.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match plain_text(bytes) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(escaped_text(bytes)),
    }
}

/// Returns the text of `bytes` if it has no escapes.
pub fn plain_text(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    // Nearly all texts are ASCII, which is quicker to see than the absence of a character.
    (text.is_ascii() || !text.contains(ESCAPE)).then_some(text)
}

/// Returns the text of a request target: each byte that is not UTF-8 becomes a percent-escape, which servers read as the same byte.
pub fn uri_text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(escape_invalid(bytes, '%', |text, valid| {
            text.push_str(valid);
        })),
    }
}

fn escaped_text(bytes: &[u8]) -> String {
    escape_invalid(bytes, ESCAPE, |text, valid| {
        for part in valid.split_inclusive(ESCAPE) {
            match part.strip_suffix(ESCAPE) {
                Some(before) => {
                    text.push_str(before);
                    for byte in ESCAPE.encode_utf8(&mut [0; 4]).bytes() {
                        push_escape(text, ESCAPE, byte);
                    }
                }
                None => text.push_str(part),
            }
        }
    })
}

/// Escapes the invalid bytes, and writes the valid text between them by `push_valid`.
fn escape_invalid(bytes: &[u8], mark: char, push_valid: impl Fn(&mut String, &str)) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        push_valid(&mut text, chunk.valid());
        for byte in chunk.invalid() {
            push_escape(&mut text, mark, *byte);
        }
    }
    text
}

fn push_escape(text: &mut String, mark: char, byte: u8) {
    text.push(mark);
    for digit in [byte >> 4, byte & 0xf] {
        text.extend(char::from_digit(digit.into(), 16));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes that a text was made of.
    fn bytes_of(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = &rest[first.len_utf8()..];
            if first == ESCAPE {
                let (digits, after) = rest.split_at(2);
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = after;
            } else {
                bytes.extend(first.encode_utf8(&mut [0; 4]).bytes());
            }
        }
        bytes
    }

    #[test]
    fn bytes_have_one_text() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(text_of(bytes), expected);
        check(b"", "");
        check(b"bob", "bob");
        check("bób".as_bytes(), "bób");
        check(b"bob\xff", "bob\u{fffd}ff");
        check(b"\xc3(", "\u{fffd}c3(");
        check(b"\xed\xa0\x80", "\u{fffd}ed\u{fffd}a0\u{fffd}80");
        check(
            "bob\u{fffd}ff".as_bytes(),
            "bob\u{fffd}ef\u{fffd}bf\u{fffd}bdff",
        );
    }

    #[test]
    fn a_request_target_is_escaped_as_servers_read_it() {
        assert_eq!(uri_text(b"/a\xff?b=\xfe"), "/a%ff?b=%fe");
        assert_eq!(
            uri_text("/caf\u{e9}\u{fffd}".as_bytes()),
            "/caf\u{e9}\u{fffd}"
        );
    }

    /// Pieces of which texts are likely to be mistaken for each other.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just("\u{fffd}".as_bytes().to_vec()),
            Just("\u{fffd}ff".as_bytes().to_vec()),
            Just(b"\xef\xbf".to_vec()),
            Just(b"ff".to_vec()),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// The bytes can be had back from the text, so no two byte strings share one.
        #[test]
        fn no_two_byte_strings_have_the_same_text(bytes in pieces()) {
            let text = text_of(&bytes);
            prop_assert_eq!(bytes_of(&text), bytes.clone());
            prop_assert!(text.len() <= 5 * bytes.len());
        }
    }
}
