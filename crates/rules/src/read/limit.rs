//! One limit: `rate_limit`, or an element of `rate_limits`.

use super::fields::{Fields, Level};
use super::{numbers, scalar, status};
use crate::code::Code;
use crate::draft::{DraftLimit, DraftTerms};
use crate::findings::{Finding, Findings};
use crate::limit::{Announcement, Consistency, OnFailure, OnFull, OverLimit};
use crate::node::{Kind, Node, Pair};
use crate::span::{Span, Spanned};

const OVER_LIMIT: [(&str, OverLimit); 3] = [
    ("reject", OverLimit::Reject),
    ("delay", OverLimit::Delay),
    ("defer", OverLimit::Defer),
];

const CONSISTENCY: [(&str, Consistency); 5] = [
    ("node", Consistency::Node),
    ("strict", Consistency::Strict),
    ("leased", Consistency::Leased),
    ("eventual", Consistency::Eventual),
    ("split", Consistency::Split),
];

const ON_FAILURE: [(&str, OnFailure); 3] = [
    ("local", OnFailure::Local),
    ("allow", OnFailure::Allow),
    ("deny", OnFailure::Deny),
];

const ON_FULL: [(&str, OnFull); 3] = [
    ("shared", OnFull::Shared),
    ("allow", OnFull::Allow),
    ("deny", OnFull::Deny),
];

/// Reads the list under `rate_limits`.
pub(super) fn list(pair: &Pair, findings: &mut Findings) -> Vec<DraftLimit> {
    let Kind::List(nodes) = &pair.value.kind else {
        let message = format!("`rate_limits` takes a list, found {}", pair.value.shape());
        findings.push(
            Finding::error(Code::WrongShape, pair.value.span, message)
                .hint("write one limit as `rate_limit`, or begin each with `-`"),
        );
        return Vec::new();
    };
    nodes
        .iter()
        .filter_map(|node| element(node, pair.key.span, findings))
        .collect()
}

fn element(node: &Node, list: Span, findings: &mut Findings) -> Option<DraftLimit> {
    let owner = match &node.kind {
        Kind::Block(pairs) => pairs.first().map_or(list, |pair| pair.key.span),
        _ => list,
    };
    block(node, owner, findings)
}

/// Reads the fields of one limit; `owner` is underlined where one is missing.
pub(super) fn block(node: &Node, owner: Span, findings: &mut Findings) -> Option<DraftLimit> {
    let fields = Fields::read(node, Level::Limit, owner, findings)?;
    let terms = match fields.flag("unlimited", findings) {
        Some(false) => numbers::read(&fields, findings),
        Some(true) => {
            refuse_numbers(&fields, findings);
            Some(DraftTerms::Unlimited)
        }
        None => None,
    };
    let name = fields
        .text("name", findings)
        .filter(|name| !name.inner.is_empty());
    let limit = DraftLimit {
        span: owner,
        terms,
        replaces: replaces(&fields, name.as_ref(), findings),
        name,
        over_limit: policy(&fields, "over_limit", &OVER_LIMIT, findings),
        consistency: fields
            .word("consistency", &CONSISTENCY, findings)
            .map(|word| word.inner),
        on_failure: policy(&fields, "on_failure", &ON_FAILURE, findings),
        on_full: policy(&fields, "on_full", &ON_FULL, findings),
        count_status: status::read(&fields, findings),
        announcement: announcement(&fields, findings),
    };
    report_unavailable(&fields, &limit, findings);
    status::report_buckets(&fields, &limit, findings);
    Some(limit)
}

/// Not written, the limit is announced.
fn announcement(fields: &Fields<'_>, findings: &mut Findings) -> Announcement {
    let written = fields.get("announce");
    match written.and_then(|pair| scalar::flag(pair, findings)) {
        Some(false) => Announcement::Hidden,
        Some(true) | None => Announcement::Announced,
    }
}

fn policy<T: Copy + Default>(
    fields: &Fields<'_>,
    name: &str,
    words: &[(&'static str, T)],
    findings: &mut Findings,
) -> T {
    fields
        .word(name, words, findings)
        .map(|word| word.inner)
        .unwrap_or_default()
}

/// Everything a limit without numbers cannot have.
fn refuse_numbers(fields: &Fields<'_>, findings: &mut Findings) {
    let numbers = numbers::FIELDS
        .iter()
        .chain(&["count_status"])
        .filter_map(|name| fields.get(name).map(|it| (name, it)));
    for (name, pair) in numbers {
        let message = format!("`{name}` and `unlimited` exclude each other");
        // Lyft's takes the number and ignores it, so a file that works there says so here.
        let finding = if *name == "requests_per_unit" {
            Finding::warning(Code::NotApplicable, pair.key.span, message)
        } else {
            Finding::error(Code::Conflict, pair.key.span, message)
        };
        findings.push(finding.hint("leave out one of the two"));
    }
}

fn replaces(
    fields: &Fields<'_>,
    own_name: Option<&Spanned<String>>,
    findings: &mut Findings,
) -> Vec<Spanned<String>> {
    let Some(pair) = fields.get("replaces") else {
        return Vec::new();
    };
    let Kind::List(nodes) = &pair.value.kind else {
        let message = format!("`replaces` takes a list, found {}", pair.value.shape());
        findings.push(
            Finding::error(Code::WrongShape, pair.value.span, message)
                .hint("write `- name: …` below it"),
        );
        return Vec::new();
    };
    let names = nodes
        .iter()
        .filter_map(|node| replaced(node, pair.key.span, findings));
    let names: Vec<_> = names.collect();
    for name in names
        .iter()
        .filter(|name| own_name.is_some_and(|own| own.inner == name.inner))
    {
        findings.push(
            Finding::error(Code::ReplacesItself, name.span, "the limit replaces itself")
                .hint("name the limit that gives way to this one"),
        );
    }
    names
}

fn replaced(node: &Node, list: Span, findings: &mut Findings) -> Option<Spanned<String>> {
    let owner = if node.is_null() { list } else { node.span };
    let fields = Fields::read(node, Level::Replaces, owner, findings)?;
    let name = fields
        .text("name", findings)
        .filter(|name| !name.inner.is_empty());
    if name.is_none() && !fields.is_reported("name") {
        let span = fields.span_of("name").unwrap_or(owner);
        findings.push(
            Finding::error(
                Code::MissingField,
                span,
                "the entry of `replaces` names no limit",
            )
            .hint("write `- name: …`"),
        );
    }
    name
}

/// What is understood, but comes with a later release: a fault if the rule would not do what it
/// says, a warning if it does all the same on a single node.
fn report_unavailable(fields: &Fields<'_>, limit: &DraftLimit, findings: &mut Findings) {
    if limit.over_limit != OverLimit::Reject {
        unavailable(
            fields,
            "over_limit",
            "a request over the limit could only be refused",
            Finding::error,
            findings,
        );
    }
    if limit.terms.is_some() && fields.get("elastic").is_some() {
        unavailable(
            fields,
            "elastic",
            "nothing reports headroom, so the limit is hard",
            Finding::warning,
            findings,
        );
    }
}

fn unavailable(
    fields: &Fields<'_>,
    name: &str,
    consequence: &str,
    finding: fn(Code, Span, String) -> Finding,
    findings: &mut Findings,
) {
    let Some(pair) = fields.get(name) else { return };
    let word = pair.value.as_text().unwrap_or_default();
    let message = format!("`{name}: {word}` is not available yet: {consequence}");
    findings.push(finding(Code::NotAvailableYet, pair.value.span, message));
}
