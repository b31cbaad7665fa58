//! What goes wrong with an admin request, and what that looks like over HTTP.

use std::error::Error;
use std::iter;

use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::Value;
use tidegate_limiter::KeyError;
use tidegate_observe::{DecisionId, MalformedDecisionId};

use super::reply::{self, Reply};

/// Why an admin request is not answered as asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("there is no {path} here; GET / lists what there is")]
    NoSuchPath { path: String },
    #[error(
        "there is no {path} here, but on the admin listener; here are /metrics, /healthcheck and /readyz"
    )]
    OnlyMetrics { path: String },
    #[error("{path} takes {allowed}")]
    OtherMethods { path: String, allowed: String },
    #[error("bring the admin token along, as `Authorization: Bearer …`")]
    NoToken,
    #[error("the token is not the admin token")]
    WrongToken,
    #[error(
        "changes need a token on a listener that others can reach: set `admin.token` or \
         `admin.token_file`, or listen on 127.0.0.1"
    )]
    NeedsToken,
    #[error("reading needs a token, and there is none: set `admin.token` or `admin.token_file`")]
    NoTokenToReadBy,
    #[error(
        "the request comes from another web page; send it from this origin, or from no browser"
    )]
    CrossSite,
    #[error(
        "the header Host names neither localhost nor a loopback address; a web page may be behind this. \
         Ask by one of those, or bring the admin token along"
    )]
    ForeignHost,
    #[error("the body has more than {max_bytes} bytes")]
    BodyTooLarge { max_bytes: usize },
    #[error("the body did not arrive in time")]
    BodyTooSlow,
    #[error("the body broke off")]
    BodyBroken,
    #[error("the body is not what {path} takes; GET /api/v1/openapi.json describes it")]
    BadBody {
        path: &'static str,
        #[source]
        reason: serde_json::Error,
    },
    #[error("{0}")]
    BadField(&'static str),
    #[error("`{name}` in the query is not {expected}")]
    BadQuery {
        name: &'static str,
        expected: &'static str,
    },
    #[error("the query has `{name}`, which {path} does not know")]
    UnknownQuery { name: String, path: &'static str },
    #[error("that is no level of the log: {reason}")]
    BadLogLevel { reason: String },
    #[error("the rules were not reloaded, those before stay in force: {reason}")]
    NotReloaded { reason: String, report: Value },
    #[error(transparent)]
    BadDecisionId(#[from] MalformedDecisionId),
    #[error("there was no decision {id}, or it is no longer kept; {retention}")]
    UnknownDecision { id: DecisionId, retention: String },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The body of an error (RFC 9457).
#[derive(Debug, Serialize)]
struct Problem {
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reload: Option<Value>,
}

// === impl Fault ===

impl Fault {
    /// The one place where a fault becomes an answer.
    pub(super) fn into_reply(self) -> Reply {
        let status = self.status();
        let detail = with_causes(&self) + self.advice();
        let header = match &self {
            Self::OtherMethods { allowed, .. } => HeaderValue::from_str(allowed)
                .ok()
                .map(|allowed| (ALLOW, allowed)),
            Self::NoToken | Self::WrongToken => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
            }
            _ => None,
        };
        let reload = match self {
            Self::NotReloaded { report, .. } => Some(report),
            _ => None,
        };
        let problem = Problem {
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail,
            reload,
        };
        let mut reply = reply::json_as(status, reply::PROBLEM, &problem);
        reply.headers_mut().extend(header);
        reply
    }

    /// What to do, where the error comes from code that does not know of this API.
    const fn advice(&self) -> &'static str {
        match self {
            Self::Key(KeyError::NoSuchDomain { .. }) => "; GET /api/v1/rules lists what there is",
            Self::Key(KeyError::NoRule { .. }) => "; POST /api/v1/explain says why",
            Self::Key(KeyError::Store(_)) => {
                "; GET /api/v1/store says why; ask again when it is back"
            }
            _ => "",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath { .. } | Self::OnlyMetrics { .. } | Self::UnknownDecision { .. } => {
                StatusCode::NOT_FOUND
            }
            Self::OtherMethods { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::NeedsToken | Self::NoTokenToReadBy | Self::CrossSite | Self::ForeignHost => {
                StatusCode::FORBIDDEN
            }
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyBroken
            | Self::BadBody { .. }
            | Self::BadField(_)
            | Self::BadQuery { .. }
            | Self::UnknownQuery { .. }
            | Self::BadDecisionId(_)
            | Self::BadLogLevel { .. } => StatusCode::BAD_REQUEST,
            Self::NotReloaded { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Key(error) => key_status(error),
        }
    }
}

fn key_status(error: &KeyError) -> StatusCode {
    match error {
        KeyError::NoSuchDomain { .. } | KeyError::NoRule { .. } => StatusCode::NOT_FOUND,
        KeyError::TooManyBans { .. } => StatusCode::CONFLICT,
        KeyError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// An error and what caused it, on one line.
fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
