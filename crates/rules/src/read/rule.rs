//! One descriptor of the file.

use super::fields::{Fields, Level};
use super::{limit, metadata};
use crate::code::Code;
use crate::dialect::Dialect;
use crate::draft::{DraftLimit, DraftRule, Matcher, Sharing};
use crate::findings::{Finding, Findings, quote};
use crate::network::{Network, NetworkFault};
use crate::node::{Kind, Node, Pair};
use crate::pattern::Wildcard;
use crate::rule::RuleMode;
use crate::span::{Span, Spanned};

/// The most limits of one rule; a request charges no more than 64 in all.
const MAX_LIMITS: usize = 16;

/// The longest key or value, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Reads the list under `descriptors`.
pub(super) fn list(pair: &Pair, findings: &mut Findings) -> Vec<DraftRule> {
    let Kind::List(nodes) = &pair.value.kind else {
        let message = format!("`descriptors` takes a list, found {}", pair.value.shape());
        findings.push(
            Finding::error(Code::WrongShape, pair.value.span, message)
                .hint("begin each descriptor with `- key: …`"),
        );
        return Vec::new();
    };
    nodes
        .iter()
        .filter_map(|node| rule(node, findings))
        .collect()
}

fn rule(node: &Node, findings: &mut Findings) -> Option<DraftRule> {
    let owner = first_line(node);
    let fields = Fields::read(node, Level::Descriptor, owner, findings)?;
    let matcher = matcher(&fields, findings);
    let sharing = sharing(&fields, &matcher, findings);
    let rule = DraftRule {
        span: fields.get("key").map_or(owner, |pair| pair.value.span),
        key: key(&fields, findings),
        matcher,
        sharing,
        mode: mode(&fields, findings),
        detailed_metric: fields.is_set("detailed_metric", findings),
        value_to_metric: fields.is_set("value_to_metric", findings),
        metadata: fields
            .get("metadata")
            .and_then(|pair| metadata::block(pair, findings)),
        headers: headers(&fields, findings),
        limits: limits(&fields, findings),
        children: fields
            .get("descriptors")
            .map(|pair| list(pair, findings))
            .unwrap_or_default(),
    };
    (!rule.key.is_empty()).then_some(rule)
}

fn key(fields: &Fields<'_>, findings: &mut Findings) -> String {
    let key = fields.text("key", findings);
    if fields.is_reported("key") {
        return String::new();
    }
    let Some(key) = key.filter(|key| !key.inner.is_empty()) else {
        let span = fields.span_of("key").unwrap_or(fields.owner);
        findings.push(
            Finding::error(Code::MissingField, span, "the descriptor has no key")
                .hint("name the key of the request's entry: `key: user_id`"),
        );
        return String::new();
    };
    check_length(&key, findings);
    if Wildcard::is_pattern(&key.inner) {
        let message = format!(
            "the `*` in the key {} is a plain character",
            quote(&key.inner)
        );
        findings.push(
            Finding::warning(Code::StarInKey, key.span, message)
                .hint("only `value` takes wildcards; a bare key already matches every value"),
        );
    }
    key.inner
}

fn matcher(fields: &Fields<'_>, findings: &mut Findings) -> Matcher {
    match (fields.get("value"), fields.get("cidr")) {
        (None, None) => Matcher::Any,
        (Some(value), None) => values(value, findings),
        (None, Some(cidr)) => networks(cidr, findings),
        (Some(_), Some(cidr)) => {
            let message = "`cidr` and `value` exclude each other";
            findings.push(
                Finding::error(Code::Conflict, cidr.key.span, message)
                    .hint("write two descriptors, one with each"),
            );
            Matcher::Any
        }
    }
}

fn values(pair: &Pair, findings: &mut Findings) -> Matcher {
    let is_list = matches!(pair.value.kind, Kind::List(_));
    let values: Vec<_> = scalars(pair, "value", findings)
        .into_iter()
        .map(|value| Spanned::new(value.span, value.inner.to_owned()))
        .collect();
    for value in &values {
        check_length(value, findings);
        if is_list && value.inner.is_empty() {
            findings.push(
                Finding::error(Code::BadValue, value.span, "the list holds an empty value")
                    .hint("a descriptor without `value` matches every value"),
            );
        }
    }
    // As in Lyft's, an empty value is no value.
    if !is_list && values.iter().all(|value| value.inner.is_empty()) {
        return Matcher::Any;
    }
    Matcher::Values(values)
}

fn networks(pair: &Pair, findings: &mut Findings) -> Matcher {
    let networks = scalars(pair, "cidr", findings)
        .into_iter()
        .filter_map(|text| network(&text, findings))
        .collect();
    Matcher::Networks(networks)
}

