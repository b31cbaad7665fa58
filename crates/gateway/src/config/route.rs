//! Routes: requests to what becomes of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use tidegate_identify::{AmbiguousValue, MissingToken, Recipes, Request, Source};

use super::{RetryConfig, WebSocketLimits};

/// One route.
#[derive(Clone, Debug)]
pub struct RouteConfig {
    /// Its name, for logs, metrics and the source `route`.
    pub name: String,
    /// The requests that take it.
    pub matches: RouteMatch,
    /// The treatment of escaped slashes in its paths.
    pub escaped_slashes: EscapedSlashes,
    /// The fate of a request that is allowed.
    pub action: RouteAction,
    /// The descriptors of its requests; without it, the gateway's.
    pub descriptors: Option<Arc<Recipes>>,
    /// The treatment of requests without a token; without it, that of the settings of tokens.
    pub missing_token: Option<MissingToken>,
    /// Conditions on the caller; one that is not met gets 403.
    pub require: Vec<Requirement>,
    /// Changes to the headers of the request.
    pub request_headers: HeaderEdits,
    /// Changes to the headers of the response.
    pub response_headers: HeaderEdits,
    /// Retries besides those that are always safe.
    pub retry: Option<RetryConfig>,
    /// The largest body of a request; without it, the gateway's bound.
    pub max_body_bytes: Option<u64>,
    /// The longest time a request may take in all, body of the response included; streams need none.
    pub total_timeout: Option<Duration>,
    /// Limits on the frames of its WebSocket connections; without it, their bytes pass unread.
    pub websocket: Option<Arc<WebSocketLimits>>,
}

/// The requests that take a route. Every part must match; an empty part matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteMatch {
    /// Hosts.
    pub hosts: Vec<HostMatch>,
    /// The path.
    pub path: PathMatch,
    /// Methods.
    pub methods: Vec<Method>,
    /// Headers.
    pub headers: Vec<HeaderMatch>,
}

/// A host, in lower case and without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMatch {
    /// `shop.example`.
    Exact(String),
    /// `*.shop.example`: every host that ends in `.shop.example`; the text begins with the dot.
    Suffix(String),
}

/// The path of a request, in its normal form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathMatch {
    /// Every path.
    #[default]
    Any,
    /// This path.
    Exact(String),
    /// This path and all below it: `/api` matches `/api` and `/api/x`, not `/apix`.
    Prefix(String),
    /// A path with placeholders.
    Pattern(PathPattern),
}

/// A path with placeholders for whole segments: `/users/{id}/posts` or `/files/{path...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    /// One segment, whatever it is.
    One(String),
    /// All that is left, at the end only.
    Rest(String),
}

/// A text that is not a path pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathPatternFault {
    /// It does not begin with a slash.
    #[error("a path begins with `/`")]
    NoSlash,
    /// A placeholder is not closed or has no name.
    #[error("`{segment}` is not a placeholder; write {{name}}, or {{name...}} at the end")]
    BadPlaceholder {
        /// The segment.
        segment: String,
    },
    /// `{name...}` is not the last segment.
    #[error("`{{{name}...}}` takes all that is left, so nothing can follow it")]
    RestNotLast {
        /// The placeholder.
        name: String,
    },
}

/// The treatment of paths with an escaped slash (`%2F`), which some servers decode before they split the path into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EscapedSlashes {
    /// The route must take the decoded path too.
    #[default]
    Check,
    /// The upstream does not decode them; only an earlier route must not take the decoded path.
    Keep,
}

/// A header that a request must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// Its name.
    pub name: HeaderName,
    /// Its value; without it, any.
    pub value: Option<HeaderValue>,
}

/// A condition on the caller, such as `plan: [premium, admin]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The value that is looked at.
    pub source: Source,
    /// With it, the value must be one of these.
    pub allow: Option<Vec<String>>,
    /// The value must be none of these.
    pub deny: Vec<String>,
}

/// The fate of a request that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// It is sent on.
    Forward {
        /// The place of the upstream in the list.
        upstream: usize,
        /// The change to its path.
        rewrite: Option<PathRewrite>,
    },
    /// It is told to go elsewhere.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: StatusCode,
        /// The new address; `{path}` is filled in, and `{query}` with its question mark, if there is a query.
        location: String,
    },
    /// It gets this response.
    Respond {
        /// The status.
        status: StatusCode,
        /// The media type of the body.
        content_type: HeaderValue,
        /// The body.
        body: Bytes,
    },
}

/// A change to the path of a request; the query stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRewrite {
    /// The part of the path that the route's prefix matched is replaced by this.
    Prefix(String),
    /// The whole path is replaced by this, with `{name}` filled in from the route's pattern.
    Whole(String),
}

/// Changes to headers: removed first, then set, then added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Every line of these goes.
    pub remove: Vec<HeaderName>,
    /// These replace every line of the same name.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// These stand beside lines of the same name.
    pub add: Vec<(HeaderName, HeaderValue)>,
}

