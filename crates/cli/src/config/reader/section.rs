//! A block of settings, asked for one by one.

use std::path::Path;

use serde_json::{Value as Json, json};
use tidegate_rules::document::{self, Code, Finding, Findings, Kind, Node, Span};

use super::{Found, Known, KnownKind, Reader, Setting, join};
use crate::config::raw::{self, Origin};
use crate::config::value::{Discretion, Shown, Value};

/// A block of settings.
#[derive(Debug)]
pub(crate) struct Section<'s, 'r> {
    reader: &'s mut Reader<'r>,
    path: String,
}

/// Where services keep what they write, if the environment says nothing.
const STATE_FOLDER: &str = "/var/lib/tidegate";

// === impl Section ===

impl<'s, 'r> Section<'s, 'r> {
    /// All settings.
    pub(super) fn root(reader: &'s mut Reader<'r>) -> Self {
        let path = String::new();
        Self { reader, path }
    }

    /// A block of settings in this one.
    pub(crate) fn block(&mut self, name: &str, about: &'static str) -> Section<'_, 'r> {
        self.open(name, about, None)
    }

    /// A block for which a single value may stand: that of its setting `shorthand`.
    pub(crate) fn block_or(
        &mut self,
        name: &str,
        about: &'static str,
        shorthand: &'static str,
    ) -> Section<'_, 'r> {
        self.open(name, about, Some(shorthand))
    }

    /// A setting with a default.
    pub(crate) fn value<T: Value>(&mut self, name: &str, about: &'static str, default: T) -> T {
        let shown = default.show();
        let read = self.read::<T>(name);
        let (value, origin) = match read {
            Some((value, origin)) => (value, origin),
            None => (default, Origin::Default),
        };
        self.know(
            name,
            about,
            Setting {
                schema: T::schema(),
                default: shown,
                shown: value.show(),
                origin,
            },
        );
        value
    }

    /// A setting without a default.
    pub(crate) fn optional<T: Value>(&mut self, name: &str, about: &'static str) -> Option<T> {
        let read = self.read::<T>(name);
        let (value, origin) = match read {
            Some((value, origin)) => (Some(value), origin),
            None => (None, Origin::Default),
        };
        let shown = value.as_ref().map_or(Shown::Unset, T::show);
        self.know(
            name,
            about,
            Setting {
                schema: T::schema(),
                default: Shown::Unset,
                shown,
                origin,
            },
        );
        value
    }

    /// A setting that holds several values; in the environment there are commas between them.
    pub(crate) fn list<T: Value>(
        &mut self,
        name: &str,
        about: &'static str,
        default: Vec<T>,
    ) -> Vec<T> {
        let schema = json!({
            "anyOf": [T::schema(), { "type": "array", "items": T::schema() }]
        });
        let mut first = None;
        for (at, found) in self.reader.find(&self.inner(name)).enumerate() {
            let items = self.items(&found);
            if at == 0 {
                first = Some((items, found.origin));
            }
        }
        let default_shown = show_all(&default);
        let (values, origin) = first.unwrap_or((default, Origin::Default));
        let shown = show_all(&values);
        self.know(
            name,
            about,
            Setting {
                schema,
                default: default_shown,
                shown,
                origin,
            },
        );
        values
    }

    /// A setting that holds more than single values; in the environment it is written as YAML too.
    pub(crate) fn tree<T>(
        &mut self,
        name: &str,
        about: &'static str,
        schema: Json,
        default: T,
        show: impl Fn(&T) -> Shown,
        read: impl Fn(&Node, &mut Findings) -> Option<T>,
    ) -> T {
        let mut first = None;
        for (at, found) in self.reader.find(&self.inner(name)).enumerate() {
            let findings = &mut self.reader.findings;
            let typed = match found.origin {
                Origin::Environment(_) => retyped(found.node, findings),
                _ => Some(found.node.clone()),
            };
            let value = typed.and_then(|node| read(&node, findings));
            if at == 0 {
                first = value.map(|value| (value, found.origin));
            }
        }
        let default_shown = show(&default);
        let (value, origin) = first.unwrap_or((default, Origin::Default));
        let shown = show(&value);
        self.know(
            name,
            about,
            Setting {
                schema,
                default: default_shown,
                shown,
                origin,
            },
        );
        value
    }

    /// The tree of a setting as it is in force, if it was written.
    pub(crate) fn written(&mut self, name: &str) -> Option<Node> {
        let found = self.reader.find(&self.inner(name)).next()?;
        match found.origin {
            Origin::Environment(_) => retyped(found.node, &mut self.reader.findings),
            _ => Some(found.node.clone()),
        }
    }

    /// Where we keep what we write, if nobody says.
    pub(crate) fn state_folder(&self) -> &Path {
        let wanted = self.reader.raw.state_folder.as_deref();
        wanted.unwrap_or(Path::new(STATE_FOLDER))
    }

    /// Reports something about a setting that was written; about one that was not, nothing is said.
    pub(crate) fn fault(&mut self, name: &str, code: Code, message: String, hint: &str) {
        if let Some(found) = self.reader.find(&self.inner(name)).next() {
            self.reader
                .findings
                .push(Finding::error(code, found.node.span, message).hint(hint));
        }
    }

