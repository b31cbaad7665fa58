//! Everything that was set, as it was written: flags, environment and file, not yet understood.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use tidegate_rules::document::{Findings, Kind, Node, Pair, Scalar, Span, Style};

/// What was set, before anybody looked at the values.
#[derive(Debug, Default)]
pub(crate) struct RawConfig {
    /// The tree of the config file.
    pub(crate) file: Option<Node>,
    /// The environment of our own names.
    pub(crate) environment: Vec<Written>,
    /// What the environment of envoyproxy/ratelimit says, in our words.
    pub(crate) reference: Vec<Written>,
    /// The flags.
    pub(crate) flags: Vec<Written>,
    /// What is to be assumed where nothing else is set.
    pub(crate) assumed: Vec<Written>,
    /// Where the environment wants programs to keep what they write.
    pub(crate) state_folder: Option<PathBuf>,
}

/// One setting from outside the file.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// Which one: `store.max_memory`; in the environment the variable's name.
    pub(crate) path: String,
    /// Who set it.
    pub(crate) origin: Origin,
    /// To what.
    pub(crate) node: Node,
}

/// Who set a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody.
    Default,
    /// The config file.
    File,
    /// A variable, or several that make up one value.
    Environment(String),
    /// A flag.
    Flag(String),
    /// It goes with a variable of envoyproxy/ratelimit.
    Assumed(&'static str),
}

/// Lines of settings that stand in no file, so that findings can show them as if they did.
#[derive(Debug)]
pub(crate) struct Page {
    file: usize,
    text: String,
    lines: usize,
}

// === impl Origin ===

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File => formatter.write_str("file"),
            Self::Environment(name) => write!(formatter, "env {name}"),
            Self::Flag(name) => write!(formatter, "flag {name}"),
            Self::Assumed(name) => write!(formatter, "default with {name}"),
        }
    }
}

// === impl Page ===

impl Page {
    /// A page that will be source number `file`.
    pub(crate) const fn new(file: usize) -> Self {
        Self {
            file,
            text: String::new(),
            lines: 0,
        }
    }

    /// Writes `name`, `sign` and `value` on a line of their own and gives the value's place.
    pub(crate) fn line(&mut self, name: &str, sign: char, value: &str) -> Span {
        self.lines += 1;
        let value: String = value
            .chars()
            .map(|char| if char == '\n' { ' ' } else { char })
            .collect();
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{name}{sign}{value}");
        let column = name.chars().count() + 2;
        Span {
            file: self.file,
            line: self.lines,
            column,
            end_column: column + value.chars().count().max(1),
        }
    }

    /// Writes a flag with its values and gives it as a setting.
    pub(crate) fn flag(&mut self, path: &str, flag: &str, values: Vec<String>) -> Written {
        let span = self.line(flag, ' ', &values.join(" "));
        let node = match <[String; 1]>::try_from(values) {
            Ok([value]) => scalar(span, value),
            Err(values) => list(span, values),
        };
        Written {
            path: path.to_owned(),
            origin: Origin::Flag(flag.to_owned()),
            node,
        }
    }

    /// Makes it a source of `findings`; pages come in the order of their numbers.
    pub(crate) fn publish(&self, name: &str, findings: &mut Findings) {
        findings.add_source(name, self.text.as_bytes());
    }
}

/// A single value.
pub(crate) fn scalar(span: Span, text: impl Into<String>) -> Node {
    let kind = Kind::Scalar(Scalar {
        text: text.into(),
        style: Style::Plain,
    });
    Node { span, kind }
}

/// A list of single values at one place.
pub(crate) fn list(span: Span, items: impl IntoIterator<Item = String>) -> Node {
    let items = items.into_iter().map(|item| scalar(span, item));
    Node {
        span,
        kind: Kind::List(items.collect()),
    }
}

/// The field of a block.
pub(crate) fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Pair> {
    let Kind::Block(pairs) = &node.kind else {
        return None;
    };
    pairs.iter().find(|pair| pair.key.as_text() == Some(name))
}
