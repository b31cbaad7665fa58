//! From what was written to what is meant: one pass that asks for every setting by name.
//!
//! The pass is the only list of settings there is. What it asks for is what the file may hold, what the
//! environment may name, what `tidegate config` prints and what the schema describes.

use serde_json::{Value as Json, json};
use tidegate_rules::document::{Code, Finding, Findings, Kind, Node, Pair, Span, nearest, quote};

use super::raw::{self, Origin, RawConfig, Written, field};
use super::value::{Mismatch, Shown, Value};

/// Answers for settings, and remembers which were asked for.
#[derive(Debug)]
pub(crate) struct Reader<'r> {
    raw: &'r RawConfig,
    findings: Findings,
    known: Vec<Known>,
}

/// A block of settings.
#[derive(Debug)]
pub(crate) struct Section<'s, 'r> {
    reader: &'s mut Reader<'r>,
    path: String,
}

/// A setting, or a block of them, that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its name with those of the blocks around it: `store.max_memory`.
    pub(crate) path: String,
    /// What it is for: one sentence without a period.
    pub(crate) about: &'static str,
    /// What it is.
    pub(crate) kind: KnownKind,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum KnownKind {
    /// A block of settings.
    Block {
        /// The setting that is meant when a single value stands for the block.
        shorthand: Option<&'static str>,
    },
    /// A setting.
    Setting {
        /// What it may hold.
        schema: Json,
        /// What it holds where nobody sets it.
        default: Shown,
        /// What it holds.
        shown: Shown,
        /// Who set it.
        origin: Origin,
    },
}

/// A value as it was written, by whoever has the last word.
#[derive(Clone, Debug)]
struct Found<'r> {
    node: &'r Node,
    origin: Origin,
    /// What messages call it.
    name: String,
}

/// The variable of a setting: `store.max_memory` is `TIDEGATE_STORE_MAX_MEMORY`.
pub(crate) fn variable(path: &str) -> String {
    format!("TIDEGATE_{}", path.replace('.', "_").to_uppercase())
}

// === impl Reader ===

impl<'r> Reader<'r> {
    pub(crate) fn new(raw: &'r RawConfig, findings: Findings) -> Self {
        Self {
            raw,
            findings,
            known: Vec::new(),
        }
    }

    /// All settings.
    pub(crate) fn root(&mut self) -> Section<'_, 'r> {
        Section {
            reader: self,
            path: String::new(),
        }
    }

    /// Reports what nobody asked for, and gives what was found and all that was asked for.
    pub(crate) fn finish(mut self) -> (Findings, Vec<Known>) {
        if let Some(root) = &self.raw.file {
            self.report_unknown(root, "");
        }
        self.report_unknown_variables();
        (self.findings, self.known)
    }

    /// The values that were written, the one that has the last word first: flags, environment, file,
    /// assumption.
    fn find(&self, path: &str) -> impl Iterator<Item = Found<'r>> + use<'r> {
        let raw = self.raw;
        let named = |layer: &'r [Written]| {
            let written = layer.iter().find(|written| written.path == path)?;
            Some(Found::from(written))
        };
        let layers = [
            named(&raw.flags),
            self.in_environment(path),
            named(&raw.reference),
            self.in_file(path),
            named(&raw.assumed),
        ];
        layers.into_iter().flatten()
    }

    fn in_environment(&self, path: &str) -> Option<Found<'r>> {
        let set = |path: &str| {
            let name = variable(path);
            let mut variables = self.raw.environment.iter();
            variables.find(|written| written.path == name)
        };
        let in_short = || {
            let (block, name) = path.rsplit_once('.')?;
            (self.shorthand(block) == Some(name)).then(|| set(block))?
        };
        set(path).or_else(in_short).map(Found::from)
    }

    fn in_file(&self, path: &str) -> Option<Found<'r>> {
        let mut node = self.raw.file.as_ref()?;
        let mut reached = String::new();
        for name in path.split('.') {
            let is_shorthand = node.as_scalar().is_some() && self.shorthand(&reached) == Some(name);
            if !is_shorthand {
                node = &field(node, name)?.value;
            }
            reached = join(&reached, name);
        }
        (!node.is_null()).then(|| Found {
            node,
            origin: Origin::File,
            name: path.to_owned(),
        })
    }

    fn shorthand(&self, path: &str) -> Option<&'static str> {
        let block = self.known.iter().find(|known| known.path == path)?;
        match block.kind {
            KnownKind::Block { shorthand } => shorthand,
            KnownKind::Setting { .. } => None,
        }
    }

    fn mismatch(&mut self, found: &Found<'_>, node: &Node, mismatch: Mismatch) {
        let text = node.as_text().unwrap_or_default();
        let Mismatch { expected, hint } = mismatch;
        let message = format!("`{}` takes {expected}, not {}", found.name, quote(text));
        self.findings
            .push(Finding::error(Code::BadValue, node.span, message).hint(hint));
    }

    fn wrong_shape(&mut self, found: &Found<'_>, node: &Node) {
        let message = format!(
            "`{}` takes a single value, found {}",
            found.name,
            node.shape()
        );
        self.findings
            .push(Finding::error(Code::WrongShape, node.span, message));
    }

    fn report_unknown(&mut self, block: &Node, path: &str) {
        let Kind::Block(pairs) = &block.kind else {
            let is_short = block.as_scalar().is_some() && self.shorthand(path).is_some();
            if !is_short && !block.is_null() {
                self.report_no_block(block);
            }
            return;
        };
        for pair in pairs {
            let Some(name) = pair.key.as_text() else {
                let message = format!("the name of a field is {}", pair.key.shape());
                self.findings
                    .push(Finding::error(Code::WrongShape, pair.key.span, message));
                continue;
            };
            let inner = join(path, name);
            match self.known.iter().find(|known| known.path == inner) {
                Some(Known {
                    kind: KnownKind::Block { .. },
                    ..
                }) => self.report_unknown(&pair.value, &inner),
                Some(_) => {}
                None => self.report_unknown_field(pair, name, path),
            }
        }
    }

    fn report_no_block(&mut self, node: &Node) {
        let message = format!("expected a block of fields, found {}", node.shape());
        self.findings
            .push(Finding::error(Code::WrongShape, node.span, message));
    }

    fn report_unknown_field(&mut self, pair: &Pair, name: &str, path: &str) {
        let place = if path.is_empty() {
            String::new()
        } else {
            format!(" in `{path}`")
        };
        let siblings = self.known.iter().filter_map(|known| {
            let inner = known.path.strip_prefix(path)?;
            let inner = inner.strip_prefix('.').unwrap_or(inner);
            (!inner.is_empty() && !inner.contains('.')).then_some(inner)
        });
        let near = nearest(name, siblings).map(|near| format!("did you mean `{near}`?"));
        let elsewhere = || {
            let named = |known: &&Known| known.path.rsplit('.').next() == Some(name);
            let other = self.known.iter().find(named)?;
            Some(format!("there is `{}`", other.path))
        };
        let hint = near.or_else(elsewhere);
        let message = format!("unknown field {}{place}", quote(name));
        self.findings
            .push(Finding::error(Code::UnknownField, pair.key.span, message).maybe_hint(hint));
    }

    fn report_unknown_variables(&mut self) {
        let variables: Vec<String> = self
            .known
            .iter()
            .filter(|known| known.has_value())
            .map(|known| variable(&known.path))
            .collect();
        for written in &self.raw.environment {
            let name = &written.path;
            if !variables.contains(name) {
                let message = format!("unknown variable {}", quote(name));
                let span = Span {
                    column: 1,
                    end_column: name.chars().count() + 1,
                    ..written.node.span
                };
                let finding = Finding::error(Code::UnknownField, span, message);
                self.findings
                    .push(finding.hint(nearest_variable(name, &variables)));
            }
        }
    }
}

