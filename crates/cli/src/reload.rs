//! New rules for a server that runs. Bad ones never replace good ones, and counters live on.

mod clock;

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_limiter::Limiter;
use tidegate_observe::{Observatory, ReloadSubject};
use tidegate_rules::{Color, Compiled, Report, Severity};
use tidegate_server::{ReloadOutcome, ReloadReport, ReloadTrigger};
use tidegate_store::{Store, StoreError};
use tokio::signal::unix::Signal;
use tracing::field::{DisplayValue, display};
use tracing::{error, info, warn};

use crate::authorize::UnmetRules;
use crate::banner::Inventory;
use crate::failure::Failure;
use crate::rules_source::RulesSource;
pub(crate) use clock::now;

/// Reads the rules again and puts them in force if they are good.
#[derive(Debug)]
pub(crate) struct Reloader<S> {
    source: RulesSource,
    limiter: Arc<Limiter<S>>,
    observatory: Arc<Observatory>,
    unmet: UnmetRules,
    /// Held by the reload under way, so that an older one never undoes a newer one.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Option<ReloadReport>>,
}

// === impl Reloader ===

impl<S: Store> Reloader<S> {
    /// For a source whose rules are in force as they were last read.
    pub(crate) fn new(
        source: RulesSource,
        limiter: &Arc<Limiter<S>>,
        observatory: &Arc<Observatory>,
        unmet: UnmetRules,
    ) -> Self {
        unmet.warn_of(&limiter.rules());
        Self {
            source,
            limiter: Arc::clone(limiter),
            observatory: Arc::clone(observatory),
            unmet,
            turn: tokio::sync::Mutex::new(()),
            last: Mutex::new(None),
        }
    }

    /// Where the rules in force come from.
    pub(crate) fn source(&self) -> String {
        self.source.describe()
    }

    /// How the last reload went.
    pub(crate) fn last(&self) -> Option<ReloadReport> {
        lock(&self.last).clone()
    }

    /// Reads the rules each time `hangup` comes, for ever.
    pub(crate) async fn on_hangup(&self, mut hangup: Signal) {
        while hangup.recv().await.is_some() {
            self.reload(ReloadTrigger::Signal).await;
        }
    }

    /// Reads the rules each time there are others, for ever.
    pub(crate) async fn watch(&self) {
        loop {
            self.source.changed().await;
            self.reload(ReloadTrigger::Watch).await;
        }
    }

    /// Reads the rules; one reload waits for the other.
    pub(crate) async fn reload(&self, trigger: ReloadTrigger) -> ReloadReport {
        let _turn = self.turn.lock().await;
        let (outcome, findings) = self.settle(self.source.read().await);
        let is_news = self.last().is_none_or(|last| last.outcome != outcome);
        if trigger != ReloadTrigger::Watch
            || is_news
            || matches!(outcome, ReloadOutcome::Replaced { .. })
        {
            self.tell(trigger, &outcome, &findings);
        } else {
            // A read that is tried again and fails for the same reason.
            self.observatory.reload_failed(ReloadSubject::Rules);
        }
        let report = ReloadReport {
            at: now(),
            trigger,
            outcome,
            findings,
        };
        *lock(&self.last) = Some(report.clone());
        report
    }

    fn settle(&self, loaded: Result<Compiled, Failure>) -> (ReloadOutcome, Report) {
        match loaded {
            Ok(Compiled { rules, warnings }) => {
                let Inventory {
                    domains,
                    rules: count,
                    ..
                } = Inventory::of(&rules);
                let outcome = match self.limiter.try_replace_rules(rules) {
                    Ok(_) => ReloadOutcome::Replaced {
                        domains,
                        rules: count,
                    },
                    Err(error) => ReloadOutcome::Kept {
                        reason: unfit(&error),
                    },
                };
                (outcome, warnings)
            }
            Err(failure) => {
                let (reason, findings) = reason_of(failure);
                (ReloadOutcome::Kept { reason }, findings)
            }
        }
    }

    /// Says how it went, where operators look.
    fn tell(&self, trigger: ReloadTrigger, outcome: &ReloadOutcome, findings: &Report) {
        let trigger = match trigger {
            ReloadTrigger::Signal => "signal",
            ReloadTrigger::Watch => "watch",
            ReloadTrigger::Admin => "admin",
        };
        match outcome {
            ReloadOutcome::Replaced { .. } => {
                self.observatory.reloaded(self.source.version());
                warn_of(findings);
                self.unmet.warn_of(&self.limiter.rules());
                let loaded = Inventory::of(&self.limiter.rules());
                let source = self.source.describe();
                info!(trigger, source, "reloaded the rules: {loaded}");
            }
            ReloadOutcome::Kept { reason } => {
                self.observatory.reload_failed(ReloadSubject::Rules);
                error!(
                    trigger,
                    findings = findings_field(findings),
                    "rules reload failed; the previous rules stay in force: {reason}"
                );
            }
        }
    }
}

/// The reason why rules that are valid by themselves do not fit the store now.
fn unfit(error: &StoreError) -> String {
    format!(
        "{error}, counters of earlier rules included. Use fewer different windows, or reload again when the windows \
         of the earlier rules are over"
    )
}

/// Logs what is odd about rules that are in force all the same.
pub(crate) fn warn_of(findings: &Report) {
    if !findings.is_empty() {
        let s = if findings.len() == 1 { "" } else { "s" };
        warn!(
            "{} warning{s} about the rules{}",
            findings.len(),
            below(findings)
        );
    }
}

/// Why rules or settings could not be had, in one line, and what was found in them.
pub(crate) fn reason_of(failure: Failure) -> (String, Report) {
    match failure {
        Failure::BadRules(report) => {
            let n_faults = report.count(Severity::Error);
            let s = if n_faults == 1 { "" } else { "s" };
            (format!("the rules have {n_faults} fault{s}"), report)
        }
        Failure::BadConfig(report) => {
            let n_faults = report.count(Severity::Error);
            let s = if n_faults == 1 { "" } else { "s" };
            (format!("{n_faults} fault{s}"), report)
        }
        Failure::Unreadable(unreadable) => {
            let faults = unreadable.faults().iter().map(ToString::to_string);
            let faults: Vec<String> = faults.collect();
            (faults.join("; "), Report::default())
        }
        other => (other.to_string(), Report::default()),
    }
}

/// The findings as the last field of a line of the log, below that line; no field if there are none. A message that
/// ends in findings has no fields, because they would run into the last hint.
pub(crate) fn findings_field(findings: &Report) -> Option<DisplayValue<String>> {
    (!findings.is_empty()).then(|| display(below(findings)))
}

/// The findings on the lines below the one that they belong to.
pub(crate) fn below(findings: &Report) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let text = findings.render(Color::Never);
    format!("\n{}", text.trim_end())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
