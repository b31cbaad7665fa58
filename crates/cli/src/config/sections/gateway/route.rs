//! Routes: requests to what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes as Body;
use http::{HeaderValue, Method, StatusCode};
use tidegate_gateway::{
    EscapedSlashes, HeaderEdits, HeaderMatch, HostMatch, PathMatch, PathRewrite, Requirement,
    RouteAction, RouteConfig, RouteMatch,
};
use tidegate_identify::Source;
use tidegate_rules::document::{Code, Finding};

use super::super::authorize;
use super::bounds::bytes;
use super::headers::{edits, header_name};
use super::matching::{self, HeaderWanted, RoutePath};
use super::upstream::retry;
use super::websocket;
use crate::config::reader::Section;
use crate::config::value::Bytes;

/// A route whose upstream is only a name yet.
#[derive(Clone, Debug)]
pub(super) struct RouteDraft {
    pub(super) route: RouteConfig,
    pub(super) upstream: Option<String>,
}

/// Reads one route.
pub(super) fn read(section: &mut Section<'_, '_>) -> RouteDraft {
    let name: Option<String> = section.optional(
        "name",
        "Its name, for logs, metrics and the source `route`; methods, host and path, if not set",
    );
    let (matches, described) = matches(section);
    let upstream: Option<String> = section.optional(
        "upstream",
        "The upstream that its requests are sent to; `gateway.upstream` or the only one, if not set",
    );
    let action = action(section, &matches.path, upstream.is_some());
    let max_body: Option<Bytes> = section.optional(
        "max_body",
        "Bytes of a request's body; gateway.bounds.max_body, if not set",
    );
    let route = RouteConfig {
        name: name.unwrap_or(described),
        escaped_slashes: escaped_slashes(section),
        action,
        descriptors: authorize::own_descriptors(
            section,
            "The descriptors of its requests; with [], they are not limited; those of `gateway.descriptors`, if not set",
        )
        .map(Arc::new),
        missing_token: section.optional(
            "missing_token",
            "The treatment of a request without a token: anonymous, or deny (401); identity.tokens.missing_token, if not set",
        ),
        require: requirements(section),
        request_headers: edits(
            section.block("request_headers", "Changes to the headers of the request"),
        ),
        response_headers: edits(
            section.block("response_headers", "Changes to the headers of the response"),
        ),
        retry: retry(section.block_or("retry", "Retries besides those that are always safe", "on")),
        max_body_bytes: max_body.map(bytes),
        total_timeout: total_timeout(section),
        websocket: websocket::read(section).map(Arc::new),
        matches,
    };
    refuse_bad_name(section, &route.name);
    RouteDraft { route, upstream }
}

/// A route without settings of its own that sends requests on.
pub(super) fn to_upstream(matches: RouteMatch, upstream: usize) -> RouteConfig {
    RouteConfig {
        name: String::new(),
        matches,
        action: RouteAction::Forward {
            upstream,
            rewrite: None,
        },
        escaped_slashes: EscapedSlashes::Check,
        descriptors: None,
        missing_token: None,
        require: Vec::new(),
        request_headers: HeaderEdits::default(),
        response_headers: HeaderEdits::default(),
        retry: None,
        max_body_bytes: None,
        total_timeout: None,
        websocket: None,
    }
}

