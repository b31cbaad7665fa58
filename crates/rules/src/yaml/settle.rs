//! What YAML leaves to its users: fields that stand twice, and `<<`.

use std::collections::{HashMap, HashSet};

use crate::code::Code;
use crate::findings::{Finding, Findings, quote};
use crate::node::{Kind, Node, Pair};
use crate::span::Span;

/// Resolves `<<` and reports fields that stand twice.
pub(super) fn settle(node: &mut Node, findings: &mut Findings) {
    match &mut node.kind {
        Kind::Scalar(_) => {}
        Kind::List(nodes) => {
            for node in nodes {
                settle(node, findings);
            }
        }
        Kind::Block(pairs) => {
            for pair in pairs.iter_mut() {
                settle(&mut pair.value, findings);
            }
            report_duplicates(pairs, findings);
            merge(pairs, findings);
        }
    }
}

fn report_duplicates(pairs: &[Pair], findings: &mut Findings) {
    let mut seen: HashMap<&str, Span> = HashMap::with_capacity(pairs.len());
    for Pair { key, .. } in pairs {
        let Some(name) = key.as_text() else { continue };
        if let Some(first) = seen.insert(name, key.span) {
            findings.push(
                Finding::error(
                    Code::DuplicateField,
                    key.span,
                    format!("{} stands twice in this block", quote(name)),
                )
                .hint(format!("it stands first on line {}", first.line)),
            );
        }
    }
}

/// Takes over the fields of the blocks under `<<` that are not written out.
fn merge(pairs: &mut Vec<Pair>, findings: &mut Findings) {
    let Some(at) = pairs.iter().position(|pair| pair.key.is_plain("<<")) else {
        return;
    };
    let Pair { value, .. } = pairs.remove(at);
    let blocks = match value.kind {
        Kind::Block(pairs) => vec![pairs],
        Kind::List(nodes) => nodes.into_iter().filter_map(Node::into_block).collect(),
        Kind::Scalar(_) => {
            findings.push(
                Finding::error(
                    Code::WrongShape,
                    value.span,
                    "`<<` takes a block to merge in",
                )
                .hint("write `<<: *anchor`"),
            );
            return;
        }
    };
    let mut written: HashSet<String> = pairs
        .iter()
        .filter_map(|pair| pair.key.as_text().map(str::to_owned))
        .collect();
    for pair in blocks.into_iter().flatten() {
        if pair
            .key
            .as_text()
            .is_none_or(|name| written.insert(name.to_owned()))
        {
            pairs.push(pair);
        }
    }
}
