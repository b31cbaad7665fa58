//! Errors as gRPC clients expect them: a response without a message, whose head carries the status.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// A response of nothing but headers; with `retry_after`, a `google.rpc.RetryInfo` is among the details.
pub(super) fn response(
    status: StatusCode,
    message: &str,
    retry_after: Option<u64>,
) -> Response<Bytes> {
    let code = code(status);
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(GRPC_STATUS, HeaderValue::from(code));
    if let Ok(value) = HeaderValue::from_str(&percent_encoded(message)) {
        headers.insert(GRPC_MESSAGE, value);
    }
    if let Some(seconds) = retry_after
        && let Ok(value) = HeaderValue::from_str(&base64(&details(code, message, seconds)))
    {
        headers.insert(GRPC_STATUS_DETAILS, value);
    }
    response
}

/// The gRPC code of a status.
fn code(status: StatusCode) -> u16 {
    match status.as_u16() {
        429 | 413 => 8,  // RESOURCE_EXHAUSTED
        401 => 16,       // UNAUTHENTICATED
        403 => 7,        // PERMISSION_DENIED
        404 | 405 => 12, // UNIMPLEMENTED
        408 | 504 => 4,  // DEADLINE_EXCEEDED
        502 | 503 => 14, // UNAVAILABLE
        400..=499 => 3,  // INVALID_ARGUMENT
        _ => 13,         // INTERNAL
    }
}

/// A `google.rpc.Status` with one `google.rpc.RetryInfo`, as protobuf.
fn details(code: u16, message: &str, retry_after: u64) -> Vec<u8> {
    let mut delay = Vec::new(); // google.protobuf.Duration
    put_number(&mut delay, 1, retry_after);
    let mut info = Vec::new();
    put_bytes(&mut info, 1, &delay);
    let mut any = Vec::new();
    put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
    put_bytes(&mut any, 2, &info);
    let mut status = Vec::new();
    put_number(&mut status, 1, u64::from(code));
    put_bytes(&mut status, 2, message.as_bytes());
    put_bytes(&mut status, 3, &any);
    status
}

fn put_number(to: &mut Vec<u8>, field: u8, number: u64) {
    to.push(field << 3);
    put_varint(to, number);
}

fn put_bytes(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    to.push(field << 3 | 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        // The low seven bits and a mark that more follow.
        let [low, ..] = number.to_le_bytes();
        to.push(low | 0x80);
        number >>= 7;
    }
    let [last, ..] = number.to_le_bytes();
    to.push(last);
}

/// Printable ASCII stays, everything else is escaped, as gRPC has it.
fn percent_encoded(message: &str) -> String {
    message.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'%' => text.push_str("%25"),
            b' '..=b'~' => text.push(byte.into()),
            byte => {
                // Writing to a string does not fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

/// Base64 without padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=chunk.len() {
            let index = bits >> (18 - 6 * digit) & 0x3f;
            text.push(DIGITS[index as usize].into());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_no_padding() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn messages_are_printable() {
        assert_eq!(percent_encoded("50% of\n\u{e9}"), "50%25 of%0A%C3%A9");
    }

    #[test]
    fn details_are_a_status_with_retry_info() {
        let bytes = details(8, "no", 300);
        let expected = [
            &[0x08, 8, 0x12, 2, b'n', b'o', 0x1a, 49, 0x0a, 40][..],
            b"type.googleapis.com/google.rpc.RetryInfo",
            &[0x12, 5, 0x0a, 3, 0x08, 0xac, 0x02],
        ];
        assert_eq!(bytes, expected.concat());
    }
}
