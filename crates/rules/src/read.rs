//! The format: which fields stand where, and what each may hold.
//!
//! Reads one file's tree into a draft. Everything that can be said about a field without looking
//! at other rules is said here.

mod allowance;
mod fields;
mod limit;
mod metadata;
mod numbers;
mod rule;
mod sanity;
mod scalar;
mod status;
mod stray;

use crate::code::Code;
use crate::draft::DraftDomain;
use crate::findings::{Finding, Findings};
use crate::node::Node;
use crate::rule_set::Charging;
use crate::span::Span;
use fields::{Fields, Level};

/// Words of `charging`.
const CHARGING: [(&str, Charging); 2] = [
    ("all_or_none", Charging::AllOrNone),
    ("every_match", Charging::EveryMatch),
];

/// Reads the tree of one file; `None` if it names no domain.
pub(crate) fn domain(root: &Node, findings: &mut Findings) -> Option<DraftDomain> {
    let fields = Fields::read(root, Level::Root, root.span, findings)?;
    let charging = fields.word("charging", &CHARGING, findings);
    let mut rules = fields
        .get("descriptors")
        .map(|pair| rule::list(pair, findings))
        .unwrap_or_default();
    if let Some(pair) = fields.get("rate_limit") {
        stray::adopt(pair, &mut rules, findings);
    }
    let name = fields
        .text("domain", findings)
        .filter(|name| !name.inner.is_empty());
    if name.is_none() && !fields.is_reported("domain") {
        let span = fields
            .span_of("domain")
            .unwrap_or(Span::start_of(root.span.file));
        findings.push(
            Finding::error(Code::MissingField, span, "the file names no domain")
                .hint("begin it with `domain: some_name`"),
        );
    }
    let name = name?;
    rule::check_length(&name, findings);
    Some(DraftDomain {
        name,
        charging,
        rules,
    })
}
