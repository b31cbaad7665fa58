//! Where the rules of a server come from, and how it is noticed that there are others.

mod files;
mod pushed;

use std::io;

use tidegate_rules::Compiled;
use tokio::task::spawn_blocking;

use crate::config::Rules;
use crate::failure::Failure;
use files::RuleFiles;
pub(crate) use pushed::PushedError;
use pushed::PushedRules;

/// Where the rules of a server come from. It remembers what it gave last.
#[derive(Debug)]
pub(crate) enum RulesSource {
    /// Files and folders, or the example inside the binary.
    Files(Box<RuleFiles>),
    /// A Redis that somebody pushes them to.
    Pushed(Box<PushedRules>),
}

// === impl RulesSource ===

impl RulesSource {
    /// The source that the settings name.
    pub(crate) fn of(rules: &Rules) -> Result<Self, Failure> {
        Ok(match &rules.pushed {
            None => Self::Files(Box::new(RuleFiles::new(rules.clone()))),
            Some(place) => Self::Pushed(Box::new(PushedRules::new(rules.clone(), place)?)),
        })
    }

    /// The rules that a server starts with.
    pub(crate) async fn start(&self) -> Result<Compiled, Failure> {
        match self {
            Self::Files(files) => files.read().await,
            Self::Pushed(pushed) => pushed.start().await,
        }
    }

    /// Reads the rules that are there now.
    pub(crate) async fn read(&self) -> Result<Compiled, Failure> {
        match self {
            Self::Files(files) => files.read().await,
            Self::Pushed(pushed) => pushed.read().await,
        }
    }

    /// Ready when there is something else than what was read last; never, if nobody is to look.
    pub(crate) async fn changed(&self) {
        match self {
            Self::Files(files) => files.changed().await,
            Self::Pushed(pushed) => pushed.changed().await,
        }
    }

    /// The number of the version in force, where there are versions.
    pub(crate) fn version(&self) -> Option<u64> {
        match self {
            Self::Files(_) => None,
            Self::Pushed(pushed) => pushed.version(),
        }
    }

    /// Where they come from, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Files(files) => files.describe(),
            Self::Pushed(pushed) => pushed.describe(),
        }
    }
}

/// Reads or writes a file apart from the thread that asks.
async fn apart_io<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|reason| Err(io::Error::other(reason)))
}

/// Does what may take a while apart from the thread that asks.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.unwrap_or_else(|reason| {
        Err(Failure::System {
            what: "read the rules",
            reason: io::Error::other(reason),
        })
    })
}
