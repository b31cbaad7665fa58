//! From what was written to what is meant: one pass that asks for every setting by name.
//!
//! The pass is the only list of settings there is. What it asks for is what the file may hold, what the
//! environment may name, what `tidegate config` prints and what the schema describes.

mod items;
mod section;
mod unknown;

use serde_json::Value as Json;
use tidegate_rules::document::{Code, Finding, Findings, Kind, Node, quote};

use super::raw::{Origin, RawConfig, Written, field};
use super::value::{Discretion, Mismatch, Shown};
pub(crate) use items::Item;
pub(crate) use section::Section;

/// Answers for settings, and remembers which were asked for.
#[derive(Debug)]
pub(crate) struct Reader<'r> {
    raw: &'r RawConfig,
    findings: Findings,
    known: Vec<Known>,
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
    Setting(Box<Setting>),
}

/// A setting that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// What it may hold.
    pub(crate) schema: Json,
    /// What it holds where nobody sets it.
    pub(crate) default: Shown,
    /// What it holds.
    pub(crate) shown: Shown,
    /// Who set it.
    pub(crate) origin: Origin,
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

/// Who set a setting.
pub(crate) fn origin_of<'k>(known: &'k [Known], path: &str) -> Option<&'k Origin> {
    let found = known.iter().find(|one| one.path == path)?;
    match &found.kind {
        KnownKind::Setting(setting) => Some(&setting.origin),
        KnownKind::Block { .. } => None,
    }
}

/// The settings that `matters` and that hold something else than before.
pub(crate) fn changed(
    before: &[Known],
    after: &[Known],
    matters: impl Fn(&str) -> bool,
) -> Vec<String> {
    let shown = |known: &Known| match &known.kind {
        KnownKind::Setting(setting) => Some(setting.shown.clone()),
        KnownKind::Block { .. } => None,
    };
    let is_other = |known: &&Known| {
        let earlier = before.iter().find(|earlier| earlier.path == known.path);
        earlier.and_then(shown) != shown(known)
    };
    let others = after.iter().filter(|known| matters(&known.path));
    others
        .filter(is_other)
        .map(|known| known.path.clone())
        .collect()
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
        Section::root(self)
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
            let is_block = matches!(node.kind, Kind::Block(_));
            let is_shorthand = !is_block && self.shorthand(&reached) == Some(name);
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
            KnownKind::Setting(_) => None,
        }
    }

    fn mismatch(
        &mut self,
        found: &Found<'_>,
        node: &Node,
        mismatch: Mismatch,
        discretion: Discretion,
    ) {
        let Mismatch { expected, hint } = mismatch;
        let instead = match discretion {
            Discretion::Open => quote(node.as_text().unwrap_or_default()),
            Discretion::Secret => "this".to_owned(),
        };
        let message = format!("`{}` takes {expected}, not {instead}", found.name);
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
}

// === impl Known ===

impl Known {
    /// Whether a single value can be written for it.
    pub(crate) fn has_value(&self) -> bool {
        match self.kind {
            KnownKind::Block { shorthand } => shorthand.is_some(),
            KnownKind::Setting(_) => true,
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

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