/// The requests that take the route, and a name made of them.
fn matches(section: &mut Section<'_, '_>) -> (RouteMatch, String) {
    let hosts: Vec<HostMatch> = section.list(
        "host",
        "Hosts without a port: shop.example or *.shop.example",
        Vec::new(),
    );
    let path: Option<RoutePath> = section.optional(
        "path",
        "The path: /x alone, /x/* with all below it, or a pattern such as /users/{id}",
    );
    let methods: Vec<Method> = section.list("method", "Methods", Vec::new());
    let headers = section.named_blocks(
        "header",
        "Headers that a request must have, with their values; without a value, any",
        Some("value"),
        |section| section.value("value", "Its value, or * for any", HeaderWanted::Any),
    );
    let path = path.unwrap_or_default();
    let words: Vec<String> = methods.iter().map(ToString::to_string).collect();
    let hosts_text: Vec<String> = hosts.iter().map(matching::host_text).collect();
    let described = format!(
        "{} {}{}",
        words.join(","),
        hosts_text.join(","),
        path.text()
    );
    let described = described.trim().to_owned();
    let headers = headers
        .into_iter()
        .filter_map(|item| {
            Some(HeaderMatch {
                name: header_name(section, &item)?,
                value: item.value.into_value(),
            })
        })
        .collect();
    let matches = RouteMatch {
        hosts,
        path: path.into_match(),
        methods,
        headers,
    };
    (matches, described)
}

/// The fate of a request; the place of the upstream is found later.
fn action(section: &mut Section<'_, '_>, path: &PathMatch, has_upstream: bool) -> RouteAction {
    let rewrite: Option<String> = section.optional(
        "rewrite",
        "The new path; of a path that ends in /*, the new beginning of it; {name} is filled in from the pattern",
    );
    let redirect = redirect(section.block_or(
        "redirect",
        "The address that clients are sent to, with {path} and {query} filled in",
        "location",
    ));
    let respond = respond(section.block_or("respond", "A response of the gateway's own", "status"));
    let forwarding = [("upstream", has_upstream), ("rewrite", rewrite.is_some())];
    let others = [
        ("redirect", redirect.is_some()),
        ("respond", respond.is_some()),
    ];
    let set = || {
        forwarding
            .iter()
            .chain(&others)
            .filter(|(_, is_set)| *is_set)
    };
    let is_conflict = others.iter().any(|(_, is_set)| *is_set) && set().count() > 1;
    if is_conflict {
        let names: Vec<String> = set().map(|(name, _)| format!("`{name}`")).collect();
        let message = format!("{} exclude each other", names.join(", "));
        let last = set().next_back().map_or("redirect", |(name, _)| name);
        section.fault(last, Code::Conflict, message, "keep one of them");
    }
    match (redirect, respond) {
        (Some(action), _) | (None, Some(action)) => action,
        (None, None) => RouteAction::Forward {
            upstream: 0,
            rewrite: rewrite.and_then(|text| path_rewrite(section, path, text)),
        },
    }
}

fn path_rewrite(
    section: &mut Section<'_, '_>,
    path: &PathMatch,
    text: String,
) -> Option<PathRewrite> {
    let fault = |section: &mut Section<'_, '_>, message: String, hint: &str| {
        section.fault("rewrite", Code::BadValue, message, hint);
        None
    };
    if !text.starts_with('/') || text.contains(['?', '#', ' ']) {
        let message = "a path begins with `/` and has no query".to_owned();
        return fault(section, message, "write a path such as /v2");
    }
    let known: Vec<&str> = match path {
        PathMatch::Pattern(pattern) => pattern.names().collect(),
        PathMatch::Any | PathMatch::Exact(_) | PathMatch::Prefix(_) => Vec::new(),
    };
    let unknown = placeholders(&text).find(|name| !known.contains(name));
    if let Some(name) = unknown {
        let message = format!("`{{{name}}}` is not in the route's path");
        return fault(section, message, "name it in `path`, as in /users/{id}");
    }
    Some(match path {
        PathMatch::Any | PathMatch::Prefix(_) => PathRewrite::Prefix(text),
        PathMatch::Exact(_) | PathMatch::Pattern(_) => PathRewrite::Whole(text),
    })
}

/// The names between braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split('{').skip(1);
    pieces.map(|piece| piece.split_once('}').map_or(piece, |(name, _)| name))
}

