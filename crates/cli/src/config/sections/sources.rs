//! Sources that can never have a value, because the keys or tables behind them are not configured.
//!
//! A descriptor with such a source is never made, so its limits would be off in silence.

use tidegate_identify::Source;
use tidegate_rules::document::{Code, Finding, Kind, Node, Span, did_you_mean};

use super::Config;
use crate::config::reader::Section;

/// The front whose requests are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DescribedBy {
    Gateway,
    Authorize,
}

/// A source in the config file, with its place.
type WrittenSource = (Source, Span);

/// Reports sources of the gateway and of `/v1/authorize` that can never have a value.
pub(super) fn refuse_empty(config: &Config, root: &mut Section<'_, '_>) {
    // What has faults may be what the source needs.
    if root.has_faults() {
        return;
    }
    let mut found: Vec<(DescribedBy, WrittenSource)> = Vec::new();
    for (path, front) in [
        ("gateway.descriptors", DescribedBy::Gateway),
        ("gateway.routes", DescribedBy::Gateway),
        ("authorize.descriptors", DescribedBy::Authorize),
    ] {
        let mut written = Vec::new();
        match root.written(path) {
            Some(node) if path == "gateway.routes" => of_routes(&node, &mut written),
            Some(node) => of_descriptors(&node, &mut written),
            None => {}
        }
        found.extend(written.into_iter().map(|source| (front, source)));
    }
    for (front, (source, span)) in found {
        if let Some((reason, hint)) = config.never(&source, front) {
            let message = format!("`{source}` never has a value: {reason}");
            root.report(Finding::error(Code::NotApplicable, span, message).hint(hint));
        }
    }
}

// === impl Config ===

impl Config {
    /// The reason why a source never has a value, and what to do about it.
    fn never(&self, source: &Source, front: DescribedBy) -> Option<(&'static str, String)> {
        let identity = &self.identity;
        let tokens = identity.tokens.as_ref();
        let has_claim = match source {
            Source::Plan => tokens.is_some_and(|it| it.settings.plan_claim.is_some()),
            Source::Tenant => tokens.is_some_and(|it| it.settings.tenant_claim.is_some()),
            _ => tokens.is_some(),
        };
        let has_api_keys = identity.api_keys.is_some();
        let tls = self.listeners.gateway.tls.as_ref();
        let has_certificates = tls.is_some_and(|tls| tls.client_ca.is_some());
        let missing = match source {
            Source::Claim(_) if !has_claim => (
                "no token is known",
                "name the keys of tokens in `identity.tokens`",
            ),
            Source::ApiKey if !has_api_keys => (
                "no API key is known",
                "name the table of API keys in `identity.api_keys`",
            ),
            Source::Plan if !has_api_keys && !has_claim => (
                "no API key has a plan, and no claim of tokens is one",
                "set `identity.api_keys`, or `plan_claim` in `identity.tokens`",
            ),
            Source::Tenant if !has_api_keys && !has_claim => (
                "no API key has a tenant, and no claim of tokens is one",
                "set `identity.api_keys`, or `tenant_claim` in `identity.tokens`",
            ),
            Source::Label(table) => return self.no_labels(table),
            Source::Certificate if front == DescribedBy::Authorize => (
                "no proxy tells of client certificates",
                "let the proxy send the subject in a header that it sets itself, and use `header:NAME`",
            ),
            Source::Certificate if !has_certificates => (
                "clients of the gateway show no certificate",
                "set `listeners.gateway.tls.client_ca`",
            ),
            Source::Route if front == DescribedBy::Authorize => (
                "only requests to the gateway have a route",
                "use `path`, or an entry with `constant:TEXT`",
            ),
            _ => return None,
        };
        let (reason, hint) = missing;
        Some((reason, hint.to_owned()))
    }

    fn no_labels(&self, table: &str) -> Option<(&'static str, String)> {
        let known = || self.identity.labels.iter().map(|(name, _)| name.as_str());
        if known().any(|name| name == table) {
            return None;
        }
        let hint = did_you_mean(table, known());
        let hint =
            hint.unwrap_or_else(|| format!("name the file of `{table}` in `identity.labels`"));
        Some(("there is no table of this name", hint))
    }
}

/// The sources of a list of descriptors.
fn of_descriptors(node: &Node, written: &mut Vec<WrittenSource>) {
    let Kind::List(descriptors) = &node.kind else {
        return;
    };
    for descriptor in descriptors {
        // A word stands for descriptors by address.
        if let Kind::Block(entries) = &descriptor.kind {
            written.extend(entries.iter().filter_map(|entry| source(&entry.value)));
        }
    }
}

/// The sources of routes: of their descriptors, their conditions, and the descriptors of WebSocket messages.
fn of_routes(node: &Node, written: &mut Vec<WrittenSource>) {
    let Kind::List(routes) = &node.kind else {
        return;
    };
    for route in routes {
        of_route(route, written);
    }
}

fn of_route(node: &Node, written: &mut Vec<WrittenSource>) {
    let Kind::Block(settings) = &node.kind else {
        return;
    };
    for setting in settings {
        match (setting.key.as_text(), &setting.value.kind) {
            (Some("descriptors"), _) => of_descriptors(&setting.value, written),
            (Some("require" | "deny"), Kind::Block(conditions)) => {
                written.extend(conditions.iter().filter_map(|it| source(&it.key)));
            }
            (Some("websocket"), _) => of_route(&setting.value, written),
            _ => {}
        }
    }
}

fn source(node: &Node) -> Option<WrittenSource> {
    Some((node.as_text()?.parse().ok()?, node.span))
}
