//! The fields of one block: known ones by name, the others reported.

use std::time::Duration;

use tidegate_algorithms::Percent;

use super::scalar;
use crate::code::Code;
use crate::findings::{Finding, Findings, excerpt, quote};
use crate::hint::nearest;
use crate::node::{Kind, Node, Pair};
use crate::report::Severity;
use crate::span::{Span, Spanned};

/// Which block it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The file.
    Root,
    /// An element of `descriptors`.
    Descriptor,
    /// `rate_limit`, or an element of `rate_limits`.
    Limit,
    /// An element of `replaces`.
    Replaces,
}

/// The fields of one block that are known there and hold something.
#[derive(Debug)]
pub(super) struct Fields<'n> {
    /// What to underline when a field is missing.
    pub(super) owner: Span,
    written: Vec<(&'static str, &'n Pair)>,
    /// What the unknown fields seem to be meant for.
    misspelt: Vec<&'static str>,
}

// === impl Level ===

impl Level {
    const ALL: [Self; 4] = [Self::Root, Self::Descriptor, Self::Limit, Self::Replaces];

    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Root => &["domain", "descriptors", "charging"],
            Self::Descriptor => &[
                "key",
                "value",
                "cidr",
                "rate_limit",
                "rate_limits",
                "descriptors",
                "shadow_mode",
                "quota_mode",
                "detailed_metric",
                "value_to_metric",
                "share_threshold",
                "metadata",
                "headers",
            ],
            Self::Limit => &[
                "unit",
                "requests_per_unit",
                "unlimited",
                "name",
                "replaces",
                "algorithm",
                "limit",
                "window",
                "burst",
                "queue",
                "refill",
                "rounding",
                "sub_windows",
                "log_refused",
                "soft",
                "soft_for",
                "elastic",
                "postpaid",
                "max_debt",
                "over_limit",
                "consistency",
                "on_failure",
                "on_full",
                "count_status",
                "announce",
            ],
            Self::Replaces => &["name"],
        }
    }

    /// Fields that are read there though they do not belong there.
    const fn stray_fields(self) -> &'static [&'static str] {
        match self {
            Self::Root => &["rate_limit"],
            _ => &[],
        }
    }

    const fn place(self) -> &'static str {
        match self {
            Self::Root => "at the top of the file",
            Self::Descriptor => "in a descriptor, beside its `key`",
            Self::Limit => "inside `rate_limit`",
            Self::Replaces => "in an entry of `replaces`",
        }
    }

    fn known(self, name: &str) -> Option<&'static str> {
        let known = self.fields().iter().chain(self.stray_fields());
        known.copied().find(|known| *known == name)
    }
}

// === impl Fields ===

impl<'n> Fields<'n> {
    /// Sorts out the fields of `block`; `None` if it is no block.
    pub(super) fn read(
        block: &'n Node,
        level: Level,
        owner: Span,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Kind::Block(pairs) = &block.kind else {
            let span = if block.is_null() { owner } else { block.span };
            let message = format!("expected a block of fields, found {}", block.shape());
            let hint = format!("a field is written `{}: …`", level.fields()[0]);
            findings.push(Finding::error(Code::WrongShape, span, message).hint(hint));
            return None;
        };
        let mut fields = Self {
            owner,
            written: Vec::with_capacity(pairs.len()),
            misspelt: Vec::new(),
        };
        for pair in pairs {
            match recognise(pair, level, findings) {
                Ok(name) => fields.add(name, pair, findings),
                Err(meant) => fields.misspelt.extend(meant),
            }
        }
        Some(fields)
    }

