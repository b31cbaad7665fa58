//! Where the rules of a server come from, and how it is noticed that there are others.

mod files;

use tidegate_rules::Compiled;

use crate::config::Rules;
use crate::failure::Failure;
use files::RuleFiles;

/// Where the rules of a server come from. It remembers what it gave last.
#[derive(Debug)]
pub(crate) enum RulesSource {
    /// Files and folders, or the example inside the binary.
    Files(RuleFiles),
}

// === impl RulesSource ===

impl RulesSource {
    /// The source that the settings name.
    pub(crate) fn of(rules: &Rules) -> Self {
        Self::Files(RuleFiles::new(rules.clone()))
    }

    /// Reads the rules that are there now.
    pub(crate) async fn read(&self) -> Result<Compiled, Failure> {
        match self {
            Self::Files(files) => files.read().await,
        }
    }

    /// Ready when there is something else than what was read last; never, if nobody is to look.
    pub(crate) async fn changed(&self) {
        match self {
            Self::Files(files) => files.changed().await,
        }
    }
}
