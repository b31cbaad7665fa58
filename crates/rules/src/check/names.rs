//! `name` and `replaces` across a domain.

use std::collections::{HashMap, HashSet};

use crate::code::Code;
use crate::draft::{DraftDomain, DraftLimit, DraftRule};
use crate::findings::{Finding, Findings, quote};
use crate::hint::did_you_mean;
use crate::report::Severity;
use crate::span::Span;

/// Warns about names that two limits share and a `replaces` refers to, and about `replaces` that names none. Clients
/// may read one name of several limits otherwise.
pub(super) fn check(domain: &DraftDomain, findings: &mut Findings) {
    let mut limits = Vec::new();
    collect(&domain.rules, &mut limits);
    let replaced = limits.iter().flat_map(|limit| &limit.replaces);
    let replaced: HashSet<&str> = replaced.map(|name| name.inner.as_str()).collect();
    let mut names: HashMap<&str, Span> = HashMap::new();
    for name in limits.iter().filter_map(|limit| limit.name.as_ref()) {
        let Some(first) = names.insert(&name.inner, name.span) else {
            continue;
        };
        if !replaced.contains(name.inner.as_str()) {
            continue;
        }
        let message = format!("two limits are named {}", quote(&name.inner));
        let hint = format!("`replaces` puts both out of force; the other is at {}", {
            findings.place(first)
        });
        findings.push(Finding::warning(Code::DuplicateName, name.span, message).hint(hint));
    }
    for replaced in limits.iter().flat_map(|limit| &limit.replaces) {
        if names.contains_key(replaced.inner.as_str()) {
            continue;
        }
        let message = format!("no limit of the domain is named {}", quote(&replaced.inner));
        let finding = Finding::warning(Code::ReplacesNothing, replaced.span, message);
        let hint = if findings.is_full(Severity::Warning) {
            None
        } else {
            // In the order of the file, so that the hint is the same every time.
            let names = limits.iter().filter_map(|limit| limit.name.as_ref());
            did_you_mean(&replaced.inner, names.map(|name| name.inner.as_str()))
        };
        findings.push(finding.maybe_hint(hint));
    }
}

fn collect<'a>(rules: &'a [DraftRule], limits: &mut Vec<&'a DraftLimit>) {
    for rule in rules {
        limits.extend(&rule.limits);
        collect(&rule.children, limits);
    }
}
