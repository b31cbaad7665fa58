//! What the admin listener asks of the program around it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tidegate_rules::{Limit, Report};

/// A reload under way.
pub type Reloading<'a> = Pin<Box<dyn Future<Output = ReloadReport> + Send + 'a>>;

/// What only the program knows or can do: it read the files, made the store and set up the log.
pub trait AdminHooks: fmt::Debug + Send + Sync {
    /// The configuration in force, secrets redacted.
    fn config(&self) -> Value;

    /// Reads the rules again and puts them in force if they are good; ready when that is settled.
    fn reload(&self) -> Reloading<'_>;

    /// Where the rules in force come from, such as their files, or a version in Redis.
    fn rules_source(&self) -> String;

    /// How nodes share a limit and what becomes of it without their store, a line each; nothing where there is
    /// nobody to share it with.
    fn sharing(&self, limit: &Limit) -> Vec<String>;

    /// How the last reload went, whoever asked for it; `None` before the first.
    fn last_reload(&self) -> Option<ReloadReport>;

    /// The level of the log, such as `info` or `info,audit=off`.
    fn log_level(&self) -> String;

    /// Changes the level of the log.
    ///
    /// # Errors
    ///
    /// If `level` is none; the text says what would be one.
    fn set_log_level(&self, level: &str) -> Result<(), String>;

    /// The file in which the counters outlive the process, if there is one.
    fn state(&self) -> Option<StateReport>;
}

/// How a reload went.
#[derive(Clone, Debug)]
pub struct ReloadReport {
    /// When it was settled, by the machine's clock.
    pub at: SystemTime,
    /// Who asked for it.
    pub trigger: ReloadTrigger,
    /// What came of it.
    pub outcome: ReloadOutcome,
    /// What was found in the files, the warnings of good rules included.
    pub findings: Report,
}

/// Who asked for a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadTrigger {
    /// The signal SIGHUP.
    Signal,
    /// A file that changed.
    Watch,
    /// The admin API.
    Admin,
}

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The new rules are in force.
    Replaced {
        /// How many domains they have.
        domains: usize,
        /// How many rules.
        rules: usize,
    },
    /// Those before stay in force.
    Kept {
        /// Why, in one line; the findings tell more.
        reason: String,
    },
}

/// How the writing of counters to a file goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateReport {
    /// When the last file was written, since the epoch; `None` before the first.
    pub written_at: Option<Duration>,
    /// How many counters that file has.
    pub counters: u64,
    /// Its size.
    pub bytes: u64,
    /// How often none could be written.
    pub failures: u64,
    /// Why not, if the last attempt failed.
    pub fault: Option<String>,
}
