//! Requests that a web page made a browser send.

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// True if a page of another origin made a browser send the request: browsers say so in `Sec-Fetch-Site`, or else in
/// `Origin`. Other clients send neither.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let authority = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
        .map(|(_, authority)| authority.as_bytes());
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    match (authority, host) {
        (Some(authority), Some(host)) => !authority.eq_ignore_ascii_case(host),
        _ => true,
    }
}

/// True if any page made a browser send the request, also one of our own origin: where no page is served, that is a page
/// whose name was made to lead here (DNS rebinding).
pub(crate) fn is_of_web_page(headers: &HeaderMap) -> bool {
    let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
    !matches!(site, None | Some(b"none")) || headers.contains_key(ORIGIN)
}
