//! The health of one target.
//!
//! Two judgements stand side by side. Active: health checks take a target down and up. Passive: after some failures in a row of
//! clients' requests, a target is ejected for a while; then it is used again, and the next failure ejects it at once. A target
//! that is down gets no request. Ejected targets get requests only when all that are not down are ejected, because a guess that
//! says that everything is broken is more likely wrong than right, and those that have failed on all others.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tokio::time::Instant;
use tracing::{info, warn};

use super::timer::now;
use crate::config::{HealthCheck, PassiveHealth};

/// The health of one target, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct TargetHealth {
    is_down: AtomicBool,
    /// Failed requests in a row.
    failures: AtomicU32,
    /// The end of the ejection, in milliseconds since [`START`]; 0 if there is none.
    ejected_until: AtomicU64,
}

/// The checks of one target in a row that had the same result.
#[derive(Debug, Default)]
pub(super) struct CheckStreak {
    passed: u32,
    failed: u32,
}

/// The start of all times of ejections.
static START: LazyLock<Instant> = LazyLock::new(now);

// === impl TargetHealth ===

impl TargetHealth {
    /// True if health checks took it down.
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// True if clients' requests failed so often that it is left out.
    pub(super) fn is_ejected(&self, now: Instant) -> bool {
        let until = self.ejected_until.load(Ordering::Relaxed);
        until != 0 && millis(now) < until
    }

    /// Takes note of a response.
    pub(super) fn succeed(&self, target: &str) {
        if self.failures.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.failures.store(0, Ordering::Relaxed);
        if self.ejected_until.swap(0, Ordering::Relaxed) != 0 {
            info!(target, "target responds again");
        }
    }

    /// Takes note of a connection that failed or broke, or of a timeout.
    pub(super) fn fail(&self, target: &str, settings: &PassiveHealth, now: Instant) {
        let failures = self
            .failures
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        if settings.failures == 0 || failures < settings.failures {
            return;
        }
        let until = millis(now + settings.eject_for).max(1);
        if self.ejected_until.swap(until, Ordering::Relaxed) == 0 {
            let seconds = settings.eject_for.as_secs();
            warn!(
                target,
                failures, seconds, "target keeps failing; left out while others are healthy"
            );
        }
    }

    /// Takes note of a health check.
    pub(super) fn check(
        &self,
        target: &str,
        settings: &HealthCheck,
        streak: &mut CheckStreak,
        result: Result<(), String>,
    ) {
        match result {
            Ok(()) => {
                streak.failed = 0;
                streak.passed = streak.passed.saturating_add(1);
                if streak.passed >= settings.healthy_after
                    && self.is_down.swap(false, Ordering::Relaxed)
                {
                    info!(target, "target is healthy again");
                }
            }
            Err(reason) => {
                streak.passed = 0;
                streak.failed = streak.failed.saturating_add(1);
                if streak.failed >= settings.unhealthy_after
                    && !self.is_down.swap(true, Ordering::Relaxed)
                {
                    let failures = streak.failed;
                    warn!(
                        target,
                        failures, reason, "target is unhealthy: health checks failed"
                    );
                }
            }
        }
    }

    /// Forgets what health checks found, because there are none any more.
    pub(super) fn forget_checks(&self) {
        self.is_down.store(false, Ordering::Relaxed);
    }
}

fn millis(time: Instant) -> u64 {
    let since_start = time.saturating_duration_since(*START);
    u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX)
}
