//! ANSWER clients: a reverse proxy that limits.
//!
//! A request passes through these steps, one module each: [`connection`] reads it within bounds, [`guard`] rejects what two
//! servers could read differently, [`route`] finds its route, [`caller`] makes its descriptors, the limiter decides, [`forward`]
//! sends it to an [`upstream`], and [`answer`] is the only place where a denial or an error becomes a status.
//!
//! The crate opens connections to upstreams but accepts none: listeners, TLS for clients and threads belong to `tidegate-server`.

mod body;
mod config;
mod upstream;

pub use config::{
    AccessConfig, Balance, CorsConfig, DenialBody, GatewayBounds, GatewayConfig, HeaderEdits,
    HeaderMatch, HealthCheck, HostMatch, PassiveHealth, PathMatch, PathPattern, PathPatternFault,
    PathRewrite, Requirement, RetryConfig, RetryOn, RouteAction, RouteConfig, RouteMatch,
    TargetConfig, TargetFault, Timeouts, UpstreamConfig, UpstreamProtocol, UpstreamTls,
};