    /// Reports that this block lacks a setting; about a block that was not written, nothing is said.
    pub(crate) fn missing(&mut self, name: &str, hint: &str) {
        let block = match self.path.as_str() {
            "" => self.reader.raw.file.as_ref(),
            path => self.reader.in_file(path).map(|found| found.node),
        };
        if let Some(block) = block {
            let message = format!("`{name}` is missing");
            let finding = Finding::error(Code::MissingField, block.span, message);
            self.reader.findings.push(finding.hint(hint));
        }
    }

    /// Refuses settings of this block that do nothing without another one, which is not set.
    pub(crate) fn refuse_alone(&mut self, names: &[&str], without: &str) {
        for name in names {
            if self.is_written(name) {
                let message = format!("`{name}` does nothing without {without}");
                let hint = format!("set {without} too");
                self.fault(name, Code::NotApplicable, message, &hint);
            }
        }
    }

    /// Returns true if a setting has a value, or a block of settings is not empty.
    pub(crate) fn is_written(&self, name: &str) -> bool {
        let written = self.reader.find(&self.inner(name)).next();
        written.is_some_and(|found| match &found.node.kind {
            Kind::Scalar(_) => true,
            Kind::List(nodes) => !nodes.is_empty(),
            Kind::Block(pairs) => !pairs.is_empty(),
        })
    }

    /// Whether a fault was found so far; what was read may then be less than what was written.
    pub(crate) fn has_faults(&self) -> bool {
        self.reader.findings.has_errors()
    }

    /// Reports something that was found in what was read.
    pub(crate) fn report(&mut self, finding: Finding) {
        self.reader.findings.push(finding);
    }

    fn open(
        &mut self,
        name: &str,
        about: &'static str,
        shorthand: Option<&'static str>,
    ) -> Section<'_, 'r> {
        let path = self.inner(name);
        self.reader.known.push(Known {
            path: path.clone(),
            about,
            kind: KnownKind::Block { shorthand },
        });
        Section {
            reader: self.reader,
            path,
        }
    }

    /// Reads what was written, that which has not the last word too: its faults are faults.
    fn read<T: Value>(&mut self, name: &str) -> Option<(T, Origin)> {
        let mut first = None;
        for (at, found) in self.reader.find(&self.inner(name)).enumerate() {
            let value = self.parse(&found, found.node);
            if at == 0 {
                first = value.map(|value| (value, found.origin));
            }
        }
        first
    }

    fn items<T: Value>(&mut self, found: &Found<'r>) -> Vec<T> {
        match &found.node.kind {
            Kind::List(items) => {
                let read = items.iter().filter_map(|item| self.parse(found, item));
                read.collect()
            }
            Kind::Scalar(scalar) if matches!(found.origin, Origin::Environment(_)) => {
                let parts = scalar.text.split(',').map(str::trim);
                let items: Vec<Node> = parts
                    .filter(|part| !part.is_empty())
                    .map(|part| raw::scalar(found.node.span, part))
                    .collect();
                let read = items.iter().filter_map(|item| self.parse(found, item));
                read.collect()
            }
            _ => self.parse(found, found.node).into_iter().collect(),
        }
    }

    fn parse<T: Value>(&mut self, found: &Found<'r>, node: &Node) -> Option<T> {
        let Some(text) = node.as_text() else {
            self.reader.wrong_shape(found, node);
            return None;
        };
        let discretion = T::DISCRETION.about(text);
        if discretion == Discretion::Secret {
            self.reader.findings.veil(node.span);
        }
        match T::parse(text) {
            Ok(value) => Some(value),
            Err(mismatch) => {
                self.reader.mismatch(found, node, mismatch, discretion);
                None
            }
        }
    }

    fn know(&mut self, name: &str, about: &'static str, setting: Setting) {
        let path = self.inner(name);
        let kind = KnownKind::Setting(Box::new(setting));
        self.reader.known.push(Known { path, about, kind });
    }

    fn inner(&self, name: &str) -> String {
        join(&self.path, name)
    }
}

fn show_all<T: Value>(values: &[T]) -> Shown {
    let (mut all, mut is_masked) = (Vec::with_capacity(values.len()), false);
    for value in values {
        match value.show() {
            Shown::Plain(json) => all.push(json),
            Shown::Masked(json) => {
                is_masked = true;
                all.push(json);
            }
            Shown::Secret | Shown::Unset => {}
        }
    }
    if is_masked {
        Shown::Masked(Json::Array(all))
    } else {
        Shown::Plain(Json::Array(all))
    }
}

/// What a single value says as YAML, with places where the value stands.
fn retyped(node: &Node, findings: &mut Findings) -> Option<Node> {
    let Span {
        file, line, column, ..
    } = node.span;
    let text = node.as_text()?;
    let before = "\n".repeat(line.saturating_sub(1)) + &" ".repeat(column.saturating_sub(1));
    document::parse(file, format!("{before}{text}").as_bytes(), findings)
}
