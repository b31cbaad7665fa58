//! Stops asking a server that fails, so that no request waits for it in vain.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_store::report::{self, ServerReport};
use tokio::time::Instant;

/// Whether a server is asked. Shared by all that ask it.
#[derive(Debug)]
pub(crate) struct Breaker {
    is_open: AtomicBool,
    /// Failures since the last success.
    failures: AtomicU32,
    /// Successes in all, to know what part the failures are.
    successes: AtomicU64,
    window: Mutex<Window>,
}

/// What a failure came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tripped {
    /// The breaker opened now.
    Now,
    /// It did not, or was open.
    Not,
}

/// The failures of the current second.
#[derive(Debug)]
struct Window {
    began: Instant,
    failures: u64,
    /// The successes there were when it began.
    successes_before: u64,
    /// When the state changed last.
    changed: Instant,
    /// How often it opened.
    opened: u64,
    /// How often in a row it opened soon after it had closed.
    relapses: u32,
    /// What opened it, or what somebody found who looked since.
    fault: Option<Arc<str>>,
}

/// So many failures in a row open it. A stalled server fails all calls of a moment at once.
pub(crate) const IN_A_ROW: u32 = 5;

/// So many failures within a window open it, if they are half of all calls: a server that fails now and
/// then without failing in a row.
pub(crate) const IN_A_WINDOW: u64 = 20;

const WINDOW: Duration = Duration::from_secs(1);

/// A server that fails again within this time after it was back was not: it is given longer each time.
const RELAPSE: Duration = Duration::from_secs(1);

// === impl Breaker ===

impl Breaker {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            is_open: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            successes: AtomicU64::new(0),
            window: Mutex::new(Window {
                began: now,
                failures: 0,
                successes_before: 0,
                changed: now,
                opened: 0,
                relapses: 0,
                fault: None,
            }),
        }
    }

    /// Whether the server is not to be asked.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Adds how it is to a report.
    pub(crate) fn add_to(&self, report: &mut ServerReport) {
        let window = self.window();
        report.opened = window.opened;
        if self.is_open() {
            report.breaker = report::Breaker::Open;
            report.fault.clone_from(&window.fault);
        }
    }

    /// How often in a row the server failed again as soon as it was asked again.
    pub(crate) fn relapses(&self) -> u32 {
        self.window().relapses
    }

    /// So many calls were answered in time.
    #[inline]
    pub(crate) fn succeeded(&self, calls: u64) {
        self.successes.fetch_add(calls, Ordering::Relaxed);
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// So many calls failed in a way that another call would too.
    pub(crate) fn failed(&self, calls: usize, now: Instant, reason: &dyn fmt::Display) -> Tripped {
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let before = self.failures.fetch_add(calls, Ordering::Relaxed);
        let in_a_row = before.saturating_add(calls);
        let mut window = self.window();
        if now.duration_since(window.began) >= WINDOW {
            window.began = now;
            window.failures = 0;
            window.successes_before = self.successes.load(Ordering::Relaxed);
        }
        window.failures += u64::from(calls);
        let successes = self.successes.load(Ordering::Relaxed) - window.successes_before;
        let often = window.failures >= IN_A_WINDOW && window.failures >= successes;
        if (in_a_row < IN_A_ROW && !often) || self.is_open() {
            return Tripped::Not;
        }
        self.open(&mut window, now, reason);
        Tripped::Now
    }

    /// The server is known not to be there, whoever found out.
    pub(crate) fn trip(&self, now: Instant, reason: &dyn fmt::Display) {
        let mut window = self.window();
        if !self.is_open() {
            self.open(&mut window, now, reason);
        }
    }

    fn open(&self, window: &mut Window, now: Instant, reason: &dyn fmt::Display) {
        let is_relapse = window.opened > 0 && now.duration_since(window.changed) < RELAPSE;
        window.relapses = if is_relapse { window.relapses + 1 } else { 0 };
        window.changed = now;
        window.opened += 1;
        window.fault = Some(reason.to_string().into());
        self.is_open.store(true, Ordering::Release);
    }

    /// The server is not back, for this reason.
    pub(crate) fn still_fails(&self, reason: &dyn fmt::Display) {
        self.window().fault = Some(reason.to_string().into());
    }

    /// The server is back. Says how long it was not asked.
    pub(crate) fn close(&self, now: Instant) -> Duration {
        let mut window = self.window();
        let open_for = now.duration_since(window.changed);
        window.changed = now;
        window.began = now;
        window.failures = 0;
        window.successes_before = self.successes.load(Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
        self.is_open.store(false, Ordering::Release);
        open_for
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        // No panic can happen while it is held.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> (Breaker, Instant) {
        let now = crate::client::time::now();
        (Breaker::new(now), now)
    }

    fn fail(breaker: &Breaker, calls: usize, now: Instant) -> Tripped {
        breaker.failed(calls, now, &"it failed")
    }

    #[test]
    fn failures_in_a_row_open_it_once() {
        let (breaker, now) = breaker();
        assert_eq!(fail(&breaker, 4, now), Tripped::Not);
        assert!(!breaker.is_open());
        assert_eq!(fail(&breaker, 1, now), Tripped::Now);
        assert!(breaker.is_open());
        assert_eq!(fail(&breaker, 9, now), Tripped::Not, "it is open");
        let mut report = ServerReport::default();
        breaker.add_to(&mut report);
        assert_eq!(report.breaker, report::Breaker::Open);
        assert_eq!(
            (report.opened, report.fault.as_deref()),
            (1, Some("it failed"))
        );
        breaker.still_fails(&"it does so in another way");
        breaker.add_to(&mut report);
        assert_eq!(report.fault.as_deref(), Some("it does so in another way"));
        assert_eq!(breaker.close(now + WINDOW), WINDOW);
        assert!(!breaker.is_open());
        assert_eq!(fail(&breaker, 4, now + WINDOW), Tripped::Not, "it forgets");
    }

    #[test]
    fn a_server_that_fails_again_at_once_has_a_relapse() {
        let (breaker, mut now) = breaker();
        for (calm, relapses) in [
            (RELAPSE, 0),
            (RELAPSE / 2, 1),
            (RELAPSE / 2, 2),
            (RELAPSE, 0),
        ] {
            now += calm;
            assert_eq!(fail(&breaker, 5, now), Tripped::Now);
            assert_eq!(breaker.relapses(), relapses);
            now += RELAPSE * 2;
            breaker.close(now);
        }
    }

    #[test]
    fn a_success_between_them_counts() {
        let (breaker, now) = breaker();
        for _ in 0..4 {
            assert_eq!(fail(&breaker, 4, now), Tripped::Not);
            breaker.succeeded(10);
        }
        assert!(
            !breaker.is_open(),
            "there were fewer failures than successes"
        );
    }

    #[test]
    fn half_of_the_calls_of_a_second_open_it() {
        let (breaker, now) = breaker();
        for _ in 0..4 {
            assert_eq!(fail(&breaker, 4, now), Tripped::Not);
            breaker.succeeded(4);
        }
        assert_eq!(fail(&breaker, 4, now), Tripped::Now);
    }

    #[test]
    fn failures_of_another_second_are_forgotten() {
        let (breaker, mut now) = breaker();
        for _ in 0..20 {
            assert_eq!(fail(&breaker, 4, now), Tripped::Not);
            breaker.succeeded(1);
            now += WINDOW;
        }
        assert!(!breaker.is_open());
    }
}
