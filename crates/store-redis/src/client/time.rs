//! How long a call has waited. No decision of a limit is made by this: the time of those is Redis' own.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// One timer for all that one task waits for.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    armed: Option<Pin<Box<Sleep>>>,
    is_armed: bool,
}

/// From when to when a call may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) began: Instant,
    pub(crate) deadline: Instant,
}

// === impl Timer ===

impl Timer {
    /// Is ready once `due` has passed, perhaps too early and never too late; without `due`, never.
    ///
    /// It is set anew only for something earlier: what is due later is seen when it rings. So a busy link
    /// sets it once in the time that a call may take.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due else {
            return Poll::Pending;
        };
        let timer = self
            .armed
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if !self.is_armed || due < timer.deadline() {
            timer.as_mut().reset(due);
            self.is_armed = true;
        }
        let rung = timer.as_mut().poll(cx);
        if rung.is_ready() {
            self.is_armed = false;
        }
        rung
    }
}

// === impl Span ===

impl Span {
    /// So long, from now on.
    pub(crate) fn new(patience: Duration) -> Self {
        let began = now();
        Self {
            began,
            deadline: began + patience,
        }
    }

    /// The time from its start to its end.
    pub(crate) fn length(self) -> Duration {
        self.deadline.duration_since(self.began)
    }

    /// Whether it has passed.
    pub(crate) fn is_over(self) -> bool {
        now() >= self.deadline
    }
}

/// The time now, by the clock of the runtime, which tests can move.
#[inline]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits a while: others do not tell when they are ready.
pub(crate) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}
