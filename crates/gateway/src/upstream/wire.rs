//! Requests in the form of the protocol that carries them, and copies of them.

use http::header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderName, HeaderValue, Method, Request, Uri, Version};
use hyper::body::Body as _;

use super::error::ForwardError;
use super::outgoing::OutgoingBody;
use crate::config::TargetConfig;

/// A copy of a request without its body. Its headers are plain bytes, because it is nearly always dropped, and a copy of a header or a
/// map costs more to make and to drop.
#[derive(Debug)]
pub(super) struct HeadCopy {
    method: Method,
    uri: Uri,
    version: Version,
    /// A line for each header, `name:value` and a line feed, which neither can have.
    lines: Vec<u8>,
    extensions: Extensions,
}

/// The usual size of a head, so that it is allocated once.
const USUAL_HEAD_BYTES: usize = 512;

/// Gives a request the form of HTTP/1: `Host` and a URI in origin form.
pub(super) fn prepare_http1(request: &mut Request<OutgoingBody>) {
    *request.version_mut() = Version::HTTP_11;
    let has_seldom_a_body = matches!(*request.method(), Method::GET | Method::HEAD);
    if has_seldom_a_body && !request.body().is_end_stream() {
        // hyper sends no body of unknown length with these methods, unless it is announced.
        let length = request.headers().get(CONTENT_LENGTH);
        if length.is_none() {
            let chunked = HeaderValue::from_static("chunked");
            request.headers_mut().insert(TRANSFER_ENCODING, chunked);
        }
    }
    if request.uri().authority().is_none() {
        return;
    }
    // It comes back from an HTTP/2 connection.
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    if let Some(authority) = parts.authority.take()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
    parts.scheme = None;
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
}

/// Gives a request the form of HTTP/2: `:scheme` and `:authority` in the URI instead of `Host`. hyper leaves out the headers that
/// HTTP/2 forbids. `Expect: 100-continue` goes, because many HTTP/2 servers ignore it, and one that does not want a body resets its stream.
pub(super) fn prepare_http2(
    request: &mut Request<OutgoingBody>,
    target: &TargetConfig,
) -> Result<(), ForwardError> {
    *request.version_mut() = Version::HTTP_2;
    request.headers_mut().remove(EXPECT);
    if request.uri().authority().is_some() {
        return Ok(());
    }
    let authority = match request.headers_mut().remove(HOST) {
        Some(host) => Authority::try_from(host.as_bytes()),
        None => target.authority().parse(),
    };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.authority = Some(authority.map_err(|_| ForwardError::Unsendable)?);
    parts.scheme = Some(if target.is_tls {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    });
    parts
        .path_and_query
        .get_or_insert(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| ForwardError::Unsendable)?;
    Ok(())
}

// === impl HeadCopy ===

impl HeadCopy {
    pub(super) fn of(request: &Request<OutgoingBody>) -> Self {
        let mut lines = Vec::with_capacity(USUAL_HEAD_BYTES);
        for (name, value) in request.headers() {
            lines.extend_from_slice(name.as_str().as_bytes());
            lines.push(b':');
            lines.extend_from_slice(value.as_bytes());
            lines.push(b'\n');
        }
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            lines,
            extensions: request.extensions().clone(),
        }
    }

    /// The request with another body.
    pub(super) fn into_request(self, body: OutgoingBody) -> Request<OutgoingBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        *request.extensions_mut() = self.extensions;
        let lines = self.lines.split(|byte| *byte == b'\n');
        for (name, value) in lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            // They were a name and a value before.
            HeaderName::from_bytes(name)
                .ok()
                .zip(HeaderValue::from_bytes(value).ok())
        }) {
            request.headers_mut().append(name, value);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, host: Option<&str>) -> Request<OutgoingBody> {
        let mut builder = Request::builder().uri(uri);
        if let Some(host) = host {
            builder = builder.header(HOST, host);
        }
        builder.body(OutgoingBody::Empty).unwrap()
    }

    fn target() -> TargetConfig {
        "http://[::1]:9000".parse().unwrap()
    }

    fn check_http2(uri: &str, host: Option<&str>, expected: Option<&str>) {
        let mut request = request(uri, host);
        let prepared = prepare_http2(&mut request, &target());
        let uri = prepared.ok().map(|()| request.uri().to_string());
        assert_eq!(uri.as_deref(), expected);
        assert!(!request.headers().contains_key(HOST));
    }

    #[test]
    fn http2_has_the_host_in_the_uri() {
        check_http2("/a?b", Some("api.example"), Some("http://api.example/a?b"));
        check_http2("/a", None, Some("http://[::1]:9000/a"));
        check_http2("*", Some("api.example"), Some("http://api.example*"));
        check_http2("/a", Some("two words"), None);
    }

    #[test]
    fn a_request_comes_back_from_http2_as_it_was() {
        let mut request = request("/a?b", Some("api.example:80"));
        prepare_http2(&mut request, &target()).unwrap();
        prepare_http1(&mut request);
        assert_eq!(request.uri(), "/a?b");
        assert_eq!(request.headers()[HOST], "api.example:80");
        assert_eq!(request.version(), Version::HTTP_11);
    }

    #[test]
    fn a_copy_is_the_same_request() {
        let mut request = request("/a?b", Some("api.example"));
        *request.method_mut() = Method::PUT;
        for value in ["1", "2"] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append("x-twice", value);
        }
        let copy = HeadCopy::of(&request).into_request(OutgoingBody::Empty);
        assert_eq!(copy.method(), request.method());
        assert_eq!(copy.uri(), request.uri());
        assert_eq!(copy.headers(), request.headers());
    }
}
