//! Every path of the admin listener, and who may ask for it.

use hyper::Method;

/// One path with one method.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) endpoint: Endpoint,
    /// What it is for, in a few words.
    pub(super) purpose: &'static str,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody: probes bring no token.
    Probe,
    /// Whoever may read.
    Read,
    /// Whoever may change things.
    Change,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Index,
    Health,
    Ready,
    Metrics,
    Stats,
    RulesText,
    Rules,
    Explain,
    Lookup,
    Reset,
    Grant,
    Ban,
    Unban,
    Bans,
    Top,
    Decisions,
    Decision,
    Config,
    LastReload,
    Reload,
    LogLevel,
    SetLogLevel,
    Store,
    OpenApi,
}

/// What a method and a path lead to.
#[derive(Debug)]
pub(super) enum Found {
    Route(&'static Route),
    /// The path is known, but not with this method: those that it has.
    OtherMethods(String),
    Nothing,
}

/// All of them. `openapi.json` describes each; a test holds the two together.
pub(super) static ROUTES: &[Route] = &[
    get("/", Access::Read, Endpoint::Index, "this page"),
    get(
        "/healthcheck",
        Access::Probe,
        Endpoint::Health,
        "200 while it serves, 500 once it drains",
    ),
    get(
        "/readyz",
        Access::Probe,
        Endpoint::Ready,
        "200 once it is ready for requests, else 503 and why",
    ),
    get(
        "/metrics",
        Access::Read,
        Endpoint::Metrics,
        "metrics for Prometheus",
    ),
    get(
        "/stats",
        Access::Read,
        Endpoint::Stats,
        "counters by the names of envoyproxy/ratelimit",
    ),
    get(
        "/rlconfig",
        Access::Read,
        Endpoint::RulesText,
        "the rules in force, as text",
    ),
    get(
        "/api/v1/rules",
        Access::Read,
        Endpoint::Rules,
        "the rules in force, with their counts",
    ),
    post(
        "/api/v1/explain",
        Access::Read,
        Endpoint::Explain,
        "which limits apply to a request, and why",
    ),
    post(
        "/api/v1/keys/lookup",
        Access::Read,
        Endpoint::Lookup,
        "what every limit of a caller says now",
    ),
    post(
        "/api/v1/keys/reset",
        Access::Change,
        Endpoint::Reset,
        "forget the counters of a caller",
    ),
    post(
        "/api/v1/keys/grant",
        Access::Change,
        Endpoint::Grant,
        "give hits back to a caller",
    ),
    post(
        "/api/v1/keys/ban",
        Access::Change,
        Endpoint::Ban,
        "refuse a caller for a time",
    ),
    post(
        "/api/v1/keys/unban",
        Access::Change,
        Endpoint::Unban,
        "lift the ban on a caller",
    ),
    get(
        "/api/v1/bans",
        Access::Read,
        Endpoint::Bans,
        "who is banned",
    ),
    get(
        "/api/v1/top",
        Access::Read,
        Endpoint::Top,
        "the busiest or most refused callers",
    ),
    get(
        "/api/v1/decisions",
        Access::Read,
        Endpoint::Decisions,
        "the latest decisions",
    ),
    get(
        "/api/v1/decisions/{id}",
        Access::Read,
        Endpoint::Decision,
        "one decision, and its reasons",
    ),
    get(
        "/api/v1/config",
        Access::Read,
        Endpoint::Config,
        "the configuration in force",
    ),
    get(
        "/api/v1/reload",
        Access::Read,
        Endpoint::LastReload,
        "how the last reload went",
    ),
    post(
        "/api/v1/reload",
        Access::Change,
        Endpoint::Reload,
        "read the rules again",
    ),
    get(
        "/api/v1/log-level",
        Access::Read,
        Endpoint::LogLevel,
        "the level of the log",
    ),
    put(
        "/api/v1/log-level",
        Access::Change,
        Endpoint::SetLogLevel,
        "change the level of the log",
    ),
    get(
        "/api/v1/store",
        Access::Read,
        Endpoint::Store,
        "how the store is doing",
    ),
    get(
        "/api/v1/openapi.json",
        Access::Read,
        Endpoint::OpenApi,
        "this API, described",
    ),
];

/// What `method` and `path` lead to. HEAD is GET without the body, which hyper leaves out.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let mut of_path = ROUTES.iter().filter(|route| route.has(path)).peekable();
    if of_path.peek().is_none() {
        return Found::Nothing;
    }
    match of_path.clone().find(|route| route.method == *method) {
        Some(route) => Found::Route(route),
        None => Found::OtherMethods(allowed(of_path)),
    }
}

// === impl Route ===

impl Route {
    fn has(&self, path: &str) -> bool {
        self.path == path || self.parameter(path).is_some()
    }

    /// Returns the part of `path` that stands for the parameter at the end of this route; `None` if it has none, or if the path
    /// is another route's.
    pub(super) fn parameter<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (fixed, _) = self.path.split_once('{')?;
        let value = path.strip_prefix(fixed)?;
        (!value.is_empty() && !value.contains('/')).then_some(value)
    }
}

/// The value of the header `Allow`.
fn allowed(routes: impl Iterator<Item = &'static Route>) -> String {
    let mut methods = Vec::new();
    for route in routes {
        methods.push(route.method.as_str());
        if route.method == Method::GET {
            methods.push("HEAD");
        }
    }
    methods.join(", ")
}

const fn get(
    path: &'static str,
    access: Access,
    endpoint: Endpoint,
    purpose: &'static str,
) -> Route {
    route(Method::GET, path, access, endpoint, purpose)
}

const fn post(
    path: &'static str,
    access: Access,
    endpoint: Endpoint,
    purpose: &'static str,
) -> Route {
    route(Method::POST, path, access, endpoint, purpose)
}

const fn put(
    path: &'static str,
    access: Access,
    endpoint: Endpoint,
    purpose: &'static str,
) -> Route {
    route(Method::PUT, path, access, endpoint, purpose)
}

const fn route(
    method: Method,
    path: &'static str,
    access: Access,
    endpoint: Endpoint,
    purpose: &'static str,
) -> Route {
    Route {
        method,
        path,
        access,
        endpoint,
        purpose,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::admin::api::OPENAPI;

    #[test]
    fn every_route_is_in_the_document_and_nothing_else() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let access = if operation["security"] == json!([]) {
                    "probe"
                } else if operation["security"] == json!([{"token": []}]) {
                    "change"
                } else {
                    "read"
                };
                described.insert(format!("{} {path} {access}", method.to_uppercase()));
            }
        }
        let routes = ROUTES.iter().map(|route| {
            let access = match route.access {
                Access::Probe => "probe",
                Access::Read => "read",
                Access::Change => "change",
            };
            format!("{} {} {access}", route.method, route.path)
        });
        assert_eq!(routes.collect::<BTreeSet<_>>(), described);
    }
}
