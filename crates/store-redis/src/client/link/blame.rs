//! Which failures of a link are the server's fault, and when they open its circuit breaker.
//!
//! Calls that become late are no proof by themselves: one batch may share a stall. The server is taken for stalled
//! when it sends nothing until two timeouts after the first late call was made, and calls of two different batches
//! became late meanwhile. Anything that it sends ends the silence.

use std::time::Duration;

use tidegate_store::StoreError;
use tokio::time::Instant;

use super::Link;
use super::slots::LateCalls;
use crate::client::breaker::OpenCause;
use crate::client::fault::ServerFault;
use crate::client::session::SessionError;
use crate::client::time::now;

/// The failures of a link since it got the last answer.
#[derive(Debug, Default)]
pub(super) struct Blame {
    silence: Option<Silence>,
    /// Connections that were lost, and batches of calls that were refused.
    failures: u32,
}

/// A time in which calls became late and the server sent nothing.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// The time at which the first late call was made.
    began: Instant,
    /// The time from which on the server is taken for stalled.
    limit: Instant,
    /// Whether calls of more than one batch became late.
    is_confirmed: bool,
    /// The calls that the server had answered on all connections when it began.
    answered: u64,
}

/// Failures in a row that open the breaker.
const IN_A_ROW: u32 = 2;

/// Calls that were made within this time are one batch.
const BATCH: Duration = Duration::from_millis(1);

// === impl Blame ===

impl Blame {
    /// The server sent something.
    pub(super) fn end_silence(&mut self) {
        self.silence = None;
    }

    /// The server answered a call.
    pub(super) fn answered(&mut self) {
        self.failures = 0;
    }

    /// Adds calls that became late at one moment; `answered` counts the answers on all connections.
    fn add_late(&mut self, late: LateCalls, answered: u64) {
        match &mut self.silence {
            // If other connections get answers, this one is at fault.
            Some(silence) if silence.answered == answered => {
                silence.is_confirmed |= late.last.duration_since(silence.began) >= BATCH;
            }
            silence => {
                *silence = Some(Silence {
                    began: late.first,
                    limit: late.first + late.timeout * 2,
                    is_confirmed: false,
                    answered,
                });
            }
        }
    }

    /// The time at which the silence will have lasted too long, if that does not depend on further calls.
    pub(super) fn silence_limit(&self) -> Option<Instant> {
        let silence = self.silence.filter(|silence| silence.is_confirmed)?;
        Some(silence.limit)
    }

    /// Whether the server is stalled. A silence that opened the breaker is over.
    fn is_stalled(&mut self, now: Instant, answered: u64) -> bool {
        let is_over = self.silence_limit().is_some_and(|limit| limit <= now);
        is_over
            && self
                .silence
                .take()
                .is_some_and(|it| it.answered == answered)
    }

    /// Adds a failure; `true` if it is one too many.
    fn add_failure(&mut self) -> bool {
        self.failures += 1;
        self.failures >= IN_A_ROW
    }
}

// === impl Link ===

impl Link {
    /// Ends the calls whose time is up, and opens the breaker if the server is stalled.
    pub(super) fn sweep(&self, now: Instant) {
        let answered = self.server.answered();
        let mut state = self.state();
        let late = state.slots.sweep(now);
        if let Some(late) = late {
            state.blame.add_late(late, answered);
        }
        let is_stalled = state.blame.is_stalled(now, answered);
        drop(state);
        let reason = &"timeout: calls were not answered in time";
        if is_stalled {
            self.server.open_breaker(now, OpenCause::Silence, reason);
        }
        if let Some(late) = late {
            self.stats.timeouts.add_len(late.count);
            self.server.failed(late.count, now, reason);
        }
    }

    /// Ends the calls whose time is up while a connection is being made, for which the server is not to blame yet.
    pub(super) fn give_up_late(&self, now: Instant) {
        let late = self.state().slots.sweep(now);
        self.stats
            .timeouts
            .add_len(late.map_or(0, |late| late.count));
    }

    /// Takes note of calls that the server refused because it cannot serve.
    pub(super) fn refused(&self, calls: usize, now: Instant, fault: &ServerFault) {
        self.stats.refused.add_len(calls);
        self.blame(calls, now, fault);
    }

    /// Ends all calls on a connection that is lost.
    pub(super) fn lost(&self, error: &SessionError) {
        let ended = self.state().fail(&StoreError::from(error.clone()));
        let count = match error {
            SessionError::NoRedis(_) | SessionError::Unasked => &self.stats.nonsense,
            SessionError::Refused(_) => &self.stats.refused,
            _ => &self.stats.lost,
        };
        count.add_len(ended);
        let is_blamed = match error {
            // It is we who ended it.
            SessionError::Renewed => false,
            // One that closed while nobody used it is no failure.
            SessionError::Closed => ended > 0,
            _ => true,
        };
        if is_blamed {
            self.blame(ended.max(1), now(), error);
        }
    }

    fn blame(&self, calls: usize, now: Instant, reason: &(dyn std::fmt::Display + Send + Sync)) {
        let is_too_much = self.state().blame.add_failure();
        if is_too_much {
            self.server.open_breaker(now, OpenCause::Failure, reason);
        }
        self.server.failed(calls, now, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(5);

    fn late(asked: Instant) -> LateCalls {
        LateCalls {
            count: 3,
            first: asked,
            timeout: TIMEOUT,
            last: asked,
        }
    }

    #[test]
    fn a_server_is_stalled_two_timeouts_after_the_first_late_call() {
        let (mut blame, began) = (Blame::default(), now());
        blame.add_late(late(began), 0);
        assert_eq!(blame.silence_limit(), None, "it may be one late batch");
        blame.add_late(late(began + TIMEOUT * 4 / 5), 0);
        assert_eq!(blame.silence_limit(), Some(began + TIMEOUT * 2));
        assert!(!blame.is_stalled(began + TIMEOUT * 2 - Duration::from_nanos(1), 0));
        assert!(blame.is_stalled(began + TIMEOUT * 2, 0));
        assert!(!blame.is_stalled(began + TIMEOUT * 3, 0), "it begins anew");
    }

    #[test]
    fn one_late_batch_is_no_stall_however_late() {
        let (mut blame, began) = (Blame::default(), now());
        blame.add_late(late(began), 0);
        blame.add_late(late(began + BATCH / 2), 0);
        assert!(!blame.is_stalled(began + TIMEOUT * 100, 0));
    }

    #[test]
    fn whatever_the_server_sends_ends_the_silence() {
        let (mut blame, began) = (Blame::default(), now());
        blame.add_late(late(began), 0);
        blame.end_silence();
        blame.add_late(late(began + TIMEOUT), 0);
        assert!(!blame.is_stalled(began + TIMEOUT * 2, 0));
    }

    #[test]
    fn a_connection_that_is_silent_alone_does_not_open_the_breaker() {
        let (mut blame, began) = (Blame::default(), now());
        for sweep in 0..10 {
            blame.add_late(late(began + TIMEOUT * sweep), u64::from(sweep));
        }
        assert!(!blame.is_stalled(began + TIMEOUT * 20, 9));
        blame.add_late(late(began), 9);
        assert!(!blame.is_stalled(began + TIMEOUT * 20, 10));
    }

    #[test]
    fn two_failures_in_a_row_are_too_many() {
        let mut blame = Blame::default();
        assert!(!blame.add_failure());
        blame.answered();
        assert!(!blame.add_failure());
        assert!(blame.add_failure());
    }
}
