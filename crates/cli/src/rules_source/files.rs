//! Rules in files and folders.

use std::future::pending;
use std::sync::{Mutex, PoisonError};

use tidegate_rules::Compiled;

use super::apart;
use crate::config::{BuiltInRules, Rules};
use crate::failure::Failure;
use crate::rules_files;
use crate::watch::{self, Fingerprint};

/// Rules in files and folders.
#[derive(Debug)]
pub(crate) struct RuleFiles {
    rules: Rules,
    /// What the files looked like when they were last read.
    seen: Mutex<Fingerprint>,
}

// === impl RuleFiles ===

impl RuleFiles {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            seen: Mutex::default(),
        }
    }

    pub(super) async fn read(&self) -> Result<Compiled, Failure> {
        let rules = self.rules.clone();
        // The look comes before the reading, so that a change while they are read is seen as one.
        let look = move || Ok((Fingerprint::of(&rules.watched()), rules_files::load(&rules)));
        let (seen, loaded) = apart(look).await?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        loaded
    }

    pub(super) async fn changed(&self) {
        if self.rules.is_watched() {
            watch::changed(&self.rules.watched(), || self.seen()).await;
        } else {
            pending::<()>().await;
        }
    }

    pub(super) fn describe(&self) -> String {
        if self.rules.paths.is_empty() {
            let what = match self.rules.built_in {
                BuiltInRules::Example => "an example",
                BuiltInRules::Gateway { .. } => "a limit for each client address,",
            };
            return format!("{what} inside the binary; bring your own with --rules PATH");
        }
        let paths = self.rules.paths.iter();
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        paths.join(", ")
    }

    fn seen(&self) -> Fingerprint {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
