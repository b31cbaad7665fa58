//! The settings of a gateway, checked and ready to use.
//!
//! [`GatewayConfig`] is replaced as a whole by a reload, while connections stay open. [`GatewayBounds`] is read at start.

mod route;
mod upstream;
mod websocket;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tidegate_identify::{ClientAddress, Identities, MissingToken, Recipes};
use tidegate_rules::Networks;

pub use route::{
    EscapedSlashes, HeaderEdits, HeaderMatch, HostMatch, PathMatch, PathPattern, PathPatternFault,
    PathRewrite, Requirement, RouteAction, RouteConfig, RouteMatch,
};
pub use upstream::{
    Balance, HealthCheck, PassiveHealth, RetryConfig, RetryOn, TargetConfig, TargetFault, Timeouts,
    UpstreamConfig, UpstreamProtocol, UpstreamTls,
};
pub use websocket::{FrameLimit, FrameWindowFault, WebSocketLimits, WhenOver};

/// All that a reload replaces.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The domain of the rules in which requests are judged.
    pub domain: String,
    /// The routes, in the order in which they are tried.
    pub routes: Vec<RouteConfig>,
    /// The upstreams, which routes name by their place in this list.
    pub upstreams: Vec<Arc<UpstreamConfig>>,
    /// The descriptors of a route that names none of its own.
    pub descriptors: Arc<Recipes>,
    /// Tokens, API keys and tables of networks.
    pub identities: Arc<Identities>,
    /// The way to the address of a client behind proxies.
    pub client_address: ClientAddress,
    /// The addresses that may connect at all.
    pub access: AccessConfig,
    /// The answers to requests of web pages of other origins; without it, no CORS header is added.
    pub cors: Option<CorsConfig>,
    /// The path under which Tidegate's own endpoints lie, with a slash at both ends.
    pub own_prefix: String,
    /// The bodies of denials.
    pub denial_body: DenialBody,
}

/// Client addresses that are allowed or denied before anything else is looked at.
#[derive(Clone, Debug, Default)]
pub struct AccessConfig {
    /// With it, clients from elsewhere get 403.
    pub allow: Option<Networks>,
    /// Clients from here get 403.
    pub deny: Option<Networks>,
}

/// The origins of web pages that may read answers of Tidegate's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsConfig {
    /// The origins, such as `https://shop.example`; empty means every origin.
    pub origins: Vec<HeaderValue>,
    /// Adds `Access-Control-Allow-Credentials: true`.
    pub credentials: bool,
}

/// The body of a denial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DenialBody {
    /// Problem details in JSON (RFC 9457).
    #[default]
    Problem,
    /// A text with `{{limit}}`, `{{retry_after}}`, `{{detail}}`, `{{decision}}` and `{{status}}` to be filled in.
    Template {
        /// The media type, which also says how values are escaped: JSON, HTML, or not at all.
        content_type: HeaderValue,
        /// The text.
        text: String,
    },
}

/// The bounds on what a client may send and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayBounds {
    /// Header lines of a request.
    pub max_headers: usize,
    /// Bytes of a request's head.
    pub max_head_bytes: usize,
    /// Bytes of a request's body; a route may set its own.
    pub max_body_bytes: u64,
    /// Time from the first byte of a head to its end.
    pub head_timeout: Duration,
    /// Time between two pieces of a request's body.
    pub body_timeout: Duration,
    /// Time a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// Time a client may take nothing of an answer that waits for it.
    pub write_timeout: Duration,
    /// Requests on one connection before it is closed.
    pub max_requests: u64,
    /// Streams open at once on one HTTP/2 connection.
    pub max_streams: u32,
    /// Bytes that HTTP/2 requests of all connections hold, beside one request of each connection.
    pub http2_memory_bytes: usize,
    /// Time without a frame after which an HTTP/2 client is pinged, and time that it has for the answer.
    pub keepalive_interval: Duration,
    /// Connections of all clients. A further one evicts the one that has been idle for longest, and waits if there is none.
    pub max_connections: usize,
    /// Connections of one client address, half of all if not set; trusted proxies are exempt.
    pub max_connections_per_address: Option<usize>,
}

// === impl GatewayConfig ===

impl GatewayConfig {
    /// The prefix of Tidegate's own paths where nobody sets it.
    pub const OWN_PREFIX: &'static str = "/.tidegate/";

    /// The domain of the rules where nobody sets it.
    pub const DOMAIN: &'static str = "gateway";

    /// The descriptors of a route's requests.
    pub fn descriptors_of<'a>(&'a self, route: &'a RouteConfig) -> &'a Arc<Recipes> {
        route.descriptors.as_ref().unwrap_or(&self.descriptors)
    }

    /// The treatment of a route's requests without a token.
    pub fn missing_token(&self, route: &RouteConfig) -> MissingToken {
        let of_all = || self.identities.missing_token();
        route.missing_token.unwrap_or_else(of_all)
    }

    /// True if a route looks at tokens at all.
    pub fn needs_token(&self, route: &RouteConfig) -> bool {
        self.identities.tokens().is_some()
            && (self.descriptors_of(route).needs_token()
                || self.missing_token(route) == MissingToken::Deny
                || route.require.iter().any(|it| it.source.needs_token())
                || route.websocket.as_ref().is_some_and(|it| it.needs_token()))
    }
}

// === impl AccessConfig ===

impl AccessConfig {
    /// True if a client may connect; one without an address, at a unix socket, may.
    pub fn allows(&self, client: Option<IpAddr>) -> bool {
        let Some(client) = client else { return true };
        let is_allowed = self.allow.as_ref().is_none_or(|allow| allow.holds(client));
        is_allowed && !self.deny.as_ref().is_some_and(|deny| deny.holds(client))
    }
}

// === impl GatewayBounds ===

impl GatewayBounds {
    /// Header lines of a request where nobody says; hyper's own default, which it reads without allocating.
    pub const DEFAULT_MAX_HEADERS: usize = 100;
}

impl Default for GatewayBounds {
    fn default() -> Self {
        Self {
            max_headers: Self::DEFAULT_MAX_HEADERS,
            max_head_bytes: 32 * 1024,
            // As large as nginx's `client_max_body_size` is usually raised to.
            max_body_bytes: 100 * 1024 * 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(1),
            write_timeout: Duration::from_secs(30),
            max_requests: 100_000,
            max_streams: 128,
            // As much as gRPC calls may hold.
            http2_memory_bytes: 256 * 1024 * 1024,
            keepalive_interval: Duration::from_mins(1),
            // An idle one takes 13 KB, so that all of them take 210 MB.
            max_connections: 16_384,
            max_connections_per_address: None,
        }
    }
}
