//! The methods that are served, and where.

use std::iter;

use super::status::{Code, Status};

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    ShouldRateLimit,
    HealthCheck,
    HealthWatch,
    /// Of either version: they differ in nothing but their name.
    Reflection,
}

/// The service that all others are there for.
pub(super) const RATE_LIMIT: &str = "envoy.service.ratelimit.v3.RateLimitService";

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// The others, by their paths.
const METHODS: [(&str, Method); 4] = [
    ("/grpc.health.v1.Health/Check", Method::HealthCheck),
    ("/grpc.health.v1.Health/Watch", Method::HealthWatch),
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        Method::Reflection,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        Method::Reflection,
    ),
];

// === impl Method ===

impl Method {
    /// The method at a path.
    pub(super) fn at(path: &str) -> Result<Self, Status> {
        if path == SHOULD_RATE_LIMIT {
            return Ok(Self::ShouldRateLimit);
        }
        let found = METHODS.iter().find(|(its_path, _)| *its_path == path);
        found
            .map(|(_, method)| *method)
            .ok_or_else(|| Status::told(Code::Unimplemented, unknown(path)))
    }

    /// All paths.
    pub(super) fn paths() -> impl Iterator<Item = &'static str> {
        let others = METHODS.iter().map(|(path, _)| *path);
        iter::once(SHOULD_RATE_LIMIT).chain(others)
    }
}

/// What is wrong with a path, in the words of grpc-go, which envoyproxy/ratelimit is built on.
fn unknown(path: &str) -> String {
    let Some((service, method)) = split(path) else {
        return format!("malformed method name: {path:?}");
    };
    if Method::paths()
        .filter_map(split)
        .any(|(known, _)| known == service)
    {
        format!("unknown method {method} for service {service}")
    } else {
        format!("unknown service {service}")
    }
}

/// The service and the method of a path.
fn split(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix('/')?.rsplit_once('/')
}
