//! A circuit breaker for one server: stops calls to a server that fails, so that no request waits for it in vain.
//!
//! ```text
//!            a link saw two deadlines of silence, or two failures in a row,
//!            or at least half of the calls of half a second failed,
//!            or for 200 ms every call was sent on to other servers and answered by none
//!   CLOSED ───────────────────────────────────────────────────────────────► OPEN
//!     ▲                                                                      │
//!     ├───── a probe was answered in time ◄──────────────────────────────────┤
//!     └───── opened by silence: a connection got all replies it waited for ◄─┘
//! ```
//!
//! Links count their own silence and failures in a row (`link/blame.rs`): two connections that are cut at one
//! moment are one failure each, not two in a row.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_store::report::{self, ServerReport};
use tokio::time::Instant;

/// A circuit breaker. Shared by all connections to the server.
#[derive(Debug)]
pub(crate) struct Breaker {
    is_open: AtomicBool,
    /// Calls that were answered in time, ever.
    answered: AtomicU64,
    state: Mutex<BreakerState>,
}

/// The reason for which a breaker opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenCause {
    /// The server sent nothing. Its connections may still be good.
    Silence,
    /// The server is gone, cannot serve, or is too slow.
    Failure,
    /// The server of a Cluster sends calls on, and no other answers them. A probe finds nothing wrong with it.
    Misdirection,
}

/// The effect of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tripped {
    /// The breaker opened now.
    Now,
    /// It did not, or was open.
    Not,
}

#[derive(Debug)]
struct BreakerState {
    /// The first failure of the current window, and the number of failures in it.
    began: Instant,
    failures: u64,
    /// The answered calls when the window began.
    answered_before: u64,
    /// The answered calls when it last closed.
    answered_at_close: u64,
    /// The last change between open and closed.
    changed: Instant,
    cause: OpenCause,
    /// The number of times that it opened.
    opened: u64,
    /// The number of times in a row that it opened soon after it had closed.
    relapses: u32,
    /// The fault that opened it, or that the last probe found.
    fault: Option<Arc<str>>,
    misdirection: Option<Misdirection>,
}

/// A time in which calls were sent on in vain, and none was answered.
#[derive(Clone, Copy, Debug)]
struct Misdirection {
    began: Instant,
    /// The answered calls when it began.
    answered: u64,
}

/// At least this many failures within a window open it, if they are half of all calls and the window has lasted
/// for half its time: a server that is slow or fails now and then, and not one late batch.
const FAILURES: u64 = 5;

const WINDOW: Duration = Duration::from_secs(1);

/// A server that fails again this soon after it was back was not back: it is given longer each time. One that answered
/// calls and then stalls again was back: stalls may follow each other closely, and each ends with its first answer.
const RELAPSE: Duration = Duration::from_millis(200);

/// A misdirection that lasts for this long opens it. The slots are learnt again every 100 ms, and the keys of a slot
/// that moves are on their way for milliseconds, so neither is the reason then.
const MISDIRECTION: Duration = Duration::from_millis(200);

// === impl Breaker ===

