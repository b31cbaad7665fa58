//! Hosts, paths and headers as they are written in routes.

use http::HeaderValue;
use serde_json::{Value as Json, json};
use tidegate_gateway::{EscapedSlashes, HostMatch, PathMatch, PathPattern};
use tidegate_identify::normal_path;

use crate::config::value::{Mismatch, Shown, Value, Words};

/// The path of a route, as it is written and as it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoutePath {
    text: String,
    matches: PathMatch,
}

/// The value of a header that a request must have, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeaderWanted {
    /// `*`, or nothing.
    Any,
    /// This value.
    Value(HeaderValue),
}

// === impl RoutePath ===

impl RoutePath {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_match(self) -> PathMatch {
        self.matches
    }
}

impl Default for RoutePath {
    fn default() -> Self {
        Self {
            text: "/*".to_owned(),
            matches: PathMatch::Any,
        }
    }
}

impl Value for RoutePath {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let mismatch = |hint: String| Mismatch::new("a path", hint);
        let matches = match text.strip_suffix("/*") {
            _ if text.contains(['?', '#', ' ']) => {
                return Err(mismatch("write the path alone, without a query".to_owned()));
            }
            Some("") => PathMatch::Any,
            Some(prefix) if prefix.starts_with('/') && !prefix.contains(['*', '{', '}']) => {
                PathMatch::Prefix(normal(prefix).trim_end_matches('/').to_owned())
            }
            Some(prefix) if prefix.contains('{') => {
                let hint = format!("write `{prefix}/{{rest...}}` for all below a placeholder");
                return Err(mismatch(hint));
            }
            _ if text.contains('*') => {
                let hint = "`*` stands at the end, as in /api/*; write {name} for one segment";
                return Err(mismatch(hint.to_owned()));
            }
            _ => {
                let normal = normal(text);
                let pattern = PathPattern::parse(&normal).map_err(|it| mismatch(it.to_string()))?;
                if pattern.names().next().is_some() {
                    PathMatch::Pattern(pattern)
                } else {
                    PathMatch::Exact(normal)
                }
            }
        };
        Ok(Self {
            text: text.to_owned(),
            matches,
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.text))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// The normal form of a path, to which the paths of requests are brought too. Placeholders stay.
fn normal(path: &str) -> String {
    let normal = normal_path(path).unwrap_or_default();
    if path.contains(['{', '}']) {
        return normal.replace("%7B", "{").replace("%7D", "}");
    }
    normal.into_owned()
}

// === impl HeaderWanted ===

impl HeaderWanted {
    pub(super) fn into_value(self) -> Option<HeaderValue> {
        match self {
            Self::Any => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl Value for HeaderWanted {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        match text {
            "*" => Ok(Self::Any),
            _ => HeaderValue::parse(text).map(Self::Value),
        }
    }

    fn show(&self) -> Shown {
        match self {
            Self::Any => Shown::Plain(json!("*")),
            Self::Value(value) => value.show(),
        }
    }

    fn schema() -> Json {
        HeaderValue::schema()
    }
}

// === impl HostMatch ===

impl Value for HostMatch {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let is_name = |name: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !name.is_empty() && name.bytes().all(is_part)
        };
        let is_address = text.starts_with('[') && text.ends_with(']');
        let text = text.to_ascii_lowercase();
        match text.strip_prefix('*') {
            Some(suffix) if suffix.starts_with('.') && is_name(&suffix[1..]) => {
                Ok(Self::Suffix(suffix.to_owned()))
            }
            None if is_name(&text) || is_address => Ok(Self::Exact(text)),
            _ => Err(Mismatch::new(
                "a host",
                "write shop.example or *.shop.example, without a port",
            )),
        }
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(host_text(self)))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl Words for EscapedSlashes {
    const EXPECTED: &'static str = "a treatment";
    const WORDS: &'static [(&'static str, Self)] = &[("check", Self::Check), ("keep", Self::Keep)];
}

/// A host as it is written.
pub(super) fn host_text(host: &HostMatch) -> String {
    match host {
        HostMatch::Exact(host) => host.clone(),
        HostMatch::Suffix(suffix) => format!("*{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_exact_prefixes_or_patterns() {
        let check = |text: &str, expected: PathMatch| {
            let path = RoutePath::parse(text).expect(text);
            assert_eq!(path.into_match(), expected, "{text}");
        };
        check("/*", PathMatch::Any);
        check("/", PathMatch::Exact("/".into()));
        check("/login", PathMatch::Exact("/login".into()));
        check("/api/*", PathMatch::Prefix("/api".into()));
        let pattern = PathPattern::parse("/users/{id}").expect("a pattern");
        check("/users/{id}", PathMatch::Pattern(pattern));
    }

    #[test]
    fn paths_are_brought_to_their_normal_form() {
        let check = |text: &str, expected: PathMatch| {
            let path = RoutePath::parse(text).expect(text);
            assert_eq!(path.into_match(), expected, "{text}");
        };
        check("/a//b", PathMatch::Exact("/a/b".into()));
        check("/a/./%62", PathMatch::Exact("/a/b".into()));
        check("/café", PathMatch::Exact("/caf%C3%A9".into()));
        check("//a/x/../b//*", PathMatch::Prefix("/a/b".into()));
        let pattern = PathPattern::parse("/caf%C3%A9/{id}/{rest...}").expect("a pattern");
        check("/caf%c3%a9//{id}/{rest...}", PathMatch::Pattern(pattern));
    }

    #[test]
    fn a_bad_path_says_what_to_write() {
        let check = |text: &str, hint: &str| {
            let mismatch = RoutePath::parse(text).expect_err(text);
            assert!(mismatch.hint.contains(hint), "{text}: {}", mismatch.hint);
        };
        check("login", "a path begins with `/`");
        check("/a*", "`*` stands at the end");
        check("/*/a", "`*` stands at the end");
        check("/users/{id}/*", "`/users/{id}/{rest...}`");
        check("/a?b=c", "without a query");
    }

    #[test]
    fn hosts_have_no_port() {
        let check = |text: &str, expected: Option<HostMatch>| {
            assert_eq!(HostMatch::parse(text).ok(), expected, "{text}");
        };
        check(
            "Shop.example",
            Some(HostMatch::Exact("shop.example".into())),
        );
        check(
            "*.shop.example",
            Some(HostMatch::Suffix(".shop.example".into())),
        );
        check("[::1]", Some(HostMatch::Exact("[::1]".into())));
        for text in ["", "*", "*.", "shop.example:80", "a b", "sh*p.example"] {
            check(text, None);
        }
    }
}
