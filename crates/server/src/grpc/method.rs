//! The methods that are served, and where.

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
        found.map(|(_, method)| *method).ok_or_else(|| {
            let message =
                format!("there is no method {path} here; reflection lists those there are");
            Status::told(Code::Unimplemented, message)
        })
    }

    /// All paths.
    #[cfg(test)]
    pub(super) fn paths() -> impl Iterator<Item = &'static str> {
        let others = METHODS.iter().map(|(path, _)| *path);
        std::iter::once(SHOULD_RATE_LIMIT).chain(others)
    }
}
