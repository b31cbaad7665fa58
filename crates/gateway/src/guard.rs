//! Requests that two servers could read differently are rejected before anything else looks at them.
//!
//! hyper rejects most of them by itself: bad characters, folded lines, spaces before a colon, differing lengths. Of a request with both
//! `Content-Length` and `Transfer-Encoding` it drops the length and closes the connection afterwards. The rest is done here.

use http::header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method, Version};

use crate::noted_headers::{NotedHeader, NotedHeaders};

/// The fault of a request that is not forwarded; its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("a request has exactly one Host")]
    NotOneHost,
    #[error("the Host is not a host")]
    BadHost,
    #[error("the Host and the request target name different hosts")]
    HostMismatch,
    #[error("the only Transfer-Encoding allowed is a single `chunked`")]
    BadTransferEncoding,
    #[error("Transfer-Encoding and Content-Length exclude each other")]
    LengthAndEncoding,
    #[error("the only Expect allowed is 100-continue")]
    BadExpectation,
    #[error("methods are written in capital letters")]
    BadMethodCase,
    #[error("CONNECT is not supported")]
    Connect,
    #[error("the path could lead elsewhere if its escapes are decoded")]
    AmbiguousPath,
}

/// The methods that servers know, the most frequent ones first.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// Checks a request, and gives the host and port that it names.
pub(crate) fn check(head: &Parts, noted: NotedHeaders) -> Result<Option<&str>, Malformed> {
    if !METHODS.contains(&head.method) {
        // Some servers take `post` for POST, and routes and limits do not.
        let name = head.method.as_str();
        let is_same = |method: &Method| method.as_str().eq_ignore_ascii_case(name);
        if METHODS.iter().any(is_same) {
            return Err(Malformed::BadMethodCase);
        }
    }
    // RFC 8441 makes a CONNECT with a path of a WebSocket; we do not offer it, so no client may ask for it.
    if head.method == Method::CONNECT {
        return Err(Malformed::Connect);
    }
    if noted.has(NotedHeader::TransferEncoding) {
        check_encoding(&head.headers)?;
    }
    if noted.has(NotedHeader::Expect)
        && let Some(expected) = head.headers.get(EXPECT)
        && !expected.as_bytes().eq_ignore_ascii_case(b"100-continue")
    {
        return Err(Malformed::BadExpectation);
    }
    let host = host(&head.headers)?;
    let Some(authority) = head.uri.authority() else {
        // HTTP/1.0 has no Host.
        return match host {
            None if head.version > Version::HTTP_10 => Err(Malformed::NotOneHost),
            host => Ok(host),
        };
    };
    let authority = authority.as_str();
    match host {
        Some(host) if !host.eq_ignore_ascii_case(authority) => Err(Malformed::HostMismatch),
        _ => valid(authority).map(Some),
    }
}

fn check_encoding(headers: &HeaderMap) -> Result<(), Malformed> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else {
        return Ok(());
    };
    if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Err(Malformed::BadTransferEncoding);
    }
    if headers.contains_key(CONTENT_LENGTH) {
        return Err(Malformed::LengthAndEncoding);
    }
    Ok(())
}

fn host(headers: &HeaderMap) -> Result<Option<&str>, Malformed> {
    let mut lines = headers.get_all(HOST).iter();
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    if lines.next().is_some() {
        return Err(Malformed::NotOneHost);
    }
    let host = line.to_str().map_err(|_| Malformed::BadHost)?;
    valid(host).map(Some)
}

/// Names, addresses and ports have no other characters; above all no `@`, `/` or space.
fn valid(host: &str) -> Result<&str, Malformed> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if host.is_empty() || host.starts_with(':') || !host.bytes().all(is_allowed) {
        return Err(Malformed::BadHost);
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(
        version: Version,
        uri: &str,
        lines: &[(&str, &str)],
        expected: Result<Option<&str>, Malformed>,
    ) {
        let mut request = Request::builder().version(version).uri(uri);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let found = super::check(&head, NotedHeaders::of(&head.headers));
        assert_eq!(found, expected);
    }

    #[test]
    fn one_host_is_needed_and_all_must_agree() {
        let h1 = Version::HTTP_11;
        check(
            h1,
            "/",
            &[("host", "a.example:80")],
            Ok(Some("a.example:80")),
        );
        check(h1, "/", &[], Err(Malformed::NotOneHost));
        check(Version::HTTP_10, "/", &[], Ok(None));
        check(
            h1,
            "/",
            &[("host", "a"), ("host", "a")],
            Err(Malformed::NotOneHost),
        );
        check(h1, "/", &[("host", "a b")], Err(Malformed::BadHost));
        check(h1, "/", &[("host", "")], Err(Malformed::BadHost));
        check(h1, "/", &[("host", "u@a")], Err(Malformed::BadHost));
        check(h1, "http://a/", &[("host", "A")], Ok(Some("a")));
        check(
            h1,
            "http://a/",
            &[("host", "b")],
            Err(Malformed::HostMismatch),
        );
        check(Version::HTTP_2, "http://a/", &[], Ok(Some("a")));
        check(
            Version::HTTP_2,
            "http://a/",
            &[("host", "b")],
            Err(Malformed::HostMismatch),
        );
    }

    #[test]
    fn only_a_lone_chunked_is_allowed() {
        let with = |value: &'static str| [("host", "a"), ("transfer-encoding", value)];
        check(Version::HTTP_11, "/", &with("Chunked"), Ok(Some("a")));
        for value in [
            "gzip, chunked",
            "chunked, chunked",
            "identity",
            "xchunked",
            "",
        ] {
            check(
                Version::HTTP_11,
                "/",
                &with(value),
                Err(Malformed::BadTransferEncoding),
            );
        }
        let both = [
            ("host", "a"),
            ("transfer-encoding", "chunked"),
            ("content-length", "1"),
        ];
        check(
            Version::HTTP_11,
            "/",
            &both,
            Err(Malformed::LengthAndEncoding),
        );
        let expects = [("host", "a"), ("expect", "200-ok")];
        check(
            Version::HTTP_11,
            "/",
            &expects,
            Err(Malformed::BadExpectation),
        );
    }

    #[test]
    fn a_known_method_is_written_in_capital_letters() {
        let check = |method: &str, expected| {
            let request = Request::builder().method(method).header("host", "a");
            let (head, ()) = request.body(()).unwrap().into_parts();
            let found = super::check(&head, NotedHeaders::of(&head.headers));
            assert_eq!(found, expected, "{method}");
        };
        check("POST", Ok(Some("a")));
        check("PURGE", Ok(Some("a")));
        check("purge", Ok(Some("a")));
        check("post", Err(Malformed::BadMethodCase));
        check("Get", Err(Malformed::BadMethodCase));
    }
}
