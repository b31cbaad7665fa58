//! The head of a call: which method, and on what terms.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod, StatusCode};

use super::method::Method;
use super::status::{Code, Status};
use super::timeout;

/// What the head of a call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: Method,
    /// How long the client will wait.
    pub(super) timeout: Option<Duration>,
}

/// Why a head is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// It is no call at all.
    Http(StatusCode),
    /// It is a call, but not one for here.
    Grpc(Status),
}

// === impl Head ===

impl Head {
    pub(super) fn read(request: &Parts) -> Result<Self, Rejection> {
        if request.method != HttpMethod::POST {
            return Err(Rejection::Http(StatusCode::METHOD_NOT_ALLOWED));
        }
        let timeout = read_headers(&request.headers)?;
        let method = Method::at(request.uri.path())?;
        Ok(Self { method, timeout })
    }
}

// === impl Rejection ===

impl From<Status> for Rejection {
    fn from(status: Status) -> Self {
        Self::Grpc(status)
    }
}

/// Goes through the headers once: each lookup by name would hash it.
fn read_headers(headers: &HeaderMap) -> Result<Option<Duration>, Rejection> {
    let mut is_grpc = false;
    let mut timeout = None;
    for (name, value) in headers {
        if name == CONTENT_TYPE {
            is_grpc = is_grpc_type(value.as_bytes());
        } else if name == "grpc-timeout" {
            let read = timeout::parse(value.as_bytes());
            timeout = Some(read.ok_or(Status::new(Code::Internal, "malformed grpc-timeout"))?);
        } else if name == "grpc-encoding" && value != "identity" {
            let message = "no compression is known here but identity";
            return Err(Status::new(Code::Unimplemented, message).into());
        }
    }
    if is_grpc {
        Ok(timeout)
    } else {
        Err(Rejection::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE))
    }
}

/// Messages are protobuf, which is also what is meant where nothing is said.
fn is_grpc_type(content_type: &[u8]) -> bool {
    let Some(rest) = content_type.strip_prefix(b"application/grpc") else {
        return false;
    };
    let rest = rest.strip_prefix(b"+proto").unwrap_or(rest);
    matches!(rest, [] | [b';', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: (&str, &str), expected: Result<Option<Duration>, &Rejection>) {
        let request = http::Request::builder()
            .method("POST")
            .uri(Method::paths().next().unwrap())
            .header("content-type", "application/grpc")
            .header(header.0, header.1);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let read = Head::read(&parts).map(|head| head.timeout);
        assert_eq!(read.as_ref().copied(), expected, "{header:?}");
    }

    #[test]
    fn headers_set_the_terms() {
        check(("te", "trailers"), Ok(None));
        check(("grpc-timeout", "20m"), Ok(Some(Duration::from_millis(20))));
        check(("grpc-encoding", "identity"), Ok(None));
        let malformed = Status::new(Code::Internal, "malformed grpc-timeout");
        check(("grpc-timeout", "20"), Err(&malformed.into()));
        let unknown = "no compression is known here but identity";
        let unknown = Status::new(Code::Unimplemented, unknown);
        check(("grpc-encoding", "gzip"), Err(&unknown.into()));
    }

    #[test]
    fn only_protobuf_over_grpc_is_a_call() {
        for good in ["", "+proto", ";charset=utf-8", "+proto;x=y"] {
            assert!(is_grpc_type(format!("application/grpc{good}").as_bytes()));
        }
        for bad in [
            "application/json",
            "application/grpc+json",
            "application/grpc-web",
            "",
        ] {
            assert!(!is_grpc_type(bad.as_bytes()), "{bad}");
        }
    }
}
