//! Routes: the first that matches a request.

use std::borrow::Cow;

use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use tidegate_identify::{LooseReading, normal_host, normal_path};

use crate::answer::Rejection;
use crate::config::{EscapedSlashes, GatewayConfig, HostMatch, PathMatch, RouteConfig, RouteMatch};
use crate::guard::Malformed;

/// The parts of a request by which routes are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed<'a> {
    /// The host in lower case, without port; empty if the request names none.
    pub(crate) host: &'a str,
    /// The path in its normal form, borrowed if it has only one reading.
    pub(crate) path: &'a Cow<'a, str>,
    /// The head of the request.
    pub(crate) head: &'a Parts,
}

/// Finds the first route that matches. A request is rejected if its path leads a server that decodes it to another place than the
/// route was matched by: out of its folder, to another route, or to a path that no route takes.
pub(crate) fn find<'r>(
    routes: &'r [RouteConfig],
    request: &Routed<'_>,
) -> Result<&'r RouteConfig, Rejection> {
    let index = request.first_of(routes).ok_or(Rejection::NoRoute)?;
    if let Cow::Owned(path) = request.path
        && !is_unambiguous(path, index, routes, request)
    {
        return Err(Malformed::AmbiguousPath.into());
    }
    Ok(&routes[index])
}

/// True if servers that read `path` differently reach what the route at `index` is for.
fn is_unambiguous(path: &str, index: usize, routes: &[RouteConfig], request: &Routed<'_>) -> bool {
    let reading = LooseReading::of(path);
    if reading.is_unsafe || reading.path == path {
        return !reading.is_unsafe;
    }
    let taken_by = |path: String| {
        let path = Cow::Owned(path);
        let read = Routed {
            path: &path,
            ..*request
        };
        read.first_of(routes)
    };
    let other = taken_by(reading.path);
    match routes[index].escaped_slashes {
        EscapedSlashes::Check => other == Some(index),
        // The upstream is said not to decode slashes. Routes that must hold all the same stand before this one.
        EscapedSlashes::Keep => {
            other.is_none_or(|other| other >= index)
                && taken_by(LooseReading::with_escaped_slashes(path)) == Some(index)
        }
    }
}

// === impl GatewayConfig ===

impl GatewayConfig {
    /// The route of a request, for people who want to know before anybody sends it; else the status that it gets.
    pub fn route_of(&self, head: &Parts) -> Result<&RouteConfig, StatusCode> {
        let named = head.uri.authority().map(Authority::as_str);
        let of_header = || head.headers.get(HOST)?.to_str().ok();
        let host = named
            .or_else(of_header)
            .map(normal_host)
            .unwrap_or_default();
        let path = normal_path(head.uri.path()).unwrap_or_default();
        let request = Routed {
            host: &host,
            path: &path,
            head,
        };
        find(&self.routes, &request).map_err(|rejection| rejection.status())
    }
}

// === impl Routed ===

impl Routed<'_> {
    fn first_of(&self, routes: &[RouteConfig]) -> Option<usize> {
        routes.iter().position(|route| self.takes(&route.matches))
    }

    fn takes(&self, route: &RouteMatch) -> bool {
        let of_host = |host: &HostMatch| match host {
            HostMatch::Exact(exact) => exact == self.host,
            HostMatch::Suffix(suffix) => self.host.ends_with(suffix.as_str()),
        };
        (route.hosts.is_empty() || route.hosts.iter().any(of_host))
            && self.has_path(&route.path)
            && (route.methods.is_empty() || route.methods.contains(&self.head.method))
            && route.headers.iter().all(|header| match &header.value {
                None => self.head.headers.contains_key(&header.name),
                Some(value) => {
                    let mut lines = self.head.headers.get_all(&header.name).iter();
                    lines.any(|line| line == value)
                }
            })
    }

    fn has_path(&self, path: &PathMatch) -> bool {
        match path {
            PathMatch::Any => true,
            PathMatch::Exact(exact) => *exact == **self.path,
            PathMatch::Prefix(prefix) => below(prefix, self.path).is_some(),
            PathMatch::Pattern(pattern) => pattern.matches(self.path),
        }
    }
}

/// The part of `path` below `prefix`: empty, or beginning with a slash.
pub(crate) fn below<'p>(prefix: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue, Method, Request};

    use super::*;
    use crate::config::{HeaderMatch, PathPattern};

    fn check(route: &RouteMatch, host: &str, method: Method, path: &str, expected: bool) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("x-beta", "1");
        let (head, ()) = request.body(()).unwrap().into_parts();
        let request = Routed {
            host,
            path: &Cow::Borrowed(path),
            head: &head,
        };
        assert_eq!(request.takes(route), expected, "{route:?} {host} {path}");
    }

    #[test]
    fn every_part_must_match() {
        let mut route = RouteMatch::default();
        check(&route, "a", Method::GET, "/", true);
        route.hosts = vec![HostMatch::Exact("a".into()), HostMatch::Suffix(".b".into())];
        check(&route, "a", Method::GET, "/", true);
        check(&route, "x.b", Method::GET, "/", true);
        check(&route, "b", Method::GET, "/", false);
        check(&route, "xa", Method::GET, "/", false);
        route.methods = vec![Method::POST];
        check(&route, "a", Method::GET, "/", false);
        check(&route, "a", Method::POST, "/", true);
        let header = |value: Option<&'static str>| HeaderMatch {
            name: HeaderName::from_static("x-beta"),
            value: value.map(HeaderValue::from_static),
        };
        route.headers = vec![header(None), header(Some("1"))];
        check(&route, "a", Method::POST, "/", true);
        route.headers = vec![header(Some("2"))];
        check(&route, "a", Method::POST, "/", false);
    }

    #[test]
    fn prefixes_end_at_a_slash() {
        let prefix = |text: &str| RouteMatch {
            path: PathMatch::Prefix(text.into()),
            ..RouteMatch::default()
        };
        check(&prefix("/api"), "", Method::GET, "/api", true);
        check(&prefix("/api"), "", Method::GET, "/api/x", true);
        check(&prefix("/api"), "", Method::GET, "/apix", false);
        check(&prefix("/"), "", Method::GET, "/x", true);
        let pattern = RouteMatch {
            path: PathMatch::Pattern(PathPattern::parse("/u/{id}").unwrap()),
            ..RouteMatch::default()
        };
        check(&pattern, "", Method::GET, "/u/7", true);
        check(&pattern, "", Method::GET, "/u/7/x", false);
    }
}