    /// The field, if it is there and holds something. As in Lyft's, a field that holds nothing is
    /// as good as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'n Pair> {
        self.written(name).filter(|pair| !pair.value.is_null())
    }

    /// The field, even if it holds nothing.
    pub(super) fn written(&self, name: &str) -> Option<&'n Pair> {
        self.written
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, pair)| *pair)
    }

    /// Where the name of the field stands.
    pub(super) fn span_of(&self, name: &str) -> Option<Span> {
        self.written(name).map(|pair| pair.key.span)
    }

    /// Whether it is reported already why nothing can be read from the field: it is misspelt, or
    /// holds more than a single value.
    pub(super) fn is_reported(&self, name: &str) -> bool {
        let is_misshapen = |pair: &Pair| pair.value.as_scalar().is_none();
        self.misspelt.contains(&name) || self.get(name).is_some_and(is_misshapen)
    }

    pub(super) fn text(&self, name: &str, findings: &mut Findings) -> Option<Spanned<String>> {
        self.get(name).and_then(|pair| scalar::text(pair, findings))
    }

    pub(super) fn count(&self, name: &str, findings: &mut Findings) -> Option<Spanned<u64>> {
        self.get(name)
            .and_then(|pair| scalar::count(pair, findings))
    }

    pub(super) fn is_set(&self, name: &str, findings: &mut Findings) -> bool {
        self.flag(name, findings).unwrap_or(false)
    }

    /// `None` if what is written is no flag; not written is `false`.
    pub(super) fn flag(&self, name: &str, findings: &mut Findings) -> Option<bool> {
        match self.get(name) {
            Some(pair) => scalar::flag(pair, findings),
            None => Some(false),
        }
    }

    pub(super) fn duration(
        &self,
        name: &str,
        findings: &mut Findings,
    ) -> Option<Spanned<Duration>> {
        self.get(name)
            .and_then(|pair| scalar::duration(pair, findings))
    }

    pub(super) fn percent(&self, name: &str, findings: &mut Findings) -> Option<Spanned<Percent>> {
        self.get(name)
            .and_then(|pair| scalar::percent(pair, findings))
    }

    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&'static str, T)],
        findings: &mut Findings,
    ) -> Option<Spanned<T>> {
        self.get(name)
            .and_then(|pair| scalar::word(pair, words, findings))
    }

    fn add(&mut self, name: &'static str, pair: &'n Pair, findings: &mut Findings) {
        let is_respelt = pair.key.as_text() != Some(name);
        if let Some(first) = self.written(name) {
            // The same spelling twice is reported with the syntax.
            if first.key.as_text() != pair.key.as_text() {
                let message = format!("{} and {} are the same field", spelt(first), spelt(pair));
                findings.push(Finding::error(Code::DuplicateField, pair.key.span, message));
            }
            return;
        }
        self.written.push((name, pair));
        if is_respelt {
            let value = pair.value.as_text().map_or_else(|| "…".to_owned(), excerpt);
            let message = format!("the field is written {}, as books print it", spelt(pair));
            let hint = format!("write `{name}: {value}`");
            let finding = Finding::warning(Code::LiteratureForm, pair.key.span, message);
            findings.push(finding.hint(hint));
        }
    }
}

/// The known name of a field, or, with a report, the one that may be meant.
fn recognise(
    pair: &Pair,
    level: Level,
    findings: &mut Findings,
) -> Result<&'static str, Option<&'static str>> {
    let span = pair.key.span;
    let Some(name) = pair.key.as_text() else {
        let message = format!("the name of a field is {}", pair.key.shape());
        findings.push(Finding::error(Code::WrongShape, span, message));
        return Err(None);
    };
    let known = level
        .known(name)
        .or_else(|| level.known(&name.to_lowercase()));
    if let Some(known) = known {
        return Ok(known);
    }
    let elsewhere = Level::ALL
        .into_iter()
        .find(|other| other.fields().contains(&name));
    if let Some(other) = elsewhere {
        let message = format!("{} does not belong here", quote(name));
        let finding = Finding::error(Code::MisplacedField, span, message);
        findings.push(finding.hint(format!("it belongs {}", other.place())));
        return Err(None);
    }
    let message = format!("unknown field {}", quote(name));
    let finding = Finding::error(Code::UnknownField, span, message);
    if findings.is_full(Severity::Error) {
        findings.push(finding);
        return Err(None);
    }
    let meant = nearest(name, level.fields().iter().copied());
    let all = Level::ALL
        .into_iter()
        .flat_map(|level| level.fields().iter().copied());
    let hint = meant
        .or_else(|| nearest(name, all))
        .map(|name| format!("did you mean `{name}`?"));
    findings.push(finding.maybe_hint(hint));
    Err(meant)
}

fn spelt(pair: &Pair) -> String {
    quote(pair.key.as_text().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    const SCHEMA: &str = include_str!("../../../../deploy/schema/rules.schema.json");

    fn at<'n>(node: &'n Node, path: &[&str]) -> &'n Node {
        path.iter().fold(node, |node, name| {
            let Kind::Block(pairs) = &node.kind else {
                panic!("{name} is looked for in {}", node.shape());
            };
            let mut pairs = pairs.iter();
            let pair = pairs.find(|pair| pair.key.as_text() == Some(*name));
            &pair.expect(name).value
        })
    }

    #[test]
    fn the_schema_has_the_same_fields() {
        let mut findings = Findings::default();
        let file = findings.add_source("rules.schema.json", SCHEMA.as_bytes());
        let schema = document::parse(file, SCHEMA.as_bytes(), &mut findings).expect("JSON is YAML");
        let limit = at(&schema, &["$defs", "limit"]);
        let Kind::List(choices) = &at(limit, &["properties", "replaces", "anyOf"]).kind else {
            panic!("a list of choices");
        };
        for (level, block) in [
            (Level::Root, &schema),
            (Level::Descriptor, at(&schema, &["$defs", "descriptor"])),
            (Level::Limit, limit),
            (Level::Replaces, at(&choices[0], &["items"])),
        ] {
            let Kind::Block(pairs) = &at(block, &["properties"]).kind else {
                panic!("a block of properties");
            };
            let names: Vec<_> = pairs.iter().filter_map(|pair| pair.key.as_text()).collect();
            assert_eq!(names, level.fields(), "{level:?}");
        }
    }
}