fn redirect(mut section: Section<'_, '_>) -> Option<RouteAction> {
    let location: Option<String> = section.optional(
        "location",
        "The new address, such as https://shop.example{path}{query}",
    );
    let status: Option<StatusCode> = section.optional(
        "status",
        "301, 302, 303, 307 or 308; 307, if not set: it keeps the method and is not remembered",
    );
    let Some(location) = location else {
        section.refuse_alone(&["status"], "`location`");
        return None;
    };
    let filled = location.replace("{path}", "").replace("{query}", "");
    if filled.contains(['{', '}']) || HeaderValue::from_str(&filled).is_err() {
        let message = "this is not an address".to_owned();
        let hint = "write a URL or a path; only {path} and {query} are filled in";
        section.fault("location", Code::BadValue, message, hint);
    }
    let status = status.unwrap_or(StatusCode::TEMPORARY_REDIRECT);
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        let message = format!("{} is not a redirect", status.as_u16());
        section.fault(
            "status",
            Code::BadValue,
            message,
            "write 301, 302, 303, 307 or 308",
        );
    }
    Some(RouteAction::Redirect { status, location })
}

fn respond(mut section: Section<'_, '_>) -> Option<RouteAction> {
    let status: Option<StatusCode> = section.optional("status", "The status");
    let content_type: Option<HeaderValue> = section.optional(
        "content_type",
        "The media type of the body; text/plain; charset=utf-8, if not set",
    );
    let body: Option<String> = section.optional("body", "The body; empty, if not set");
    let Some(status) = status else {
        section.refuse_alone(&["content_type", "body"], "`status`");
        return None;
    };
    Some(RouteAction::Respond {
        status,
        content_type: content_type.unwrap_or(HeaderValue::from_static("text/plain; charset=utf-8")),
        body: Body::from(body.unwrap_or_default()),
    })
}

/// `require` and `deny`: sources with the values that callers must have, or must not have.
fn requirements(section: &mut Section<'_, '_>) -> Vec<Requirement> {
    let values = |section: &mut Section<'_, '_>| {
        let values: Vec<String> = section.list("values", "The values", Vec::new());
        if values.is_empty() {
            section.missing("values", "write at least one value");
        }
        values
    };
    let required = section.named_blocks(
        "require",
        "Sources with the values of which a caller must have one, as in plan: [premium]; others get 403",
        Some("values"),
        values,
    );
    let denied = section.named_blocks(
        "deny",
        "Sources with the values that a caller must not have, as in plan: [banned]; these get 403",
        Some("values"),
        values,
    );
    let mut all = Vec::new();
    for (items, is_deny) in [(required, false), (denied, true)] {
        for item in items {
            let source = match item.name.parse::<Source>() {
                Ok(source) => source,
                Err(fault) => {
                    section.report(Finding::error(Code::BadValue, item.span, fault.to_string()));
                    continue;
                }
            };
            let (allow, deny) = if is_deny {
                (None, item.value)
            } else {
                (Some(item.value), Vec::new())
            };
            all.push(Requirement {
                source,
                allow,
                deny,
            });
        }
    }
    all
}

fn escaped_slashes(section: &mut Section<'_, '_>) -> EscapedSlashes {
    let treatment: Option<EscapedSlashes> = section.optional(
        "escaped_slashes",
        "The treatment of paths with %2F: check (400 if the route does not take the decoded path too), or keep for an upstream \
         that does not decode it; check, if not set",
    );
    treatment.unwrap_or_default()
}

fn total_timeout(section: &mut Section<'_, '_>) -> Option<Duration> {
    let timeout: Option<Duration> = section.optional(
        "total_timeout",
        "The longest time a request may take, the body of the response included; none, if not set",
    );
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        let message = "`total_timeout` must be greater than zero".to_owned();
        section.fault(
            "total_timeout",
            Code::BadValue,
            message,
            "write a duration such as 30s",
        );
    }
    timeout
}

/// More than a name needs.
const MAX_NAME_BYTES: usize = 128;

fn refuse_bad_name(section: &mut Section<'_, '_>, name: &str) {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(char::is_control) {
        let message = format!("a name has 1 to {MAX_NAME_BYTES} visible characters");
        section.fault(
            "name",
            Code::BadValue,
            message,
            "write a short name such as login",
        );
    }
}
