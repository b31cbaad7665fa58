//! Reloads: how often the rules changed, and the subjects whose last reload failed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A group of files that a running server reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadSubject {
    /// The rules.
    Rules,
    /// The settings of the gateway and of identities.
    Settings,
}

/// The subjects whose last reload failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailedReloads([bool; ReloadSubject::ALL.len()]);

/// How often rules were put in force, and how often they were refused.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// When rules were last put in force, in milliseconds since the epoch.
    last_millis: AtomicU64,
    /// The version of the rules in force, if they have numbers.
    version: Mutex<Option<u64>>,
    /// Set from a reload that failed to the next that succeeds.
    is_failing: [AtomicBool; ReloadSubject::ALL.len()],
}

// === impl ReloadSubject ===

impl ReloadSubject {
    pub(crate) const ALL: [Self; 2] = [Self::Rules, Self::Settings];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Settings => "settings",
        }
    }
}

// === impl FailedReloads ===

impl FailedReloads {
    /// Returns true if the last reload of `subject` failed.
    pub fn contains(self, subject: ReloadSubject) -> bool {
        self.0[subject as usize]
    }
}

// === impl Reloads ===

impl Reloads {
    /// Counts rules that were put in force.
    pub(crate) fn replace_rules(&self, now: Duration, version: Option<u64>) {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = version;
        self.last_millis.store(millis, Ordering::Relaxed);
        self.succeeded.fetch_add(1, Ordering::Release);
        self.succeed(ReloadSubject::Rules);
    }

    pub(crate) fn succeed(&self, subject: ReloadSubject) {
        self.is_failing[subject as usize].store(false, Ordering::Relaxed);
    }

    pub(crate) fn fail(&self, subject: ReloadSubject) {
        self.is_failing[subject as usize].store(true, Ordering::Relaxed);
        if subject == ReloadSubject::Rules {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The subjects whose last reload failed.
    pub(crate) fn failing(&self) -> FailedReloads {
        FailedReloads(
            self.is_failing
                .each_ref()
                .map(|it| it.load(Ordering::Relaxed)),
        )
    }

    /// The version of the rules in force, if they have numbers.
    pub(crate) fn version(&self) -> Option<u64> {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn succeeded(&self) -> u64 {
        self.succeeded.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// When rules were last put in force, since the epoch.
    pub(crate) fn last(&self) -> Option<Duration> {
        let has_any = self.succeeded.load(Ordering::Acquire) > 0;
        has_any.then(|| Duration::from_millis(self.last_millis.load(Ordering::Relaxed)))
    }
}
