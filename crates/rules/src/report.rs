//! What is wrong, or odd, with rules: every finding at once, each with its place and a hint.

use std::fmt;
use std::sync::Arc;

/// The findings of one compilation, in the order of the files and of the places in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the rules can be used all the same.
    pub severity: Severity,
    /// What kind of finding it is; stable, for machines.
    pub code: &'static str,
    /// The name of the source, as given in [`Source::name`](crate::Source::name).
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column of the first offending character, from 1, in characters.
    pub column: usize,
    /// Column after the last offending character of that line.
    pub end_column: usize,
    /// What is wrong: one sentence, lowercase, without a period.
    pub message: String,
    /// What to write instead; may have several lines.
    pub hint: Option<String>,
    /// The text of the line.
    pub snippet: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The rules work, but hardly as meant.
    Warning,
    /// The rules cannot be used.
    Error,
}

/// Whether a rendering may use terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// ANSI escapes.
    Always,
}

// === impl Report ===

impl Report {
    /// The findings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// How many findings there are.
    pub fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// The text for a person: each finding with its line underlined.
    pub fn render(&self, _color: Color) -> String {
        unimplemented!()
    }
}

impl<'a> IntoIterator for &'a Report {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Color::Never))
    }
}

impl std::error::Error for Report {}
