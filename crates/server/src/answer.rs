//! What verdicts and errors look like over HTTP.

use std::error::Error;
use std::iter;

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use tidegate_answer::{Answers, Headers};
use tidegate_identify::{AmbiguousValue, TokenRejection};
use tidegate_limiter::report::StoreHealth;
use tidegate_limiter::{Answer, LimiterError, Verdict};

use crate::check::{Checked, CheckedBatch, Fault, Faults, Outcome};
use crate::drain::Health;
use crate::http::BadParameter;
use crate::wire::{BadRequest, RateLimitResponse};

/// An HTTP answer.
pub(crate) type Response = hyper::Response<Full<Bytes>>;

/// Why an HTTP request gets no verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no {path} here; POST a check to /v1/check, or Envoy's to /json")]
    NoSuchPath { path: String },
    #[error("the body has more than {max_bytes} bytes")]
    BodyTooLarge { max_bytes: usize },
    #[error("the body did not arrive in time")]
    BodyTooSlow,
    #[error("the body broke off")]
    BodyBroken,
    #[error("the request comes from a web page; send it from no browser")]
    OfWebPage,
    #[error("only {allowed} is taken here")]
    OtherMethod { allowed: &'static str },
    #[error("the body is empty; POST {sample}")]
    BodyEmpty { sample: &'static str },
    #[error("the body is no rate limit request")]
    NotAMessage(#[source] serde_json::Error),
    #[error("the body is no JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("{0}")]
    BadCheck(Faults),
    #[error(transparent)]
    BadRequest(#[from] BadRequest),
    #[error(transparent)]
    BadParameter(#[from] BadParameter),
    #[error(transparent)]
    AmbiguousValue(#[from] AmbiguousValue),
    #[error(transparent)]
    Token(#[from] TokenRejection),
    /// The same to a proxy that takes this status for a denial.
    #[error("{rejection}")]
    TooManyTokens {
        rejection: TokenRejection,
        deny: StatusCode,
    },
    #[error(transparent)]
    Limiter(#[from] LimiterError),
}

/// The body of an error (RFC 9457).
#[derive(Debug, Serialize)]
struct Problem<'a> {
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault],
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The answer to a health check.
pub(crate) fn health(health: Health, store: StoreHealth) -> Response {
    let (status, text) = health_words(health, store);
    response(status, TEXT, Bytes::from_static(text.as_bytes()))
}

/// What a health check is told; the codes are those of envoyproxy/ratelimit, as is the word for a server
/// that is well. One whose store fails answers requests all the same, so nobody is to take it away.
pub(crate) const fn health_words(health: Health, store: StoreHealth) -> (StatusCode, &'static str) {
    match (health, store) {
        (Health::Serving, StoreHealth::Whole) => (StatusCode::OK, "OK"),
        (Health::Serving, StoreHealth::Degraded) => (StatusCode::OK, "degraded"),
        (Health::Serving, StoreHealth::Full) => (
            StatusCode::OK,
            "degraded: memory for counters is full, on_full decides on new callers",
        ),
        (Health::Serving, StoreHealth::Unshared) => (
            StatusCode::OK,
            "degraded: number of members unknown, whole limits are enforced",
        ),
        (Health::Draining, _) => (StatusCode::INTERNAL_SERVER_ERROR, "draining"),
    }
}

/// A fixed document in JSON.
pub(crate) fn document(json: &'static str) -> Response {
    response(StatusCode::OK, JSON, Bytes::from_static(json.as_bytes()))
}

/// The answer to a request that was judged.
pub(crate) fn verdict(verdict: &Verdict, headers: &Headers) -> Response {
    let body = RateLimitResponse::from(verdict);
    judged(verdict, headers, &body)
}

/// The answer to a check that was judged.
pub(crate) fn checked(verdict: &Verdict, headers: &Headers) -> Response {
    judged(verdict, headers, &Checked::from(verdict))
}

/// The answer to several checks. Each has an answer of its own, so the whole is neither allowed nor
/// refused.
pub(crate) fn checked_batch(judged: &[Result<Verdict, LimiterError>]) -> Response {
    let checks = judged.iter().map(Outcome::from).collect();
    json(StatusCode::OK, JSON, &CheckedBatch { checks })
}

fn judged(verdict: &Verdict, headers: &Headers, body: &impl Serialize) -> Response {
    let status = match verdict.answer() {
        Answer::Allowed => StatusCode::OK,
        Answer::Refused => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut response = json(status, JSON, body);
    add_limit_headers(verdict, headers, response.headers_mut());
    response
}

/// The answer to a proxy whose client may pass.
pub(crate) fn pass() -> Response {
    let mut response = Response::new(Full::default());
    // The next request has a verdict of its own.
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// The answer to a proxy about its client, who is refused with the status `deny`.
pub(crate) fn authorization(verdict: &Verdict, answers: &Answers, deny: StatusCode) -> Response {
    let mut response = pass();
    if verdict.answer() == Answer::Refused {
        *response.status_mut() = deny;
    }
    if let Some(problem) = answers.body(verdict, deny.as_u16()) {
        *response.body_mut() = Full::new(Bytes::from(problem));
        response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
    }
    add_limit_headers(verdict, &answers.headers, response.headers_mut());
    response
}

/// Tells the client about the limits.
pub(crate) fn add_limit_headers(verdict: &Verdict, headers: &Headers, to: &mut HeaderMap) {
    tidegate_answer::headers(verdict, headers, |name, value| {
        let name = HeaderName::from_bytes(name.as_bytes());
        // Names are tokens and values printable, so both are always there.
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            to.insert(name, value);
        }
    });
}

// === impl Refusal ===

impl Refusal {
    /// The one place where an error becomes a status code.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath { .. } => StatusCode::NOT_FOUND,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::OtherMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::OfWebPage => StatusCode::FORBIDDEN,
            Self::Token(rejection) if rejection.is_rate_limited() => StatusCode::TOO_MANY_REQUESTS,
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::TooManyTokens { deny, .. } => *deny,
            Self::BodyBroken
            | Self::BodyEmpty { .. }
            | Self::NotAMessage(_)
            | Self::NotJson(_)
            | Self::BadCheck(_)
            | Self::BadRequest(_)
            | Self::BadParameter(_)
            | Self::AmbiguousValue(_)
            | Self::Limiter(_) => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let status = self.status();
        let title = status.canonical_reason().unwrap_or_default();
        let errors = match &self {
            Self::BadCheck(faults) => faults.shown(),
            _ => &[],
        };
        let problem = Problem {
            title,
            status: status.as_u16(),
            detail: with_causes(&self),
            errors,
        };
        let mut response = json(status, PROBLEM, &problem);
        let header = match self {
            Self::OtherMethod { allowed } => Some(("allow", allowed)),
            Self::Token(rejection) | Self::TooManyTokens { rejection, .. } => {
                Some(rejection.header())
            }
            _ => None,
        };
        let header = header.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        response.headers_mut().extend(header);
        response
    }
}

impl From<Faults> for Refusal {
    fn from(faults: Faults) -> Self {
        Self::BadCheck(faults)
    }
}

/// An error and what caused it, on one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
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
