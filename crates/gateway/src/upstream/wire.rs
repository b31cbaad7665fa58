//! Requests in the form of the protocol that carries them, and copies of them.

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};

use super::error::ForwardError;
use super::outgoing::OutgoingBody;
use crate::config::TargetConfig;

/// Gives a request the form of HTTP/1: `Host` and a URI in origin form.
pub(super) fn prepare_http1(request: &mut Request<OutgoingBody>) {
    *request.version_mut() = Version::HTTP_11;
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
/// HTTP/2 forbids.
pub(super) fn prepare_http2(
    request: &mut Request<OutgoingBody>,
    target: &TargetConfig,
) -> Result<(), ForwardError> {
    *request.version_mut() = Version::HTTP_2;
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

/// A copy of a request without its body.
pub(super) fn copy_head(request: &Request<OutgoingBody>) -> Request<()> {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
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
}
