//! Answers to operators.

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use serde::Serialize;

/// An answer.
pub(super) type Reply = hyper::Response<Full<Bytes>>;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
pub(super) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The text format of Prometheus.
pub(super) const METRICS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// 200 with JSON.
pub(super) fn json(body: &impl Serialize) -> Reply {
    json_as(StatusCode::OK, JSON, body)
}

/// JSON, as something more than that.
pub(super) fn json_as(
    status: StatusCode,
    content_type: HeaderValue,
    body: &impl Serialize,
) -> Reply {
    match serde_json::to_vec(body) {
        Ok(bytes) => with(status, content_type, bytes),
        Err(error) => with(StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
    }
}

/// Any body.
pub(super) fn with(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = Reply::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    // It is old a moment later, and a browser must not guess what it is.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
