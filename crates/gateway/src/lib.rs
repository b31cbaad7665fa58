//! ANSWER clients: a reverse proxy that limits.
//!
//! A request passes through these steps, one module each: `connection` reads it within bounds, `guard` rejects what two servers could
//! read differently, `route` finds its route, the limiter decides, `forward` sends it to an `upstream`, and `answer` is the only place
//! where a denial or an error becomes a status. `thread` is their order.
//!
//! The crate opens connections to upstreams but accepts none: listeners, TLS for clients and threads belong to `tidegate-server`.

mod answer;
mod body;
mod charged;
mod clock;
mod config;
mod connection;
mod cors;
mod counts;
mod decision_wait;
mod executor;
mod forward;
mod gateway;
mod gather;
mod guard;
mod header_lines;
mod limit;
mod noted_headers;
mod own;
mod piece;
mod refund;
mod response;
mod route;
mod thread;
mod upgrade;
mod upstream;
mod websocket;

pub use clock::unix_seconds;
pub use config::{
    AccessConfig, Balance, CorsConfig, DenialBody, EscapedSlashes, FrameLimit, FrameWindowFault,
    GatewayBounds, GatewayConfig, HeaderEdits, HeaderMatch, HealthCheck, HostMatch, PassiveHealth,
    PathMatch, PathPattern, PathPatternFault, PathRewrite, Requirement, RetryConfig, RetryOn,
    RouteAction, RouteConfig, RouteMatch, TargetConfig, TargetFault, Timeouts, UpstreamConfig,
    UpstreamProtocol, UpstreamTls, WebSocketLimits, WhenOver,
};
pub use connection::{
    AddressConnections, AddressPermit, ClientConnection, ClientProtocol, ConnectionActivity,
    ServerDrain, client_network, serve_connection,
};
pub use cors::is_preflight;
pub use gateway::{Gateway, GatewayError, PreparedSettings};
pub use header_lines::HeaderLines;
pub use refund::ReceiptGuard;
pub use thread::GatewayThread;
pub use upstream::{FetchError, fetch};