// === impl RouteMatch ===

impl RouteMatch {
    /// Whether it matches every request.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Requirement ===

impl Requirement {
    /// Returns true if the caller of `request` is one of those that a route is for: one of its values is allowed, and none is denied. A
    /// claim that is a list has several. A value that the request lacks is none of the allowed ones.
    ///
    /// # Errors
    ///
    /// If a header behind the value has more than one meaning.
    pub fn is_met(&self, request: &Request<'_>) -> Result<bool, AmbiguousValue> {
        let values = self.source.all_of(request)?;
        let is_in = |list: &[String]| values.iter().any(|value| list.iter().any(|it| it == value));
        Ok(self.allow.as_deref().is_none_or(is_in) && !is_in(&self.deny))
    }
}

// === impl PathPattern ===

impl PathPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PathPatternFault> {
        let path = text.strip_prefix('/').ok_or(PathPatternFault::NoSlash)?;
        let mut segments = Vec::new();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let segment = segment(part)?;
            if let Segment::Rest(name) = &segment
                && parts.peek().is_some()
            {
                return Err(PathPatternFault::RestNotLast { name: name.clone() });
            }
            segments.push(segment);
        }
        Ok(Self { segments })
    }

    /// Whether `path` matches.
    pub fn matches(&self, path: &str) -> bool {
        let Some(mut left) = path.strip_prefix('/').map(Some) else {
            return false;
        };
        for segment in &self.segments {
            let Some(rest) = left else { return false };
            let (part, after) = match rest.split_once('/') {
                Some((part, after)) => (part, Some(after)),
                None => (rest, None),
            };
            match segment {
                Segment::Rest(_) => return true,
                Segment::Text(text) if text == part => {}
                Segment::One(_) if !part.is_empty() => {}
                Segment::Text(_) | Segment::One(_) => return false,
            }
            left = after;
        }
        left.is_none()
    }

    /// The values of the placeholders in `path`, if `normal` matches, which has the same segments with other escapes.
    pub fn values<'p>(&'p self, normal: &str, path: &'p str) -> Option<BTreeMap<&'p str, &'p str>> {
        if !self.matches(normal) {
            return None;
        }
        let mut values = BTreeMap::new();
        let mut left = path.strip_prefix('/')?;
        for segment in &self.segments {
            let (part, after) = left.split_once('/').unwrap_or((left, ""));
            match segment {
                Segment::Text(_) => {}
                Segment::One(name) => {
                    values.insert(name.as_str(), part);
                }
                Segment::Rest(name) => {
                    values.insert(name.as_str(), left);
                }
            }
            left = after;
        }
        Some(values)
    }

    /// The names of the placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Text(_) => None,
            Segment::One(name) | Segment::Rest(name) => Some(name.as_str()),
        })
    }
}

fn segment(part: &str) -> Result<Segment, PathPatternFault> {
    if !part.contains(['{', '}']) {
        return Ok(Segment::Text(part.to_owned()));
    }
    let bad = || PathPatternFault::BadPlaceholder {
        segment: part.to_owned(),
    };
    let inner = part
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(bad)?;
    let (name, is_rest) = match inner.strip_suffix("...") {
        Some(name) => (name, true),
        None => (inner, false),
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_word) {
        return Err(bad());
    }
    let name = name.to_owned();
    Ok(if is_rest {
        Segment::Rest(name)
    } else {
        Segment::One(name)
    })
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    fn check(pattern: &str, path: &str, expected: Option<&[(&str, &str)]>) {
        let pattern = PathPattern::parse(pattern).unwrap();
        let values = pattern.values(path, path);
        let expected = expected.map(|pairs| pairs.iter().copied().collect());
        assert_eq!(values, expected, "{pattern:?} {path}");
        assert_eq!(pattern.matches(path), expected.is_some());
    }

    #[test]
    fn placeholders_take_whole_segments() {
        check("/users/{id}", "/users/7", Some(&[("id", "7")]));
        check("/users/{id}", "/users/", None);
        check("/users/{id}", "/users/7/posts", None);
        check("/users/{id}/posts", "/users/7/posts", Some(&[("id", "7")]));
        check("/files/{rest...}", "/files/a/b", Some(&[("rest", "a/b")]));
        check("/files/{rest...}", "/files/", Some(&[("rest", "")]));
        check("/files/{rest...}", "/files", None);
        check("/", "/", Some(&[]));
    }

    #[test]
    fn faults_name_the_segment() {
        let fault = |text: &str| PathPattern::parse(text).unwrap_err().to_string();
        assert_eq!(fault("users"), "a path begins with `/`");
        assert_eq!(
            fault("/a{id}"),
            "`a{id}` is not a placeholder; write {name}, or {name...} at the end"
        );
        assert_eq!(
            fault("/{all...}/x"),
            "`{all...}` takes all that is left, so nothing can follow it"
        );
    }
}
