//! What the proxy's config asks for in the query: `?domain=api&deny=403`.

use std::borrow::Cow;

use hyper::StatusCode;
use tidegate_identify::query_parameters;

use super::AuthorizeDomain;

/// The parameters of one question.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    domain: Option<Cow<'a, str>>,
    deny: Option<StatusCode>,
}

/// A query that asks nothing sensible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadParameter {
    #[error("there is no parameter `{name}`; there are `domain` and `deny`")]
    Unknown { name: String },
    #[error("`{name}` is given twice")]
    Twice { name: &'static str },
    #[error("a refusal cannot have the status `{status}`; `deny` is 401, 403, 429 or 503")]
    BadDeny { status: String },
    #[error("no domain; add ?domain=NAME, or set `authorize.domain` in the config")]
    NoDomain,
    #[error("the config sets the domain; leave `domain` out of the query")]
    DomainIsFixed,
}

// === impl Parameters ===

impl<'a> Parameters<'a> {
    pub(super) fn read(query: &'a str) -> Result<Self, BadParameter> {
        let mut parameters = Self::default();
        for (name, value) in query_parameters(query) {
            let is_new = match name.as_ref() {
                "domain" => parameters.domain.replace(value).is_none(),
                "deny" => parameters.deny.replace(deny(&value)?).is_none(),
                _ => return Err(BadParameter::Unknown { name: name.into() }),
            };
            if !is_new {
                let name = if name == "deny" { "deny" } else { "domain" };
                return Err(BadParameter::Twice { name });
            }
        }
        Ok(parameters)
    }

    /// The domain to judge in.
    pub(super) fn domain(&'a self, config: &'a AuthorizeDomain) -> Result<&'a str, BadParameter> {
        match (config, self.domain.as_deref()) {
            (AuthorizeDomain::Fixed(domain), None) => Ok(domain),
            (AuthorizeDomain::Fixed(_), Some(_)) => Err(BadParameter::DomainIsFixed),
            (AuthorizeDomain::OfQuery { .. }, Some(domain)) => Ok(domain),
            (AuthorizeDomain::OfQuery { otherwise }, None) => {
                otherwise.as_deref().ok_or(BadParameter::NoDomain)
            }
        }
    }

    /// The status of a refusal.
    pub(super) fn deny(&self) -> StatusCode {
        self.deny.unwrap_or(StatusCode::TOO_MANY_REQUESTS)
    }
}

/// The statuses that some proxy needs: nginx understands no refusal but 401 and 403.
fn deny(text: &str) -> Result<StatusCode, BadParameter> {
    match text {
        "401" => Ok(StatusCode::UNAUTHORIZED),
        "403" => Ok(StatusCode::FORBIDDEN),
        "429" => Ok(StatusCode::TOO_MANY_REQUESTS),
        "503" => Ok(StatusCode::SERVICE_UNAVAILABLE),
        other => Err(BadParameter::BadDeny {
            status: other.to_owned(),
        }),
    }
}
