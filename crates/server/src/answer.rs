//! What verdicts and errors look like over HTTP.

use std::error::Error;
use std::iter;
use std::time::Duration;

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use tidegate_limiter::{Answer, LimiterError, Retry, Verdict};

use crate::wire::{BadRequest, RateLimitResponse};

/// An HTTP answer.
pub(crate) type Response = hyper::Response<Full<Bytes>>;

/// Why an HTTP request gets no verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no {path} here; POST a rate limit request to /json, or GET /healthcheck")]
    NoSuchPath { path: String },
    #[error("the body has more than {max_bytes} bytes")]
    BodyTooLarge { max_bytes: usize },
    #[error("the body did not arrive in time")]
    BodyTooSlow,
    #[error("the body broke off")]
    BodyBroken,
    #[error("the body is empty; POST a rate limit request, `tidegate serve --help` shows one")]
    BodyEmpty,
    #[error("the body is no rate limit request")]
    NotJson(#[from] serde_json::Error),
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    #[error(transparent)]
    Limiter(#[from] LimiterError),
}

/// The body of an error (RFC 9457).
#[derive(Debug, Serialize)]
struct Problem {
    title: &'static str,
    status: u16,
    detail: String,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RETRY_AFTER: HeaderName = HeaderName::from_static("x-ratelimit-retry-after");

/// The answer of a server that is up.
pub(crate) fn healthy() -> Response {
    response(StatusCode::OK, TEXT, Bytes::from_static(b"OK"))
}

/// The answer to a request that was judged.
pub(crate) fn verdict(verdict: &Verdict) -> Response {
    let status = match verdict.answer() {
        Answer::Allowed => StatusCode::OK,
        Answer::Refused => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut response = json(status, JSON, &RateLimitResponse::from(verdict));
    let headers = response.headers_mut();
    if let Some(decision) = verdict
        .deciding()
        .and_then(|limit| limit.decision().copied())
    {
        headers.insert(LIMIT, decision.limit.into());
        headers.insert(REMAINING, decision.remaining.into());
    }
    if let Some(Retry::After(wait)) = verdict.retry() {
        headers.insert(X_RETRY_AFTER, whole_seconds(wait).into());
        headers.insert(RETRY_AFTER, whole_seconds(wait).into());
    }
    response
}

// === impl Refusal ===

impl Refusal {
    /// The one place where an error becomes a status code.
    pub(crate) fn into_response(self) -> Response {
        let status = match self {
            Self::NoSuchPath { .. } => StatusCode::NOT_FOUND,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyBroken
            | Self::BodyEmpty
            | Self::NotJson(_)
            | Self::BadRequest(_)
            | Self::Limiter(_) => StatusCode::BAD_REQUEST,
        };
        let title = status.canonical_reason().unwrap_or_default();
        let problem = Problem {
            title,
            status: status.as_u16(),
            detail: with_causes(&self),
        };
        json(status, PROBLEM, &problem)
    }
}

/// An error and what caused it, on one line.
fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Rounds up: who comes a tick early is refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

fn json(status: StatusCode, content_type: HeaderValue, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => response(status, content_type, Bytes::from(bytes)),
        Err(_) => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, Bytes::new()),
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(whole_seconds(Duration::ZERO), 0);
        assert_eq!(whole_seconds(Duration::from_nanos(1)), 1);
        assert_eq!(whole_seconds(Duration::from_secs(3)), 3);
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }
}
