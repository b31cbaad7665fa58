//! Cross-origin requests of web pages (the Fetch standard). Without these headers a page sees a network error instead of a denial.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, COOKIE,
    HeaderName, ORIGIN, UPGRADE, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use tidegate_answer::Headers;

use crate::config::CorsConfig;

/// Every header in which a dialect tells of limits, and when to come back.
const EXPOSED: &str = "retry-after, ratelimit, ratelimit-policy, ratelimit-limit, ratelimit-remaining, \
    ratelimit-reset, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, \
    x-ratelimit-retry-after, x-ratelimit-over, x-ratelimit-used, x-ratelimit-resource, x-tidegate-decision";

const GET_AND_HEAD: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// As long as Chromium remembers at most, without a reason to ask more often.
const TEN_MINUTES: HeaderValue = HeaderValue::from_static("600");
const ANY: HeaderValue = HeaderValue::from_static("*");
const TRUE: HeaderValue = HeaderValue::from_static("true");
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("origin");

/// Headers with which no browser sends a preflight, and by which a server may take it for another request.
const NEVER_IN_PREFLIGHTS: [HeaderName; 6] = [
    AUTHORIZATION,
    COOKIE,
    UPGRADE,
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// The list of headers that pages may read.
#[derive(Clone, Debug)]
pub(crate) struct ExposedHeaders(HeaderValue);

/// Whether a browser asks by this request if a page may make another one. Such a request is not charged, because the page has
/// not asked for anything yet, and needs no token.
pub fn is_preflight(method: &(impl PartialEq<Method> + ?Sized), headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && is_one(headers, ORIGIN)
        && is_one(headers, ACCESS_CONTROL_REQUEST_METHOD)
        && !NEVER_IN_PREFLIGHTS
            .iter()
            .any(|name| headers.contains_key(name))
}

/// True if there is one line of a header, and it is not empty.
fn is_one(headers: &HeaderMap, name: HeaderName) -> bool {
    let mut lines = headers.get_all(name).iter();
    lines.next().is_some_and(|line| !line.is_empty()) && lines.next().is_none()
}

/// The answer to a preflight for a path of our own; [`ExposedHeaders::allow`] adds the origin.
pub(crate) fn answer_preflight(head: &Parts) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, GET_AND_HEAD);
    headers.insert(ACCESS_CONTROL_MAX_AGE, TEN_MINUTES);
    if let Some(names) = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

/// Says that a response depends on the origin, also if this request has none: a cache would give it to pages that must have another one.
fn vary_by_origin(headers: &mut HeaderMap) {
    let is_said = headers.get_all(VARY).iter().any(|line| {
        let mut names = line.as_bytes().split(|byte| *byte == b',');
        names.any(|name| {
            matches!(name.trim_ascii(), b"*") || name.trim_ascii().eq_ignore_ascii_case(b"origin")
        })
    });
    if !is_said {
        headers.append(VARY, VARY_ORIGIN);
    }
}

// === impl ExposedHeaders ===

impl ExposedHeaders {
    /// The headers of all dialects, and those that the operator named.
    pub(crate) fn new(headers: &Headers) -> Self {
        let mut list = EXPOSED.to_owned();
        if let Headers::Named(names) = headers {
            for name in names.iter() {
                list.push_str(", ");
                list.push_str(name);
            }
        }
        Self(HeaderValue::from_str(&list).unwrap_or(HeaderValue::from_static(EXPOSED)))
    }

    /// Lets the page of `origin` read a response of our own.
    pub(crate) fn allow(
        &self,
        cors: &CorsConfig,
        origin: Option<&HeaderValue>,
        to: &mut HeaderMap,
    ) {
        vary_by_origin(to);
        let Some(origin) = origin else {
            return;
        };
        let is_any = cors.origins.is_empty();
        if !is_any && !cors.origins.contains(origin) {
            return;
        }
        let allowed = if is_any && !cors.credentials {
            ANY
        } else {
            origin.clone()
        };
        to.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if cors.credentials {
            to.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
        }
        to.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.0.clone());
    }

    /// Adds our headers to the list of an upstream's response that a page of another origin may read.
    pub(crate) fn extend(
        &self,
        cors: Option<&CorsConfig>,
        origin: Option<&HeaderValue>,
        headers: &mut HeaderMap,
    ) {
        if origin.is_some() && headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, self.0.clone());
        }
        if cors.is_some() {
            vary_by_origin(headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[(&'static str, &'static str)], expected: bool) {
        let headers: HeaderMap = lines
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        assert_eq!(
            is_preflight(&Method::OPTIONS, &headers),
            expected,
            "{lines:?}"
        );
    }

    #[test]
    fn only_a_request_that_a_browser_would_send_is_a_preflight() {
        let origin = ("origin", "https://a.example");
        let method = ("access-control-request-method", "DELETE");
        check(&[origin, method], true);
        check(&[("origin", "null"), method], true);
        check(&[method], false);
        check(&[origin], false);
        check(&[("origin", ""), method], false);
        check(&[origin, origin, method], false);
        check(&[origin, ("access-control-request-method", "")], false);
        for name in [
            "authorization",
            "cookie",
            "upgrade",
            "x-http-method-override",
        ] {
            check(&[origin, method, (name, "x")], false);
        }
    }
}
