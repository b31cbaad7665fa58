//! What is wrong, or odd, with rules: every finding at once, each with its place and a hint.

use std::fmt;
use std::sync::Arc;

use crate::findings::is_unprintable;
use crate::style::{Color, Paint};

/// The findings of one compilation, in the order of the files and of the places in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    omitted: Omitted,
}

/// How many findings were not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Omitted {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
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
    /// The text of the line; a piece of it, if it is long.
    pub snippet: String,
    /// The column at which `snippet` begins: 1 unless the line is long.
    pub snippet_column: usize,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The rules work, but hardly as meant.
    Warning,
    /// The rules cannot be used.
    Error,
}

// === impl Report ===

impl Report {
    pub(crate) const fn new(diagnostics: Vec<Diagnostic>, omitted: Omitted) -> Self {
        Self {
            diagnostics,
            omitted,
        }
    }

    /// The findings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// How many findings there are to iterate over.
    pub fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// How many more findings there were: only the first hundred of each severity are kept.
    pub const fn omitted(&self) -> usize {
        self.omitted.errors + self.omitted.warnings
    }

    /// How many findings of a severity there were in all, those not kept included.
    pub fn count(&self, severity: Severity) -> usize {
        let kept = self
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity);
        let omitted = match severity {
            Severity::Error => self.omitted.errors,
            Severity::Warning => self.omitted.warnings,
        };
        kept.count() + omitted
    }

    /// The text for a person: each finding with its line underlined. Empty if there is none.
    pub fn render(&self, color: Color) -> String {
        let mut blocks: Vec<String> = self
            .diagnostics
            .iter()
            .map(|diagnostic| diagnostic.render(color))
            .collect();
        if self.omitted() > 0 {
            blocks.push(format!("… and {} more\n", self.omitted()));
        }
        blocks.join("\n")
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

// === impl Diagnostic ===

impl Diagnostic {
    /// The text for a person: what, where, the line underlined, and the hint.
    pub fn render(&self, color: Color) -> String {
        let word = self.severity.as_str();
        let paint = match self.severity {
            Severity::Error => Paint::Error,
            Severity::Warning => Paint::Warning,
        };
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let bar = color.paint(Paint::Faint, "|");
        let head = color.paint(paint, &format!("{word}[{}]", self.code));
        let message = color.paint(Paint::Strong, &self.message);
        let arrow = color.paint(Paint::Faint, "-->");
        let (before, marks) = self.underline();
        let marks = color.paint(paint, &marks);
        let mut text = format!(
            "{head}: {message}\n\
             {gutter}{arrow} {file}:{line}:{column}\n\
             {gutter} {bar}\n\
             {number} {bar}{snippet}\n\
             {gutter} {bar} {before}{marks}\n",
            file = self.file,
            line = self.line,
            column = self.column,
            snippet = self.printable_snippet(),
        );
        for (at, line) in self.hint.iter().flat_map(|hint| hint.lines()).enumerate() {
            let lead = if at == 0 { "= hint:" } else { "       " };
            let line = format!("{gutter} {} {line}", color.paint(Paint::Faint, lead));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The blanks before the marks, and the marks: one at least, none beyond the snippet.
    fn underline(&self) -> (String, String) {
        let shown = self.snippet.chars().count();
        let before = self.column.saturating_sub(self.snippet_column);
        let room = shown.saturating_sub(before).max(1);
        let marks = self.end_column.saturating_sub(self.column).clamp(1, room);
        (" ".repeat(before), "^".repeat(marks))
    }

    /// The snippet after a blank, with one printable character for each of its own, so that the
    /// marks fit.
    fn printable_snippet(&self) -> String {
        let printable = |char| match char {
            '\t' => ' ',
            char if is_unprintable(char) => '\u{fffd}',
            char => char,
        };
        let snippet: String = self.snippet.chars().map(printable).collect();
        match snippet.trim_end() {
            "" => String::new(),
            snippet => format!(" {snippet}"),
        }
    }
}

// === impl Severity ===

impl Severity {
    /// The word for people and machines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
