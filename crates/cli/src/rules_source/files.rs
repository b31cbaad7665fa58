//! Rules in files and folders.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_rules::Compiled;
use tokio::sync::Semaphore;
use tokio::time::timeout;

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
    /// Reads in a row that failed; they are tried again.
    n_failed: AtomicU32,
    /// The one read under way, which may hang with its file system.
    reading: Arc<Semaphore>,
}

/// The longest time that a read may take. Files of the largest size are read in a second.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

// === impl RuleFiles ===

impl RuleFiles {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            seen: Mutex::default(),
            n_failed: AtomicU32::new(0),
            reading: Arc::new(Semaphore::new(1)),
        }
    }

    pub(super) async fn read(&self) -> Result<Compiled, Failure> {
        let loaded = timeout(READ_TIMEOUT, self.read_files()).await;
        let loaded = loaded.unwrap_or_else(|_| Err(timed_out()));
        // Bad rules stay bad until their files change. Files that could not be read may be the same and readable soon.
        match &loaded {
            Err(Failure::Unreadable(_) | Failure::System { .. }) => {
                self.n_failed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) | Err(_) => self.n_failed.store(0, Ordering::Relaxed),
        }
        loaded
    }

    async fn read_files(&self) -> Result<Compiled, Failure> {
        // While one read hangs, another would only hang beside it.
        let turn = Arc::clone(&self.reading).acquire_owned().await;
        let rules = self.rules.clone();
        // The look comes before the reading, so that a change while they are read is seen as one.
        let look = move || {
            let seen = Fingerprint::of(&rules.watched());
            let loaded = rules_files::load(&rules);
            drop(turn);
            Ok((seen, loaded))
        };
        let (seen, loaded) = apart(look).await?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        loaded
    }

    pub(super) async fn changed(&self) {
        if !self.rules.is_watched() {
            return pending().await;
        }
        let watched = self.rules.watched();
        let n_failed = self.n_failed.load(Ordering::Relaxed);
        watch::changed_or_due(&watched, || self.seen(), n_failed).await;
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

fn timed_out() -> Failure {
    let seconds = READ_TIMEOUT.as_secs();
    Failure::System {
        what: "read the rules",
        reason: io::Error::other(format!(
            "their files do not answer within {seconds} seconds"
        )),
    }
}
