//! The document as a tree: what is left of YAML once it is parsed.

use crate::span::Span;

/// One value of the document.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A single value.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Fields in order.
    Block(Vec<Pair>),
}

/// A scalar as written.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: String,
    /// Whether it was bare.
    pub style: Style,
}

/// Whether a scalar may be anything but text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bare: a number, a boolean, nothing, or text.
    Plain,
    /// Quoted, a `|` or `>` block, or tagged as text: text and nothing else.
    Text,
}

/// One field of a block.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Its name.
    pub key: Node,
    /// What it holds.
    pub value: Node,
}

// === impl Node ===

impl Node {
    /// The scalar.
    pub const fn as_scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The text of a scalar, whatever its style.
    pub fn as_text(&self) -> Option<&str> {
        self.as_scalar().map(|scalar| scalar.text.as_str())
    }

    /// Whether nothing is written: an empty, `~` or `null` plain scalar.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(|scalar| {
            scalar.style == Style::Plain
                && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
        })
    }

    /// What the node is, in words.
    pub fn shape(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(_) if self.is_null() => "nothing",
            Kind::Scalar(_) => "a single value",
            Kind::List(_) => "a list",
            Kind::Block(_) => "a block of fields",
        }
    }

    pub(crate) fn is_plain(&self, text: &str) -> bool {
        self.as_scalar()
            .is_some_and(|scalar| scalar.style == Style::Plain && scalar.text == text)
    }

    pub(crate) fn into_block(self) -> Option<Vec<Pair>> {
        match self.kind {
            Kind::Block(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// How many lists and blocks nest in it.
    pub(crate) fn depth(&self) -> usize {
        match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(nodes) => 1 + nodes.iter().map(Self::depth).max().unwrap_or(0),
            Kind::Block(pairs) => {
                let deepest = |pair: &Pair| pair.key.depth().max(pair.value.depth());
                1 + pairs.iter().map(deepest).max().unwrap_or(0)
            }
        }
    }
}
