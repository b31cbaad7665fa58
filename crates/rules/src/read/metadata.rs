//! `metadata`: free data.

use crate::code::Code;
use crate::findings::{Finding, Findings};
use crate::metadata::MetadataValue;
use crate::node::{Kind, Node, Pair, Scalar, Style};

/// The most that the block of one rule may add to every answer: as much as a proxy takes for the head of a request.
const MAX_BYTES: usize = 64 * 1024;

/// Reads the block of `metadata`; nothing in it is a field of ours.
pub(super) fn block(pair: &Pair, findings: &mut Findings) -> Option<MetadataValue> {
    if !matches!(pair.value.kind, Kind::Block(_)) {
        let message = format!(
            "`metadata` takes a block of fields, found {}",
            pair.value.shape()
        );
        findings.push(Finding::error(Code::WrongShape, pair.value.span, message));
        return None;
    }
    let block = value(&pair.value, findings)?;
    let n_bytes = size(&block);
    if n_bytes > MAX_BYTES {
        let message = format!("the `metadata` has {n_bytes} bytes, more than {MAX_BYTES}");
        findings.push(Finding::error(Code::TooLarge, pair.key.span, message));
        return None;
    }
    Some(block)
}

/// The bytes of names and texts, and one for each value: about what the block adds to an answer.
fn size(value: &MetadataValue) -> usize {
    1 + match value {
        MetadataValue::Null | MetadataValue::Bool(_) | MetadataValue::Number(_) => 0,
        MetadataValue::Text(text) => text.len(),
        MetadataValue::List(values) => values.iter().map(size).sum(),
        MetadataValue::Map(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + size(value))
            .sum(),
    }
}

fn value(node: &Node, findings: &mut Findings) -> Option<MetadataValue> {
    match &node.kind {
        Kind::Scalar(_) if node.is_null() => Some(MetadataValue::Null),
        Kind::Scalar(scalar) => Some(resolve(scalar)),
        Kind::List(nodes) => {
            let values: Option<Vec<_>> = nodes.iter().map(|node| value(node, findings)).collect();
            Some(MetadataValue::List(values?.into()))
        }
        Kind::Block(pairs) => {
            let fields: Option<Vec<_>> = pairs.iter().map(|pair| field(pair, findings)).collect();
            Some(MetadataValue::Map(fields?.into()))
        }
    }
}

fn field(pair: &Pair, findings: &mut Findings) -> Option<(Box<str>, MetadataValue)> {
    let Some(name) = pair.key.as_text() else {
        let message = format!("the name of a field is {}", pair.key.shape());
        findings.push(Finding::error(Code::WrongShape, pair.key.span, message));
        return None;
    };
    Some((name.into(), value(&pair.value, findings)?))
}

fn resolve(scalar: &Scalar) -> MetadataValue {
    let text = scalar.text.as_str();
    match (scalar.style, text) {
        (Style::Plain, "true" | "True" | "TRUE") => MetadataValue::Bool(true),
        (Style::Plain, "false" | "False" | "FALSE") => MetadataValue::Bool(false),
        // `nan` and `infinity` are numbers to Rust, but text to whoever wrote them.
        (Style::Plain, _) if text.bytes().any(|byte| byte.is_ascii_digit()) => text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map_or_else(|| MetadataValue::Text(text.into()), MetadataValue::Number),
        _ => MetadataValue::Text(text.into()),
    }
}
