//! A `rate_limit` beside `descriptors`, as books print it.

use super::limit;
use crate::code::Code;
use crate::draft::{DraftRule, Matcher};
use crate::findings::{Finding, Findings, excerpt};
use crate::node::{Kind, Node, Pair};

/// Gives the limit to the one descriptor that has none, or reports that there is no such one.
pub(super) fn adopt(pair: &Pair, rules: &mut [DraftRule], findings: &mut Findings) {
    let mut bare = Vec::new();
    for rule in rules {
        collect_bare(rule, &mut bare);
    }
    let limit = limit::block(&pair.value, pair.key.span, findings);
    let example = bare.last().map(|rule| canonical(rule, &pair.value));
    let span = pair.key.span;
    match bare.as_mut_slice() {
        [rule] => {
            let message = "`rate_limit` stands beside `descriptors`, as books print it";
            findings.push(
                Finding::warning(Code::LiteratureForm, span, message)
                    .maybe_hint(example.map(|example| format!("it is taken for this:\n{example}"))),
            );
            rule.limits.extend(limit);
        }
        [] => findings.push(
            Finding::error(
                Code::MisplacedField,
                span,
                "`rate_limit` does not belong here",
            )
            .hint("it belongs in a descriptor, beside its `key`"),
        ),
        several => {
            let message = format!(
                "`rate_limit` stands beside `descriptors`, and {} of them have no limit",
                several.len()
            );
            findings.push(
                Finding::error(Code::AmbiguousLimit, span, message).maybe_hint(
                    example.map(|example| format!("write it below the one it is for:\n{example}")),
                ),
            );
        }
    }
}

/// The descriptors at the ends of the tree that have no limit.
fn collect_bare<'a>(rule: &'a mut DraftRule, bare: &mut Vec<&'a mut DraftRule>) {
    if rule.children.is_empty() && rule.limits.is_empty() {
        bare.push(rule);
        return;
    }
    for child in &mut rule.children {
        collect_bare(child, bare);
    }
}

/// How to write it.
fn canonical(rule: &DraftRule, limit: &Node) -> String {
    let mut lines = vec![format!("  - key: {}", excerpt(&rule.key))];
    if let Matcher::Values(values) = &rule.matcher {
        let values: Vec<_> = values.iter().map(|value| excerpt(&value.inner)).collect();
        match values.as_slice() {
            [value] => lines.push(format!("    value: {value}")),
            values => lines.push(format!("    value: [{}]", values.join(", "))),
        }
    }
    lines.push("    rate_limit:".to_owned());
    if let Kind::Block(pairs) = &limit.kind {
        lines.extend(pairs.iter().filter_map(|pair| {
            let name = pair.key.as_text()?.to_lowercase();
            Some(format!(
                "      {}: {}",
                excerpt(&name),
                excerpt(pair.value.as_text()?)
            ))
        }));
    }
    lines.join("\n")
}
