//! Rules in files and folders.

use std::future::pending;
use std::io;
use std::sync::{Mutex, PoisonError};

use tidegate_rules::Compiled;
use tokio::task::spawn_blocking;

use crate::config::Rules;
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
        // Apart from the thread that asks: reading and compiling may take a while. The look comes
        // before the reading, so that a change while they are read is seen as one.
        let read = spawn_blocking(move || (Fingerprint::of(&rules), rules_files::load(&rules)));
        let (seen, loaded) = read.await.map_err(|reason| Failure::System {
            what: "read the rules",
            reason: io::Error::other(reason),
        })?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        loaded
    }

    pub(super) async fn changed(&self) {
        if self.rules.is_watched() {
            watch::changed(&self.rules, || self.seen()).await;
        } else {
            pending().await
        }
    }

    fn seen(&self) -> Fingerprint {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
