//! Denials and errors as responses: the one place where either becomes a status.

mod grpc;
mod limit_headers;
mod template;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::json;
use tidegate_answer::Headers;
use tidegate_identify::{AmbiguousValue, TokenRejection};
use tidegate_limiter::{LimiterError, Verdict};
use tidegate_observe::DecisionId;

use crate::body::BodyFault;
use crate::config::DenialBody;
use crate::connection::OutOfMemory;
use crate::forward::ForwardFault;
use crate::guard::Malformed;

pub(crate) use limit_headers::{LimitHeaders, remove_limits, tells_limits};

/// The reason why Tidegate answers a request itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("malformed request: {0}")]
    Malformed(#[from] Malformed),
    #[error("the request has more than {max_headers} header lines")]
    TooManyHeaders { max_headers: usize },
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    #[error("this address has no access")]
    NoAccess,
    #[error("this caller has no access here")]
    Forbidden,
    #[error(transparent)]
    AmbiguousValue(#[from] AmbiguousValue),
    #[error(transparent)]
    Token(#[from] TokenRejection),
    #[error("there is no such path")]
    NoRoute,
    #[error("only GET and HEAD are allowed here")]
    OnlyGet,
    #[error("`path` must be a path such as /orders, and `method` a method such as GET")]
    BadUsageQuery,
    #[error("the request body has more than {max_bytes} bytes")]
    BodyTooLarge { max_bytes: u64 },
    #[error("the request's limits cannot be checked")]
    Limiter(#[from] LimiterError),
    #[error("the client has left")]
    ClientGone,
    #[error("rate limited")]
    Denied(Box<Denial>),
    #[error(transparent)]
    Forward(#[from] ForwardFault),
}

/// A request that its limits deny.
#[derive(Debug)]
pub(crate) struct Denial {
    status: StatusCode,
    headers: LimitHeaders,
    /// The problem details, if they are the form.
    problem: Vec<u8>,
    /// The sentence, if it is the form.
    detail: String,
    /// The seconds of `Retry-After`, beside a sentence.
    retry_after: Option<u64>,
    /// The number of the limit that clients are told of, beside a sentence.
    limit: Option<u64>,
    decision: Option<DecisionId>,
}

/// The form of a denial's text. Only one is written, because that takes longer than to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialForm {
    /// Problem details in JSON.
    Problem,
    /// One sentence, for gRPC and for templates.
    Sentence,
}

/// The client's side of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialogue {
    /// Plain HTTP.
    Http,
    /// gRPC, whose errors are told in headers of their own.
    Grpc,
}

const GRPC: &[u8] = b"application/grpc";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PROBLEM: HeaderValue = HeaderValue::from_static(tidegate_answer::PROBLEM_JSON);
const GET_AND_HEAD: HeaderValue = HeaderValue::from_static("GET, HEAD");
const DECISION: HeaderName = HeaderName::from_static(DecisionId::HEADER);
const CLOSE: HeaderValue = HeaderValue::from_static("close");

// === impl Rejection ===

impl Rejection {
    /// The response.
    pub(crate) fn into_response(self, dialogue: Dialogue, body: &DenialBody) -> Response<Bytes> {
        let status = self.status();
        let must_close = matches!(self, Self::Malformed(_));
        let is_only_get = matches!(self, Self::OnlyGet);
        let token_header = match &self {
            Self::Token(rejection) => Some(rejection.header()),
            _ => None,
        };
        let mut response = match self {
            Self::Denied(denial) => denial.into_response(dialogue, body),
            rejection => problem(status, dialogue, &rejection.to_string()),
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, NO_STORE);
        if let Some((name, value)) = token_header {
            let name = HeaderName::from_static(name);
            headers.insert(name, HeaderValue::from_static(value));
        }
        if is_only_get {
            headers.insert(ALLOW, GET_AND_HEAD);
        }
        if must_close {
            // HTTP/2 has no such header, and hyper drops it there.
            headers.insert(CONNECTION, CLOSE);
        }
        response
    }

    /// The status of a client that speaks plain HTTP.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(Malformed::BadExpectation) => StatusCode::EXPECTATION_FAILED,
            Self::Malformed(Malformed::Connect) | Self::OnlyGet => StatusCode::METHOD_NOT_ALLOWED,
            Self::Malformed(_) | Self::AmbiguousValue(_) | Self::BadUsageQuery => {
                StatusCode::BAD_REQUEST
            }
            Self::TooManyHeaders { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::NoAccess | Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Token(rejection) if rejection.is_rate_limited() => StatusCode::TOO_MANY_REQUESTS,
            Self::Token(_) => StatusCode::UNAUTHORIZED,
            Self::NoRoute => StatusCode::NOT_FOUND,
            // Nobody sees it.
            Self::ClientGone => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Limiter(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::OutOfMemory(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Denied(denial) => denial.status,
            Self::Forward(fault) => match fault {
                ForwardFault::Upstream(error) => error.status(),
                ForwardFault::Body(BodyFault::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
                ForwardFault::Body(BodyFault::TimedOut) => StatusCode::REQUEST_TIMEOUT,
                ForwardFault::Body(BodyFault::Incomplete) | ForwardFault::BadRewrite => {
                    StatusCode::BAD_REQUEST
                }
                ForwardFault::TotalTimeout => StatusCode::GATEWAY_TIMEOUT,
                ForwardFault::UnaskedUpgrade | ForwardFault::BadTransferEncoding => {
                    StatusCode::BAD_GATEWAY
                }
            },
        }
    }
}

// === impl Denial ===

impl Denial {
    /// A denial, told in the dialect of its rule or else in `dialect`, with the id under which it is kept.
    pub(crate) fn new(
        verdict: &Verdict,
        dialect: &Headers,
        decision: Option<DecisionId>,
        form: DenialForm,
    ) -> Self {
        let is_decided =
            verdict.ban().is_some() || verdict.deciding().is_some_and(|it| it.decision().is_some());
        let status = if is_decided {
            StatusCode::TOO_MANY_REQUESTS
        } else {
            // The limits could not be checked, which is not the caller's fault.
            StatusCode::SERVICE_UNAVAILABLE
        };
        let mut denial = Self {
            status,
            headers: LimitHeaders::of(verdict, dialect),
            detail: String::new(),
            problem: Vec::new(),
            retry_after: None,
            limit: None,
            decision,
        };
        match form {
            DenialForm::Problem => {
                let instance = decision.map(DecisionId::urn);
                let problem =
                    tidegate_answer::problem(verdict, status.as_u16(), instance.as_deref());
                denial.problem = problem.unwrap_or_default();
            }
            DenialForm::Sentence => {
                let policies = tidegate_answer::Policies::of(verdict);
                denial.detail = tidegate_answer::refusal(verdict, &policies);
                denial.limit = verdict
                    .announced()
                    .and_then(|it| Some(it.decision()?.limit));
                denial.retry_after = tidegate_answer::retry_after(verdict);
            }
        }
        denial
    }

    fn into_response(self, dialogue: Dialogue, body: &DenialBody) -> Response<Bytes> {
        let mut response = match (dialogue, body) {
            (Dialogue::Grpc, _) => grpc::response(self.status, &self.detail, self.retry_after),
            (Dialogue::Http, DenialBody::Problem) => with_body(self.status, PROBLEM, self.problem),
            (Dialogue::Http, DenialBody::Template { content_type, text }) => {
                let filled = template::fill(text, content_type, &self);
                with_body(self.status, content_type.clone(), filled.into_bytes())
            }
        };
        if let Some(decision) = self.decision
            && let Ok(value) = HeaderValue::from_bytes(&decision.digits())
        {
            response.headers_mut().insert(DECISION, value);
        }
        self.headers.add_to(response.headers_mut());
        response
    }
}

// === impl DenialForm ===

impl DenialForm {
    /// The form for a request with these headers.
    pub(crate) fn of(headers: &HeaderMap, body: &DenialBody) -> Self {
        match (Dialogue::of(headers), body) {
            (Dialogue::Http, DenialBody::Problem) => Self::Problem,
            (Dialogue::Http, DenialBody::Template { .. }) | (Dialogue::Grpc, _) => Self::Sentence,
        }
    }
}

// === impl Dialogue ===

impl Dialogue {
    /// The dialogue of a request with these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        match content_type {
            Some(value)
                if value.starts_with(GRPC) && !value.starts_with(b"application/grpc-web") =>
            {
                Self::Grpc
            }
            _ => Self::Http,
        }
    }
}

/// A response with a body of our own.
pub(crate) fn with_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    // Room for those of a denial, so that the map does not grow step by step.
    response.headers_mut().reserve(10);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn problem(status: StatusCode, dialogue: Dialogue, detail: &str) -> Response<Bytes> {
    if dialogue == Dialogue::Grpc {
        return grpc::response(status, detail, None);
    }
    let body = json!({
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
    });
    with_body(status, PROBLEM, body.to_string())
}

/// An error and its causes, on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// A response that sends the client elsewhere.
pub(crate) fn redirect(
    status: StatusCode,
    location: &str,
    path: &str,
    query: Option<&str>,
) -> Result<Response<Bytes>, Rejection> {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let location = location.replace("{query}", &query).replace("{path}", path);
    let location = HeaderValue::from_str(&location).map_err(|_| Rejection::NoRoute)?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