impl Breaker {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            is_open: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            state: Mutex::new(BreakerState {
                began: now,
                failures: 0,
                answered_before: 0,
                answered_at_close: 0,
                changed: now,
                cause: OpenCause::Failure,
                opened: 0,
                relapses: 0,
                fault: None,
                misdirection: None,
            }),
        }
    }

    /// Whether no call may be made.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Adds its state to a report.
    pub(crate) fn add_to(&self, report: &mut ServerReport) {
        let state = self.state();
        report.opened = state.opened;
        if self.is_open() {
            report.breaker = report::Breaker::Open;
            report.fault.clone_from(&state.fault);
        }
    }

    /// The number of times in a row that the server failed as soon as it was used again.
    pub(crate) fn relapses(&self) -> u32 {
        self.state().relapses
    }

    /// Counts calls that were answered in time.
    #[inline]
    pub(crate) fn succeeded(&self, calls: u64) {
        self.answered.fetch_add(calls, Ordering::Relaxed);
    }

    /// The number of calls that were answered in time, on any connection.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Counts calls that failed in a way that others would too.
    pub(crate) fn failed(&self, calls: usize, now: Instant, reason: &dyn fmt::Display) -> Tripped {
        let mut state = self.state();
        let answered = self.answered();
        if state.failures == 0 || now.duration_since(state.began) >= WINDOW {
            state.begin_window(now, answered);
        }
        state.failures += u64::try_from(calls).unwrap_or(u64::MAX);
        let is_half = state.failures >= FAILURES.max(answered - state.answered_before);
        if is_half && now.duration_since(state.began) >= WINDOW / 2 {
            self.open(&mut state, now, OpenCause::Failure, reason)
        } else {
            Tripped::Not
        }
    }

    /// Counts a call that the server sent on, and that no other server answered.
    pub(crate) fn misdirected(&self, now: Instant, reason: &dyn fmt::Display) -> Tripped {
        let mut state = self.state();
        let answered = self.answered();
        let misdirection = match state.misdirection {
            Some(misdirection) if misdirection.answered == answered => misdirection,
            _ => Misdirection {
                began: now,
                answered,
            },
        };
        state.misdirection = Some(misdirection);
        if now.duration_since(misdirection.began) >= MISDIRECTION {
            return self.open(&mut state, now, OpenCause::Misdirection, reason);
        }
        drop(state);
        self.failed(1, now, reason)
    }

    /// Ends a misdirection: another server answered a call that this one had sent on.
    pub(crate) fn directed(&self) {
        self.state().misdirection = None;
    }

    /// Opens it.
    pub(crate) fn trip(
        &self,
        now: Instant,
        cause: OpenCause,
        reason: &dyn fmt::Display,
    ) -> Tripped {
        self.open(&mut self.state(), now, cause, reason)
    }

    fn open(
        &self,
        state: &mut BreakerState,
        now: Instant,
        cause: OpenCause,
        reason: &dyn fmt::Display,
    ) -> Tripped {
        if self.is_open() {
            return Tripped::Not;
        }
        let has_answered = self.answered() > state.answered_at_close;
        let is_soon = now.duration_since(state.changed) < RELAPSE;
        let is_relapse = match cause {
            OpenCause::Failure => is_soon,
            OpenCause::Silence => is_soon && !has_answered,
            // The probe cannot tell that it is over, so only an answer can.
            OpenCause::Misdirection => state.cause == cause && !has_answered,
        };
        let is_relapse = state.opened > 0 && is_relapse;
        state.relapses = if is_relapse { state.relapses + 1 } else { 0 };
        state.changed = now;
        state.cause = cause;
        state.opened += 1;
        state.fault = Some(reason.to_string().into());
        self.is_open.store(true, Ordering::Release);
        Tripped::Now
    }

    /// Keeps the reason for which the last probe failed.
    pub(crate) fn still_fails(&self, reason: &dyn fmt::Display) {
        self.state().fault = Some(reason.to_string().into());
    }

    /// Closes it. Returns the time for which it was open; `None` if it was closed already.
    pub(crate) fn close(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        self.shut(&mut state, now)
    }

    /// Closes it if it opened because the server was silent, and only then: a connection got all the replies that
    /// it waited for. Returns the time for which it was open.
    pub(crate) fn close_after_silence(&self, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        match state.cause {
            OpenCause::Silence => self.shut(&mut state, now),
            OpenCause::Failure | OpenCause::Misdirection => None,
        }
    }

    fn shut(&self, state: &mut BreakerState, now: Instant) -> Option<Duration> {
        if !self.is_open() {
            return None;
        }
        let open_for = now.duration_since(state.changed);
        state.changed = now;
        let answered = self.answered();
        state.answered_at_close = answered;
        state.begin_window(now, answered);
        self.is_open.store(false, Ordering::Release);
        Some(open_for)
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        // No panic can happen while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl BreakerState ===

impl BreakerState {
    fn begin_window(&mut self, now: Instant, answered: u64) {
        self.began = now;
        self.failures = 0;
        self.answered_before = answered;
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

    fn trip(breaker: &Breaker, cause: OpenCause, now: Instant) -> Tripped {
        breaker.trip(now, cause, &"it failed")
    }

    #[test]
    fn it_opens_once_and_tells_the_fault() {
        let (breaker, now) = breaker();
        assert_eq!(trip(&breaker, OpenCause::Failure, now), Tripped::Now);
        assert!(breaker.is_open());
        assert_eq!(trip(&breaker, OpenCause::Silence, now), Tripped::Not);
        let mut report = ServerReport::default();
        breaker.add_to(&mut report);
        assert_eq!(report.breaker, report::Breaker::Open);
        assert_eq!(
            (report.opened, report.fault.as_deref()),
            (1, Some("it failed"))
        );
        breaker.still_fails(&"it fails in another way");
        breaker.add_to(&mut report);
        assert_eq!(report.fault.as_deref(), Some("it fails in another way"));
        assert_eq!(breaker.close(now + WINDOW), Some(WINDOW));
        assert!(!breaker.is_open());
        assert_eq!(breaker.close(now + WINDOW), None);
    }

    #[test]
    fn late_replies_close_it_only_if_silence_opened_it() {
        let (breaker, now) = breaker();
        for (cause, open_for) in [
            (OpenCause::Silence, Some(WINDOW)),
            (OpenCause::Failure, None),
        ] {
            assert_eq!(trip(&breaker, cause, now), Tripped::Now);
            assert_eq!(breaker.close_after_silence(now + WINDOW), open_for);
        }
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
            assert_eq!(trip(&breaker, OpenCause::Failure, now), Tripped::Now);
            assert_eq!(breaker.relapses(), relapses);
            now += RELAPSE * 2;
            breaker.close(now);
        }
    }

    /// Each of these stalls made the next probe later, up to a second.
    #[test]
    fn a_server_that_answered_before_it_stalled_again_has_no_relapse() {
        for (cause, answered, relapses) in [
            (OpenCause::Silence, 1, 0),
            (OpenCause::Silence, 0, 7),
            (OpenCause::Failure, 1, 7),
        ] {
            let (breaker, mut now) = breaker();
            for _ in 0..8 {
                assert_eq!(trip(&breaker, cause, now), Tripped::Now);
                now += RELAPSE * 2;
                breaker.close(now);
                breaker.succeeded(answered);
                now += RELAPSE / 2;
            }
            assert_eq!(breaker.relapses(), relapses, "{cause:?} {answered}");
        }
    }

    #[test]
    fn calls_that_are_sent_on_in_vain_open_it_unless_some_are_answered() {
        let misdirect = |breaker: &Breaker, now| breaker.misdirected(now, &"sent on and on");
        let (breaker, now) = breaker();
        for millis in [0, 50, 100, 199] {
            let now = now + Duration::from_millis(millis);
            assert_eq!(misdirect(&breaker, now), Tripped::Not);
        }
        let mut now = now + MISDIRECTION;
        assert_eq!(misdirect(&breaker, now), Tripped::Now);
        assert_eq!(breaker.close_after_silence(now), None);
        // The first call after a probe closed it opens it again, however long after, and it is probed ever later.
        for relapses in 1..=3 {
            breaker.close(now);
            now += WINDOW * 7;
            assert_eq!(misdirect(&breaker, now), Tripped::Now);
            assert_eq!(breaker.relapses(), relapses);
        }
        breaker.close(now);
        breaker.succeeded(1);
        assert_eq!(misdirect(&breaker, now), Tripped::Not);
        now += MISDIRECTION / 2;
        breaker.directed();
        assert_eq!(misdirect(&breaker, now), Tripped::Not);
        assert_eq!(misdirect(&breaker, now + MISDIRECTION / 2), Tripped::Not);
        assert_eq!(misdirect(&breaker, now + MISDIRECTION), Tripped::Now);
        assert_eq!(breaker.relapses(), 0);
    }

    #[test]
    fn one_late_batch_does_not_open_it_however_large() {
        let (breaker, mut now) = breaker();
        now += WINDOW * 3;
        assert_eq!(fail(&breaker, 10_000, now), Tripped::Not);
        assert_eq!(fail(&breaker, 10_000, now + WINDOW / 3), Tripped::Not);
    }

    #[test]
    fn half_of_the_calls_of_half_a_second_open_it() {
        for (answered, expected) in [(5, Tripped::Now), (7, Tripped::Not)] {
            let (breaker, now) = breaker();
            assert_eq!(fail(&breaker, 4, now), Tripped::Not);
            breaker.succeeded(answered);
            assert_eq!(fail(&breaker, 2, now + WINDOW / 2), expected, "{answered}");
        }
    }

    #[test]
    fn failures_of_another_window_are_forgotten() {
        let (breaker, mut now) = breaker();
        for _ in 0..20 {
            assert_eq!(fail(&breaker, 4, now), Tripped::Not);
            now += WINDOW;
        }
        assert!(!breaker.is_open());
    }
}
