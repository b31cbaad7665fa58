//! How `/v1/authorize` reads the requests it is asked about.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderName;
use tidegate_identify::{ClientAddress, Identities, Recipes};

/// How `/v1/authorize` reads the requests it is asked about.
#[derive(Clone, Debug, Default)]
pub struct AuthorizeConfig {
    /// Which proxies are believed, and how the client's address is found.
    pub client_address: ClientAddress,
    /// Which domain of the rules is asked.
    pub domain: AuthorizeDomain,
    /// In which headers a trusted proxy describes the request. Only these are read.
    pub request_headers: RequestHeaders,
    /// The form in which the proxy hands over a header that its client sent in several lines.
    pub header_lines: HeaderForm,
    /// What descriptors are made.
    pub descriptors: Recipes,
    /// Tokens, API keys and labels, which a reload replaces while requests are answered.
    pub identities: Arc<ArcSwap<Identities>>,
}

/// Which domain of the rules a request is judged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizeDomain {
    /// This one; `?domain=` is refused.
    Fixed(String),
    /// The one in `?domain=`, which the proxy's config sets, or if there is none, this one.
    OfQuery {
        /// Without it, a question that names no domain is refused.
        otherwise: Option<String>,
    },
}

/// The form of a header that a client sent in several lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderForm {
    /// As many lines: nginx, Traefik, Caddy, HAProxy.
    #[default]
    Separate,
    /// One line, with commas between: Envoy's `ext_authz`.
    Joined,
}

/// The headers in which a trusted proxy describes the request.
///
/// One set and never two: a proxy writes its own and hands the others through as the client sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeaders {
    /// Path and query.
    pub uri: HeaderName,
    /// The method.
    pub method: HeaderName,
    /// The host.
    pub host: HeaderName,
}

// === impl AuthorizeDomain ===

impl Default for AuthorizeDomain {
    fn default() -> Self {
        Self::OfQuery { otherwise: None }
    }
}

// === impl RequestHeaders ===

impl RequestHeaders {
    /// `X-Forwarded-Uri`, `-Method` and `-Host`, as Traefik and Caddy write them by themselves.
    pub const fn x_forwarded() -> Self {
        Self {
            uri: HeaderName::from_static("x-forwarded-uri"),
            method: HeaderName::from_static("x-forwarded-method"),
            host: HeaderName::from_static("x-forwarded-host"),
        }
    }

    /// `X-Original-URI`, `-Method` and `-Host`, as many configs of nginx write them.
    pub const fn x_original() -> Self {
        Self {
            uri: HeaderName::from_static("x-original-uri"),
            method: HeaderName::from_static("x-original-method"),
            host: HeaderName::from_static("x-original-host"),
        }
    }
}

impl Default for RequestHeaders {
    fn default() -> Self {
        Self::x_forwarded()
    }
}
