//! Blocks in a list or under names of the user's choice, each read by a pass of its own.
//!
//! An item asks for its settings as every block does, so its faults, its schema and its place in `tidegate config` follow
//! from the same list. Items are written in the file, or as YAML in one variable; their settings have no variables.

use std::mem;

use serde_json::{Map, Value as Json, json};
use tidegate_rules::document::{Code, Finding, Findings, Kind, Node, Span};

use super::{Known, KnownKind, Reader, Section};
use crate::config::raw::RawConfig;
use crate::config::value::Shown;
use crate::config::{effective, schema};

/// A block of a list, or of a map of names.
#[derive(Clone, Debug)]
pub(crate) struct Item<T> {
    /// Its name in a map; empty in a list.
    pub(crate) name: String,
    /// Its settings, understood.
    pub(crate) value: T,
    /// The place of its name, or in a list its own.
    pub(crate) span: Span,
    shown: Json,
}

/// The most blocks in one list or map: more than anybody writes by hand.
const MAX_ITEMS: usize = 4_096;

// === impl Section ===

impl Section<'_, '_> {
    /// A list of blocks.
    pub(crate) fn blocks<T>(
        &mut self,
        name: &str,
        about: &'static str,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<Item<T>> {
        let schema = json!({ "type": "array", "items": item_schema(None, &read) });
        let show = |items: &Vec<Item<T>>| {
            let shown = items.iter().map(|item| item.shown.clone());
            Shown::Plain(Json::Array(shown.collect()))
        };
        self.tree(name, about, schema, Vec::new(), show, |node, findings| {
            let Kind::List(nodes) = &node.kind else {
                let message = format!("`{name}` takes a list of blocks, found {}", node.shape());
                let finding = Finding::error(Code::WrongShape, node.span, message);
                findings.push(finding.hint("begin each block with `-`"));
                return None;
            };
            let nodes = nodes.iter().map(|node| (String::new(), node.span, node));
            read_all(nodes.collect(), node.span, None, &read, findings)
        })
    }

    /// Blocks under names of the user's choice. With a `shorthand`, a single value or a list may stand for a block.
    pub(crate) fn named_blocks<T>(
        &mut self,
        name: &str,
        about: &'static str,
        shorthand: Option<&'static str>,
        read: impl Fn(&mut Section<'_, '_>) -> T,
    ) -> Vec<Item<T>> {
        let schema =
            json!({ "type": "object", "additionalProperties": item_schema(shorthand, &read) });
        let show = |items: &Vec<Item<T>>| {
            let pairs = items
                .iter()
                .map(|item| (item.name.clone(), item.shown.clone()));
            Shown::Plain(Json::Object(pairs.collect()))
        };
        self.tree(name, about, schema, Vec::new(), show, |node, findings| {
            let Kind::Block(pairs) = &node.kind else {
                let message = format!("`{name}` takes names with values, found {}", node.shape());
                findings.push(Finding::error(Code::WrongShape, node.span, message));
                return None;
            };
            let nodes = pairs.iter().map(|pair| {
                let name = pair.key.as_text().unwrap_or_default();
                (name.to_owned(), pair.key.span, &pair.value)
            });
            read_all(nodes.collect(), node.span, shorthand, &read, findings)
        })
    }
}

fn read_all<T>(
    nodes: Vec<(String, Span, &Node)>,
    span: Span,
    shorthand: Option<&'static str>,
    read: impl Fn(&mut Section<'_, '_>) -> T,
    findings: &mut Findings,
) -> Option<Vec<Item<T>>> {
    if nodes.len() > MAX_ITEMS {
        let message = format!("{} blocks, at most {MAX_ITEMS} are taken", nodes.len());
        findings.push(Finding::error(Code::TooLarge, span, message));
        return None;
    }
    let items = nodes.into_iter().map(|(name, span, node)| {
        let raw = RawConfig {
            file: Some(node.clone()),
            ..RawConfig::default()
        };
        let (value, found, known) = read_item(&raw, shorthand, &read, mem::take(findings));
        *findings = found;
        Item {
            name,
            value,
            span,
            shown: shown(&known, shorthand),
        }
    });
    Some(items.collect())
}

fn read_item<T>(
    raw: &RawConfig,
    shorthand: Option<&'static str>,
    read: impl Fn(&mut Section<'_, '_>) -> T,
    findings: Findings,
) -> (T, Findings, Vec<Known>) {
    let mut reader = Reader::new(raw, findings);
    // The item itself, so that a single value can stand for it.
    reader.known.push(Known {
        path: String::new(),
        about: "",
        kind: KnownKind::Block { shorthand },
    });
    let value = read(&mut reader.root());
    let (findings, known) = reader.finish();
    (value, findings, known)
}

/// The schema of an item: it follows from what is asked for where nothing is written.
fn item_schema<T>(
    shorthand: Option<&'static str>,
    read: impl Fn(&mut Section<'_, '_>) -> T,
) -> Json {
    let raw = RawConfig::default();
    let (_, _, known) = read_item(&raw, shorthand, read, Findings::default());
    schema::block(&known[1..], "", shorthand)
}

/// The settings of an item that hold something, in the shortest form that reads back the same.
fn shown(known: &[Known], shorthand: Option<&str>) -> Json {
    let mut whole = without_empty(effective::json(&known[1..]));
    if let (Json::Object(fields), Some(name)) = (&mut whole, shorthand)
        && fields.keys().all(|field| field == name)
    {
        return fields.remove(name).unwrap_or(Json::Null);
    }
    whole
}

fn without_empty(value: Json) -> Json {
    let Json::Object(fields) = value else {
        return value;
    };
    let is_empty = |value: &Json| match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name, without_empty(value)));
    let kept: Map<String, Json> = fields.filter(|(_, value)| !is_empty(value)).collect();
    Json::Object(kept)
}
