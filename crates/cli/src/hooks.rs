//! What the admin listener asks of the program.

use std::sync::Arc;

use serde_json::Value as Json;
use tidegate_rules::Limit;
use tidegate_server::{AdminHooks, ReloadReport, ReloadTrigger, Reloading, StateReport};

use crate::log::{Filter, LogHandle, NotAFilter};
use crate::reload::Reloader;
use crate::sharing::Sharing;
use crate::state::Reporter;
use crate::stores::AnyStore;

/// What only the program knows or can do.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// The settings in force, secrets redacted.
    pub(crate) config: Json,
    /// How nodes share limits.
    pub(crate) sharing: Sharing,
    /// Who reads the rules.
    pub(crate) reloader: Arc<Reloader<AnyStore>>,
    /// The log.
    pub(crate) log: LogHandle,
    /// How the keeping of counters goes.
    pub(crate) state: Reporter,
}

// === impl Hooks ===

impl AdminHooks for Hooks {
    fn config(&self) -> Json {
        self.config.clone()
    }

    fn reload(&self) -> Reloading<'_> {
        Box::pin(self.reloader.reload(ReloadTrigger::Admin))
    }

    fn rules_source(&self) -> String {
        self.reloader.source()
    }

    fn sharing(&self, limit: &Limit) -> Vec<String> {
        self.sharing.explain(limit)
    }

    fn last_reload(&self) -> Option<ReloadReport> {
        self.reloader.last()
    }

    fn log_level(&self) -> String {
        self.log.filter()
    }

    fn set_log_level(&self, level: &str) -> Result<(), String> {
        let filter: Filter = level
            .parse()
            .map_err(|fault: NotAFilter| fault.to_string())?;
        self.log.set(filter);
        Ok(())
    }

    fn state(&self) -> Option<StateReport> {
        self.state.report()
    }
}
