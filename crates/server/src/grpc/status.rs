//! What a call comes to when it has no answer: the one place where an error becomes a status.

use std::borrow::Cow;
use std::fmt::Write as _;

use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tidegate_limiter::LimiterError;

use super::memory::AnswerBytes;
use crate::wire::BadRequest;
use crate::wire::protobuf::{BadMessage, Malformed};

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
}

/// The codes that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The longest message: some quote the path or a text of the call.
const MAX_MESSAGE_BYTES: usize = 512;

// === impl Status ===

impl Status {
    pub(super) const fn new(code: Code, message: &'static str) -> Self {
        Self {
            code,
            message: Cow::Borrowed(message),
        }
    }

    pub(super) fn told(code: Code, message: String) -> Self {
        Self {
            code,
            message: Cow::Owned(message),
        }
    }

    pub(super) const fn late() -> Self {
        Self::new(Code::DeadlineExceeded, "the deadline has passed")
    }

    /// Why calls end that would go on for ever.
    pub(super) const fn draining() -> Self {
        Self::new(Code::Unavailable, "the server is about to end")
    }

    /// Answers a call with nothing but the status. A peer that is gone does not hear it.
    pub(super) fn send(&self, respond: &mut SendResponse<AnswerBytes>) {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, GRPC);
        if self.code == Code::Unimplemented {
            // Who came with a compression that is not known learns that there is none.
            headers.insert(GRPC_ACCEPT_ENCODING, IDENTITY);
        }
        self.write(headers);
        let _ = respond.send_response(response, true);
    }

    /// The message, cut off where a client has made it long.
    fn shown_message(&self) -> &str {
        let end = self.message.floor_char_boundary(MAX_MESSAGE_BYTES);
        &self.message[..end]
    }

    /// The status as trailers of an answer.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(GRPC_STATUS, self.code.value());
        if !self.message.is_empty()
            && let Ok(message) = HeaderValue::try_from(percent_encoded(self.shown_message()))
        {
            headers.insert(GRPC_MESSAGE, message);
        }
    }
}

/// The trailers of an answer.
pub(super) fn ok() -> HeaderMap {
    // With room for one, where an ordinary map begins with eight.
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, Code::Ok.value());
    trailers
}

/// Answers a request that is none of gRPC's in HTTP's own words.
pub(super) fn send_http(status: StatusCode, respond: &mut SendResponse<AnswerBytes>) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let _ = respond.send_response(response, true);
}

impl From<BadMessage> for Status {
    fn from(error: BadMessage) -> Self {
        match error {
            BadMessage::Malformed(error) => error.into(),
            BadMessage::BadRequest(error) => {
                let code = match error {
                    BadRequest::TooManyDescriptors | BadRequest::TooManyEntries { .. } => {
                        Code::ResourceExhausted
                    }
                    BadRequest::NoUnit { .. } => Code::InvalidArgument,
                };
                Self::told(code, error.to_string())
            }
        }
    }
}

impl From<Malformed> for Status {
    /// With the code and the first words of grpc-go, which envoyproxy/ratelimit is built on.
    fn from(error: Malformed) -> Self {
        let message = format!("grpc: error unmarshalling request: {error}");
        Self::told(Code::Internal, message)
    }
}

impl From<LimiterError> for Status {
    /// envoyproxy/ratelimit gives its errors no code of their own, and Envoy's operators know them so. A question with too
    /// much in it has a code, because it is denied.
    fn from(error: LimiterError) -> Self {
        let code = match error {
            LimiterError::TooManyDescriptors { .. } | LimiterError::TooManyLimits { .. } => {
                Code::ResourceExhausted
            }
            _ => Code::Unknown,
        };
        Self::told(code, error.to_string())
    }
}

// === impl Code ===

impl Code {
    /// The number, where it is no header.
    pub(super) const fn number(self) -> u64 {
        self as u64
    }

    const fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Ok => "0",
            Self::Unknown => "2",
            Self::InvalidArgument => "3",
            Self::DeadlineExceeded => "4",
            Self::NotFound => "5",
            Self::ResourceExhausted => "8",
            Self::Unimplemented => "12",
            Self::Internal => "13",
            Self::Unavailable => "14",
        })
    }
}

/// `grpc-message` is printable ASCII; all else, and `%`, is written as bytes in hexadecimal.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_printable_ascii() {
        assert_eq!(percent_encoded("a b"), "a b");
        assert_eq!(percent_encoded("50% é\n"), "50%25 %C3%A9%0A");
    }

    #[test]
    fn trailers_fit_the_map_that_was_made_for_them() {
        let trailers = ok();
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers.capacity(), 1);
        assert_eq!(trailers[GRPC_STATUS], "0");
    }
}