fn network(text: &Spanned<&str>, findings: &mut Findings) -> Option<Spanned<Network>> {
    let (message, hint) = match Network::parse(text.inner) {
        Ok(network) => return Some(Spanned::new(text.span, network)),
        Err(NetworkFault::NotAnAddress) => (
            format!("{} is no network", quote(text.inner)),
            "write an address and a prefix length, such as `10.0.0.0/8`".to_owned(),
        ),
        Err(NetworkFault::BadPrefix) => (
            format!("{} has no valid prefix length", quote(text.inner)),
            "it goes from 0 to 32 for IPv4 and to 128 for IPv6".to_owned(),
        ),
        Err(NetworkFault::HostBits(network)) => (
            format!("{} has bits set below its prefix", quote(text.inner)),
            format!("the network is `{network}`"),
        ),
    };
    findings.push(Finding::error(Code::BadValue, text.span, message).hint(hint));
    None
}

/// The scalar, or the scalars of the list, that a field holds.
fn scalars<'n>(pair: &'n Pair, name: &str, findings: &mut Findings) -> Vec<Spanned<&'n str>> {
    let nodes = match &pair.value.kind {
        Kind::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&pair.value),
    };
    if nodes.is_empty() {
        let message = format!("the list of `{name}` is empty, so the descriptor matches nothing");
        findings.push(Finding::error(Code::BadValue, pair.value.span, message));
    }
    let mut scalars = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node.as_text() {
            Some(_) if node.is_null() => scalars.push(Spanned::new(pair.key.span, "")),
            Some(text) => scalars.push(Spanned::new(node.span, text)),
            None => {
                let message = format!(
                    "`{name}` takes a value or a list of values, found {}",
                    node.shape()
                );
                findings.push(Finding::error(Code::WrongShape, node.span, message));
            }
        }
    }
    scalars
}

fn sharing(fields: &Fields<'_>, matcher: &Matcher, findings: &mut Findings) -> Sharing {
    if !fields.is_set("share_threshold", findings) {
        return Sharing::Apart;
    }
    if matches!(matcher, Matcher::Any) || !matcher.takes_several() {
        let span = fields.span_of("share_threshold").unwrap_or(fields.owner);
        let message = "`share_threshold` needs a value with a `*`, a list of values, or a `cidr`";
        let hint = match matcher {
            Matcher::Any => "to share one counter among all values, write `value: \"*\"`",
            _ => "an exact value has one counter already",
        };
        findings.push(Finding::error(Code::NotApplicable, span, message).hint(hint));
    }
    Sharing::Shared
}

fn mode(fields: &Fields<'_>, findings: &mut Findings) -> RuleMode {
    let is_shadow = fields.is_set("shadow_mode", findings);
    let is_quota = fields.is_set("quota_mode", findings);
    match (is_shadow, is_quota) {
        (true, true) => {
            let span = fields.span_of("quota_mode").unwrap_or(fields.owner);
            let message = "`shadow_mode` makes `quota_mode` pointless: the rule never refuses";
            findings.push(
                Finding::warning(Code::DeadRule, span, message).hint("leave out one of the two"),
            );
            RuleMode::Shadow
        }
        (true, false) => RuleMode::Shadow,
        (false, true) => RuleMode::Quota,
        (false, false) => RuleMode::Enforce,
    }
}

fn headers(fields: &Fields<'_>, findings: &mut Findings) -> Option<Dialect> {
    let words = Dialect::ALL.map(|dialect| (dialect.name(), dialect));
    let dialect = fields.word("headers", &words, findings)?;
    Some(dialect.inner)
}

fn limits(fields: &Fields<'_>, findings: &mut Findings) -> Vec<DraftLimit> {
    let mut limits = Vec::new();
    if let Some(pair) = fields.written("rate_limit") {
        if pair.value.is_null() {
            let message = "`rate_limit` is empty, so the descriptor has no limit";
            findings.push(
                Finding::warning(Code::DeadRule, pair.key.span, message)
                    .hint("indent its fields below it, or leave it out to allow everything"),
            );
        } else {
            limits.extend(limit::block(&pair.value, pair.key.span, findings));
        }
    }
    if let Some(pair) = fields.get("rate_limits") {
        limits.extend(limit::list(pair, findings));
    }
    if limits.len() > MAX_LIMITS {
        let span = fields.span_of("rate_limits").unwrap_or(fields.owner);
        let message = format!(
            "the rule has {} limits, more than {MAX_LIMITS}",
            limits.len()
        );
        findings.push(Finding::error(Code::TooLarge, span, message));
    }
    limits
}

pub(super) fn check_length(text: &Spanned<String>, findings: &mut Findings) {
    if text.inner.len() > MAX_TEXT_BYTES {
        let message = format!(
            "the text has {} bytes, more than {MAX_TEXT_BYTES}",
            text.inner.len()
        );
        findings.push(Finding::error(Code::TooLarge, text.span, message));
    }
}

/// What to underline for a whole descriptor: its first field.
fn first_line(node: &Node) -> Span {
    match &node.kind {
        Kind::Block(pairs) => pairs.first().map_or(node.span, |pair| pair.key.span),
        _ => node.span,
    }
}
