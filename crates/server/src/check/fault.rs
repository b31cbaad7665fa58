//! What is wrong with a question, all of it, each at its place.

use std::fmt::{self, Write};

use serde::Serialize;

/// All that is wrong with a question; the first of them, if there are very many.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    shown: Vec<Fault>,
    n_all: usize,
}

/// One thing that is wrong, in the form of RFC 9457's example.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    pub(crate) detail: String,
    /// Where, as a JSON pointer in a URI fragment.
    pub(crate) pointer: String,
}

/// A place in the body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Body,
    Field(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

/// How many faults are shown. Nobody mends more at a time.
const MAX_SHOWN: usize = 20;

/// How many characters of a client's own text are shown to it.
const MAX_EXCERPT: usize = 64;

/// The beginning of a text of the client's, in quotes.
pub(super) fn excerpt(text: &str) -> String {
    let mut begin: String = text.chars().take(MAX_EXCERPT).collect();
    if begin.len() < text.len() {
        begin.push('…');
    }
    format!("`{begin}`")
}

// === impl Faults ===

impl Faults {
    pub(super) fn add(&mut self, place: &Place<'_>, detail: impl Into<String>) {
        self.n_all += 1;
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(Fault {
                detail: detail.into(),
                pointer: place.to_string(),
            });
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.n_all == 0
    }

    /// The faults to show.
    pub(crate) fn shown(&self) -> &[Fault] {
        &self.shown
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.n_all, self.n_all - self.shown.len()) {
            (1, _) => formatter.write_str("the question has a fault, see `errors`"),
            (n, 0) => write!(formatter, "the question has {n} faults, see `errors`"),
            (n, _) => write!(
                formatter,
                "the question has {n} faults, see the first {MAX_SHOWN} in `errors`"
            ),
        }
    }
}

// === impl Place ===

impl<'a> Place<'a> {
    pub(super) const fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(super) const fn element(&'a self, index: usize) -> Self {
        Self::Element(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => formatter.write_str("#"),
            Self::Element(list, index) => write!(formatter, "{list}/{index}"),
            Self::Field(object, name) => {
                write!(formatter, "{object}/")?;
                name.chars()
                    .take(MAX_EXCERPT)
                    .try_for_each(|character| write_pointed(formatter, character))
            }
        }
    }
}

/// Escapes as JSON pointers and the fragments of URIs have it.
fn write_pointed(formatter: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    match character {
        '~' => formatter.write_str("~0"),
        '/' => formatter.write_str("~1"),
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' => formatter.write_char(character),
        _ => {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).bytes();
            bytes
                .into_iter()
                .try_for_each(|byte| write!(formatter, "%{byte:02X}"))
        }
    }
}
