//! Collects what the stages of a compilation find, in bounded memory.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::code::Code;
use crate::report::{Diagnostic, Omitted, Report, Severity};
use crate::span::Span;

/// How many findings of each severity are kept; more are only counted. Nobody reads the hundredth
/// before mending the first.
const MAX_KEPT: usize = 100;

/// The longest piece of a line that a finding carries, in characters.
const MAX_SNIPPET: usize = 160;

/// How much of a long line is shown before the offending text, in characters.
const SNIPPET_LEAD: usize = 40;

/// The longest quotation of a file's text in a message, in characters.
const MAX_QUOTE: usize = 60;

/// Everything found so far, and the texts it was found in.
#[derive(Debug, Default)]
pub struct Findings {
    texts: Vec<Text>,
    errors: Kept,
    warnings: Kept,
}

/// One thing found.
#[derive(Debug)]
pub struct Finding {
    severity: Severity,
    code: Code,
    span: Span,
    message: String,
    hint: Option<String>,
}

/// A source.
#[derive(Debug)]
struct Text {
    name: Arc<str>,
    content: String,
}

#[derive(Debug, Default)]
struct Kept {
    findings: Vec<(Span, Diagnostic)>,
    omitted: usize,
}

// === impl Findings ===

impl Findings {
    /// Registers a source and returns its index. Bytes that are not UTF-8 show as `�`.
    pub fn add_source(&mut self, name: &str, bytes: &[u8]) -> usize {
        self.texts.push(Text {
            name: clean(name).into(),
            content: String::from_utf8_lossy(bytes).into_owned(),
        });
        self.texts.len() - 1
    }

    /// The name of a source.
    pub fn name_of(&self, file: usize) -> Arc<str> {
        self.texts
            .get(file)
            .map_or_else(|| Arc::from(""), |text| Arc::clone(&text.name))
    }

    /// The place of a span, for messages that refer to a second place.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}", self.name_of(span.file), span.line)
    }

    /// Covers what stands at a span with stars, so that no later finding shows it.
    pub fn veil(&mut self, span: Span) {
        let Some(text) = self.texts.get_mut(span.file) else {
            return;
        };
        let veiled = |(line, content): (usize, &str)| {
            if line + 1 != span.line {
                return content.to_owned();
            }
            let is_covered = |column| (span.column..span.end_column).contains(&column);
            let columns = (1..).zip(content.chars());
            columns
                .map(|(column, char)| if is_covered(column) { '*' } else { char })
                .collect()
        };
        let lines: Vec<String> = text.content.lines().enumerate().map(veiled).collect();
        text.content = lines.join("\n");
    }

    /// Notes a finding. The same finding at the same place, as an alias repeats it, is noted once.
    pub fn push(&mut self, finding: Finding) {
        let (severity, span) = (finding.severity, finding.span);
        if self.kept(severity).holds(&finding) {
            return;
        }
        let diagnostic = (!self.is_full(severity)).then(|| self.diagnose(finding));
        let kept = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        match diagnostic {
            Some(diagnostic) => kept.findings.push((span, diagnostic)),
            None => kept.omitted += 1,
        }
    }

    /// Whether another finding would only be counted, so that its hint need not be worked out.
    pub fn is_full(&self, severity: Severity) -> bool {
        self.kept(severity).findings.len() >= MAX_KEPT
    }

    /// Whether the rules cannot be used.
    pub fn has_errors(&self) -> bool {
        !self.errors.findings.is_empty()
    }

    /// The report of everything, in the order of files and lines.
    pub fn into_report(self) -> Report {
        let omitted = Omitted {
            errors: self.errors.omitted,
            warnings: self.warnings.omitted,
        };
        let mut findings = self.errors.findings;
        findings.extend(self.warnings.findings);
        findings.sort_by_key(|(span, _)| *span);
        Report::new(
            findings
                .into_iter()
                .map(|(_, diagnostic)| diagnostic)
                .collect(),
            omitted,
        )
    }

    const fn kept(&self, severity: Severity) -> &Kept {
        match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        }
    }

    fn diagnose(&self, finding: Finding) -> Diagnostic {
        let Finding {
            severity,
            code,
            span,
            message,
            hint,
        } = finding;
        let line = self
            .texts
            .get(span.file)
            .and_then(|text| text.content.lines().nth(span.line.saturating_sub(1)))
            .unwrap_or_default();
        let skipped = if span.end_column <= MAX_SNIPPET {
            0
        } else {
            (span.column - 1).saturating_sub(SNIPPET_LEAD)
        };
        Diagnostic {
            severity,
            code: code.as_str(),
            file: self.name_of(span.file),
            line: span.line,
            column: span.column,
            end_column: span.end_column,
            message,
            hint,
            snippet: line.chars().skip(skipped).take(MAX_SNIPPET).collect(),
            snippet_column: skipped + 1,
        }
    }
}

// === impl Finding ===

impl Finding {
    /// Something that must be mended.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            span,
            message: message.into(),
            hint: None,
        }
    }

    /// Something odd.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            code,
            span,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what to write instead, where that is known.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

// === impl Kept ===

impl Kept {
    fn holds(&self, finding: &Finding) -> bool {
        self.findings.iter().any(|(span, diagnostic)| {
            *span == finding.span
                && diagnostic.code == finding.code.as_str()
                && diagnostic.message == finding.message
        })
    }
}

/// `text` between backticks, clipped, and without anything a terminal would act on.
pub fn quote(text: &str) -> String {
    format!("`{}`", excerpt(text))
}

/// The beginning of `text`, without anything a terminal would act on.
pub(crate) fn excerpt(text: &str) -> String {
    clip(&clean(text), MAX_QUOTE)
}

/// `text` with its control characters escaped.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unprintable(char) {
            // Writing to a string cannot fail.
            let _ = write!(clean, "{}", char.escape_unicode());
        } else {
            clean.push(char);
        }
    }
    clean
}

/// At most `most` characters of `text`, with an ellipsis for the rest.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut clipped: String = text.chars().take(most.saturating_sub(1)).collect();
    clipped.push('…');
    clipped
}

/// Controls, and the marks that reorder the text around them.
pub(crate) fn is_unprintable(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
