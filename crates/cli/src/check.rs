//! `tidegate check`: everything that is wrong with rules.

use std::io;
use std::process::ExitCode;

use serde::Serialize;
use tidegate_rules::{Compiled, Diagnostic, Refusals, Report, Severity, compile};

use crate::args::{CheckArgs, Format};
use crate::banner::Inventory;
use crate::config::RulesFiles;
use crate::failure::Failure;
use crate::rules_files::{self, Fault};
use crate::terminal;

/// The answer for programs. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    valid: bool,
    unreadable: Vec<UnreadablePath>,
    diagnostics: Vec<Finding<'a>>,
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

/// Checks the rules and says what was found on stdout. What cannot be read is told too, and does not
/// keep the rest from being checked.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let (sources, unreadable) = rules_files::read(&args.paths, RulesFiles::Yaml);
    if sources.is_empty() && args.format == Format::Text {
        return Err(Failure::Unreadable(unreadable));
    }
    let compiled = compile(
        &sources,
        &rules_files::options(args.compile.merge_domains, Refusals::Enforce),
    );
    match args.format {
        Format::Text => {
            terminal::eprint(&unreadable.text());
            print_text(sources.len(), &compiled);
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

fn findings(report: &Report) -> Vec<Finding<'_>> {
    report.iter().map(Finding::from).collect()
}

/// Says what was found, and in the last line what came of it.
pub(crate) fn print_text(n_files: usize, compiled: &Result<Compiled, Report>) {
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
    let space = if report.is_empty() { "" } else { "\n" };
    let report = report.render(terminal::color(&io::stdout()));
    terminal::print(&format!("{report}{space}{summary}\n"));
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