// === impl Section ===

impl<'r> Section<'_, 'r> {
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
        self.know(name, about, T::schema(), shown, value.show(), origin);
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
        self.know(name, about, T::schema(), Shown::Unset, shown, origin);
        value
    }

    /// A setting that holds several values; in the environment there are commas between them.
    pub(crate) fn list<T: Value>(&mut self, name: &str, about: &'static str) -> Vec<T> {
        let schema = json!({
            "anyOf": [T::schema(), { "type": "array", "items": T::schema() }]
        });
        let found: Vec<_> = self.reader.find(&self.inner(name)).collect();
        let origin = found
            .first()
            .map_or(Origin::Default, |found| found.origin.clone());
        let mut read = found
            .iter()
            .map(|found| self.items(found))
            .collect::<Vec<_>>();
        let values: Vec<T> = if read.is_empty() {
            Vec::new()
        } else {
            read.swap_remove(0)
        };
        let shown = values.iter().filter_map(|value| match value.show() {
            Shown::Plain(json) => Some(json),
            Shown::Secret | Shown::Unset => None,
        });
        let shown = Shown::Plain(Json::Array(shown.collect()));
        let none = Shown::Plain(json!([]));
        self.know(name, about, schema, none, shown, origin);
        values
    }

    /// Reports something about a setting that was written; about one that was not, nothing is said.
    pub(crate) fn fault(&mut self, name: &str, code: Code, message: String, hint: &str) {
        if let Some(found) = self.reader.find(&self.inner(name)).next() {
            self.reader
                .findings
                .push(Finding::error(code, found.node.span, message).hint(hint));
        }
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
        match T::parse(text) {
            Ok(value) => Some(value),
            Err(mismatch) => {
                self.reader.mismatch(found, node, mismatch);
                None
            }
        }
    }

    fn know(
        &mut self,
        name: &str,
        about: &'static str,
        schema: Json,
        default: Shown,
        shown: Shown,
        origin: Origin,
    ) {
        let path = self.inner(name);
        let kind = KnownKind::Setting {
            schema,
            default,
            shown,
            origin,
        };
        self.reader.known.push(Known { path, about, kind });
    }

    fn inner(&self, name: &str) -> String {
        join(&self.path, name)
    }
}

// === impl Known ===

impl Known {
    /// Whether a single value can be written for it.
    pub(crate) fn has_value(&self) -> bool {
        match self.kind {
            KnownKind::Block { shorthand } => shorthand.is_some(),
            KnownKind::Setting { .. } => true,
        }
    }
}

// === impl Found ===

impl<'r> From<&'r Written> for Found<'r> {
    fn from(written: &'r Written) -> Self {
        let name = match &written.origin {
            Origin::Environment(name) | Origin::Flag(name) => name.clone(),
            Origin::Default | Origin::File | Origin::Assumed(_) => written.path.clone(),
        };
        Self {
            node: &written.node,
            origin: written.origin.clone(),
            name,
        }
    }
}

fn nearest_variable(name: &str, names: &[String]) -> String {
    // Compared without what all of them begin with, for the longer the words the farther the reach.
    let short = |name: &str| name.trim_start_matches("TIDEGATE_").to_lowercase();
    let shorts: Vec<String> = names.iter().map(|name| short(name)).collect();
    match nearest(&short(name), shorts.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `TIDEGATE_{}`?", near.to_uppercase()),
        None => {
            "`tidegate config` lists every setting; store.max_memory is TIDEGATE_STORE_MAX_MEMORY"
                .into()
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
