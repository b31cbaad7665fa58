//! The one question that is asked, in Envoy's protocol as gRPC frames it, and its answer.

use bytes::{BufMut, Bytes, BytesMut};

/// The domain of the rules that the server is given.
pub const DOMAIN: &str = "bench";

/// The method that is called.
pub const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// An answer that lets pass, framed, as short as it can be.
pub const OK: &[u8] = b"\0\0\0\0\x02\x08\x01";

/// Tags of fields that have a length: the first and the second of a message.
const FIRST: u8 = 0x0a;
const SECOND: u8 = 0x12;

/// Bytes before a message: whether it is compressed, and its length.
const FRAME: usize = 5;

/// A question about one descriptor of one entry, framed.
pub fn question(key: &str, value: &str) -> Bytes {
    let entry = field_length(key) + field_length(value);
    let descriptor = 2 + entry;
    let length = field_length(DOMAIN) + 2 + descriptor;
    let mut message = BytesMut::with_capacity(FRAME + length);
    message.put_u8(0);
    message.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    put_text(&mut message, FIRST, DOMAIN);
    message.put_slice(&[SECOND, short(descriptor), FIRST, short(entry)]);
    put_text(&mut message, FIRST, key);
    put_text(&mut message, SECOND, value);
    message.freeze()
}

/// Whether a framed answer lets pass: its first field is the overall code, and that is OK.
pub fn lets_pass(answer: &[u8]) -> bool {
    answer.get(FRAME..FRAME + 2) == Some(&OK[FRAME..])
}

fn field_length(text: &str) -> usize {
    2 + text.len()
}

fn put_text(message: &mut BytesMut, tag: u8, text: &str) {
    message.put_slice(&[tag, short(text.len())]);
    message.put_slice(text.as_bytes());
}

/// A length in one byte, as the protocol has it below 128.
fn short(length: usize) -> u8 {
    u8::try_from(length)
        .ok()
        .filter(|length| *length < 128)
        .expect("what is asked here is short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_what_the_protocol_says() {
        let message = question("user", "u1");
        let expected = b"\0\0\0\0\x15\x0a\x05bench\x12\x0c\x0a\x0a\x0a\x04user\x12\x02u1";
        assert_eq!(&message[..], expected);
    }

    #[test]
    fn only_an_ok_lets_pass() {
        assert!(lets_pass(OK));
        assert!(!lets_pass(b"\0\0\0\0\x02\x08\x02"));
        assert!(!lets_pass(b""));
    }
}
