//! `tidegate check`: everything that is wrong with rules.

mod client_keys;

use std::fmt;
use std::io;
use std::process::ExitCode;

use serde::Serialize;
use tidegate_rules::{Compiled, Diagnostic, Refusals, Report, Rule, Severity};

use crate::args::{CheckArgs, Format, SettingArgs};
use crate::banner::Inventory;
use crate::config::{self, Loaded, RulesFiles};
use crate::failure::Failure;
use crate::rules_files::{self, Fault};
use crate::sharing::Sharing;
use crate::{gateway, terminal};

/// The answer for programs. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    valid: bool,
    unreadable: Vec<UnreadablePath>,
    diagnostics: Vec<Finding<'a>>,
    notes: Vec<Note<'a>>,
    /// Limits that a client escapes by choosing another key.
    chosen_keys: Vec<Note<'a>>,
}

#[derive(Debug, Serialize)]
struct UnreadablePath {
    path: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct Finding<'a> {
    severity: &'static str,
    code: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    end_column: usize,
    message: &'a str,
    hint: Option<&'a str>,
    snippet: &'a str,
}

/// What is worth knowing about a good limit.
#[derive(Debug, Serialize)]
struct Note<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    rule: &'a str,
    limit: &'a str,
    message: String,
}

/// Checks the rules and says what was found on stdout. What cannot be read is told too, and does not
/// keep the rest from being checked.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let (sources, unreadable) = rules_files::read(&args.paths, RulesFiles::Yaml);
    if sources.is_empty() && args.format == Format::Text {
        return Err(Failure::Unreadable(unreadable));
    }
    let loaded = config::load(&SettingArgs::from(&args.node))?;
    terminal::eprint(&loaded.typed_in_vain());
    terminal::eprint(&loaded.warnings.render(terminal::color(&io::stderr())));
    let sharing = loaded.config.rules.sharing;
    let options = rules_files::options(args.compile.merge_domains, Refusals::Enforce);
    let compiled = rules_files::compile(&sources, options, sharing);
    let chosen_keys = chosen_keys(&compiled, &loaded);
    let rules = compiled.as_ref().ok().map(|compiled| &compiled.rules);
    if let Some(warning) = rules.and_then(|rules| gateway::no_limits(&loaded.config, rules)) {
        terminal::eprint(&format!("warning: {warning}\n"));
    }
    match args.format {
        Format::Text => {
            terminal::eprint(&unreadable.text());
            let warnings: String = chosen_keys.iter().map(warning).collect();
            print_text(sources.len(), &compiled, sharing, &warnings);
        }
        Format::Json => print_json(&Checked {
            valid: compiled.is_ok() && unreadable.faults().is_empty(),
            unreadable: unreadable
                .faults()
                .iter()
                .map(UnreadablePath::from)
                .collect(),
            diagnostics: compiled
                .as_ref()
                .map_or_else(findings, |it| findings(&it.warnings)),
            notes: notes(&compiled, sharing),
            chosen_keys,
        }),
    }
    Ok(match (unreadable.faults(), compiled) {
        ([], Ok(_)) => ExitCode::SUCCESS,
        ([], Err(_)) => ExitCode::FAILURE,
        _ => ExitCode::from(2),
    })
}

// === impl UnreadablePath ===

impl From<&Fault> for UnreadablePath {
    fn from(fault: &Fault) -> Self {
        Self {
            path: fault.path.display().to_string(),
            reason: fault.reason.to_string(),
        }
    }
}

// === impl Finding ===

impl<'a> From<&'a Diagnostic> for Finding<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        Self {
            severity: match diagnostic.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            code: diagnostic.code,
            file: &diagnostic.file,
            line: diagnostic.line,
            column: diagnostic.column,
            end_column: diagnostic.end_column,
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
            snippet: &diagnostic.snippet,
        }
    }
}

// === impl Note ===

impl<'a> Note<'a> {
    fn new(rule: &'a Rule, limit: &'a str, message: String) -> Self {
        let location = rule.location();
        Self {
            file: &location.file,
            line: location.line,
            column: location.column,
            rule: rule.path(),
            limit,
            message,
        }
    }
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, line, column, ..
        } = self;
        writeln!(formatter, "note: {}", self.message)?;
        writeln!(formatter, " --> {file}:{line}:{column}")?;
        writeln!(formatter, "  = `{}`: {}", self.rule, self.limit)
    }
}

fn findings(report: &Report) -> Vec<Finding<'_>> {
    report.iter().map(Finding::from).collect()
}

fn notes(compiled: &Result<Compiled, Report>, sharing: Sharing) -> Vec<Note<'_>> {
    let rules = compiled.iter().flat_map(|compiled| compiled.rules.rules());
    let limits = rules.flat_map(|rule| rule.limits().iter().map(move |limit| (rule, limit)));
    let noted = limits.filter_map(|(rule, limit)| {
        let message = sharing.note(limit)?;
        Some(Note::new(rule, limit.description(), message))
    });
    noted.collect()
}

fn chosen_keys<'c>(compiled: &'c Result<Compiled, Report>, loaded: &Loaded) -> Vec<Note<'c>> {
    let rules = compiled.iter().map(|compiled| &compiled.rules);
    let found = rules.flat_map(|rules| client_keys::find(loaded, rules));
    let noted = found.map(|client_keys::ChosenKey { rule, message }| {
        let limit = rule
            .limits()
            .first()
            .map_or("", |limit| limit.description());
        Note::new(rule, limit, message)
    });
    noted.collect()
}

/// A note about something that should be mended.
fn warning(note: &Note<'_>) -> String {
    let text = note.to_string().replacen("note:", "warning:", 1);
    format!("{text}  = hint: {}\n", client_keys::HINT)
}

/// Says what was found, and in the last line what came of it.
pub(crate) fn print_text(
    n_files: usize,
    compiled: &Result<Compiled, Report>,
    sharing: Sharing,
    warnings: &str,
) {
    let files = if n_files == 1 { "file" } else { "files" };
    let (report, summary) = match compiled {
        Ok(Compiled { rules, warnings }) => {
            let inventory = Inventory::of(rules);
            (warnings, format!("valid: {n_files} {files}, {inventory}"))
        }
        Err(report) => (
            report,
            format!("not valid: {n_files} {files}, {}", n_faults(report)),
        ),
    };
    let notes = notes(compiled, sharing);
    let notes: String = notes.iter().map(ToString::to_string).collect();
    let space = if report.is_empty() && notes.is_empty() && warnings.is_empty() {
        ""
    } else {
        "\n"
    };
    let report = report.render(terminal::color(&io::stdout()));
    terminal::print(&format!("{report}{notes}{warnings}{space}{summary}\n"));
}

fn n_faults(report: &Report) -> String {
    let n_faults = report.count(Severity::Error);
    format!(
        "{n_faults} {}",
        if n_faults == 1 { "fault" } else { "faults" }
    )
}

fn print_json(checked: &Checked<'_>) {
    // A map of strings and numbers always has a JSON form.
    let json = serde_json::to_string_pretty(checked).unwrap_or_default();
    terminal::print(&format!("{json}\n"));
}
