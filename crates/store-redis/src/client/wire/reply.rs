//! Replies as values.

use bytes::Bytes;
use tidegate_store::StoreError;

use super::Scanner;
use super::element::Element;

/// A whole reply. Reading it copies nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    frame: Bytes,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Integer(i64),
    /// A string of any bytes.
    Text(&'a [u8]),
    /// Nothing.
    Nil,
    /// What went wrong, of one part of a reply.
    Error(&'a [u8]),
    /// A list.
    Array(Array<'a>),
}

/// A list in a reply; iterates over its values.
#[derive(Clone, PartialEq, Eq)]
pub struct Array<'a> {
    bytes: &'a [u8],
    left: usize,
}

// === impl Reply ===

impl Reply {
    /// A reply of which a [`Scanner`] found the end.
    pub(crate) fn new(frame: Bytes) -> Self {
        Self { frame }
    }

    /// Reads one reply from bytes; `None` if they are not exactly one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let length = Scanner::default().scan(bytes).ok().flatten()?;
        (length == bytes.len()).then(|| Self::new(Bytes::copy_from_slice(bytes)))
    }

    /// What it says.
    pub fn value(&self) -> Value<'_> {
        read(&self.frame).map_or(Value::Nil, |(value, _)| value)
    }

    /// The number it is.
    pub fn integer(&self) -> Result<i64, StoreError> {
        self.value().integer().ok_or_else(|| self.unexpected())
    }

    /// The text it is; `None` for nothing.
    pub fn text(&self) -> Result<Option<&[u8]>, StoreError> {
        match self.value() {
            Value::Nil => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            _ => Err(self.unexpected()),
        }
    }

    /// The list it is.
    pub fn array(&self) -> Result<Array<'_>, StoreError> {
        self.value().array().ok_or_else(|| self.unexpected())
    }

    /// The error for a reply that means nothing to who asked: another version of a script, or no Redis.
    pub fn unexpected(&self) -> StoreError {
        const SHOWN: usize = 64;
        let shown = &self.frame[..self.frame.len().min(SHOWN)];
        StoreError::Unavailable {
            reason: format!("a reply that makes no sense: {}", shown.escape_ascii()).into(),
        }
    }

    /// The text of the error that it is.
    pub(crate) fn error(&self) -> Option<&[u8]> {
        match self.value() {
            Value::Error(text) => Some(text),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

// === impl Value ===

impl<'a> Value<'a> {
    /// The number it is.
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The number it is, if that is not below 0.
    pub fn unsigned(&self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    /// The text it is.
    pub const fn text(&self) -> Option<&'a [u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text it is, if that is UTF-8.
    pub fn str(&self) -> Option<&'a str> {
        str::from_utf8(self.text()?).ok()
    }

    /// The list it is.
    pub fn array(self) -> Option<Array<'a>> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }
}

// === impl Array ===

impl<'a> Iterator for Array<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (value, next) = read(self.bytes)?;
        let end = match value {
            // Its values come after its head, each of unknown length.
            Value::Array(_) => Scanner::default().scan(self.bytes).ok().flatten()?,
            _ => next,
        };
        self.bytes = &self.bytes[end..];
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Array<'_> {}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not recursive without bound: what is deeper than this is not of our scripts.
        f.debug_list()
            .entries(self.clone().map(|value| match value {
                Value::Array(array) => format!("[{} values]", array.len()),
                other => format!("{other:?}"),
            }))
            .finish()
    }
}

/// The value at the beginning of `bytes`, and where its head ends.
fn read(bytes: &[u8]) -> Option<(Value<'_>, usize)> {
    let (element, next) = Element::read(bytes, 0).ok().flatten()?;
    let value = match element {
        Element::Simple(text) | Element::Bulk(text) => Value::Text(text),
        Element::Error(text) => Value::Error(text),
        Element::Integer(integer) => Value::Integer(integer),
        Element::Nil => Value::Nil,
        Element::Array(left) => Value::Array(Array {
            bytes: &bytes[next..],
            left,
        }),
    };
    Some((value, next))
}
