//! What is asked of the program around the server.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_rules::{Diagnostic, Report, Severity};

use crate::admin::audit::{self, Change};
use crate::admin::fault::Fault;
use crate::admin::reply::{self, Reply};
use crate::admin::timestamp;
use crate::admin::{AdminHooks, ReloadOutcome, ReloadReport, ReloadTrigger};
use crate::peer::Peer;

/// A level of the log.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct LogLevel {
    level: String,
}

#[derive(Debug, Serialize)]
struct LastReloadView<'a> {
    source: String,
    reload: Option<ReloadView<'a>>,
}

/// How a reload went.
#[derive(Debug, Serialize)]
struct ReloadView<'a> {
    at: String,
    trigger: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    domains: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    findings: Vec<FindingView<'a>>,
    /// How many more findings there were.
    findings_omitted: usize,
}

/// What was found in a file.
#[derive(Debug, Serialize)]
struct FindingView<'a> {
    severity: &'static str,
    code: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
    hint: Option<&'a str>,
}

/// The configuration in force.
pub(in crate::admin) fn config(hooks: &dyn AdminHooks) -> Reply {
    reply::json(&hooks.config())
}

/// How the last reload went.
pub(in crate::admin) fn last_reload(hooks: &dyn AdminHooks) -> Reply {
    let last = hooks.last_reload();
    let reload = last.as_ref().map(ReloadView::from);
    let source = hooks.rules_source();
    reply::json(&LastReloadView { source, reload })
}

/// Reads the rules again.
pub(in crate::admin) async fn reload(hooks: &dyn AdminHooks, peer: Peer) -> Result<Reply, Fault> {
    let report = hooks.reload().await;
    let view = ReloadView::from(&report);
    let outcome = match view.reason {
        None => "the new rules are in force".to_owned(),
        Some(reason) => format!("nothing, the rules before stay: {reason}"),
    };
    audit::of_server(Change {
        peer,
        what: "reload",
        outcome: &outcome,
    });
    match &report.outcome {
        ReloadOutcome::Replaced { .. } => Ok(reply::json(&view)),
        ReloadOutcome::Kept { reason } => Err(Fault::NotReloaded {
            reason: reason.clone(),
            report: serde_json::to_value(&view).unwrap_or(Value::Null),
        }),
    }
}

/// The level of the log.
pub(in crate::admin) fn log_level(hooks: &dyn AdminHooks) -> Reply {
    let level = hooks.log_level();
    reply::json(&LogLevel { level })
}

/// Changes the level of the log.
pub(in crate::admin) fn set_log_level(
    hooks: &dyn AdminHooks,
    peer: Peer,
    level: &LogLevel,
) -> Result<Reply, Fault> {
    let before = hooks.log_level();
    hooks
        .set_log_level(&level.level)
        .map_err(|reason| Fault::BadLogLevel { reason })?;
    let change = Change {
        peer,
        what: "log-level",
        outcome: &format!("from {before} to {}", level.level),
    };
    audit::of_server(change);
    Ok(log_level(hooks))
}

// === impl ReloadView ===

impl<'a> From<&'a ReloadReport> for ReloadView<'a> {
    fn from(report: &'a ReloadReport) -> Self {
        let (outcome, numbers, reason) = match &report.outcome {
            ReloadOutcome::Replaced { domains, rules } => {
                ("replaced", Some((*domains, *rules)), None)
            }
            ReloadOutcome::Kept { reason } => ("kept", None, Some(reason.as_str())),
        };
        Self {
            at: timestamp::rfc3339(report.at),
            trigger: match report.trigger {
                ReloadTrigger::Signal => "signal",
                ReloadTrigger::Watch => "watch",
                ReloadTrigger::Admin => "admin",
            },
            outcome,
            domains: numbers.map(|(domains, _)| domains),
            rules: numbers.map(|(_, rules)| rules),
            reason,
            findings: report.findings.iter().map(FindingView::from).collect(),
            findings_omitted: Report::omitted(&report.findings),
        }
    }
}

// === impl FindingView ===

impl<'a> From<&'a Diagnostic> for FindingView<'a> {
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
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
        }
    }
}
