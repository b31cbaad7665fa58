//! Places in the sources.

/// A stretch of one line of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the source.
    pub file: usize,
    /// Line, from 1.
    pub line: usize,
    /// First column, from 1, in characters.
    pub column: usize,
    /// Column after the last; never before `column`.
    pub end_column: usize,
}

/// Something with the place it was written at.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) span: Span,
    pub(crate) inner: T,
}

// === impl Span ===

impl Span {
    /// The very beginning of a source.
    pub const fn start_of(file: usize) -> Self {
        Self {
            file,
            line: 1,
            column: 1,
            end_column: 1,
        }
    }
}

// === impl Spanned ===

impl<T> Spanned<T> {
    pub(crate) const fn new(span: Span, inner: T) -> Self {
        Self { span, inner }
    }
}
