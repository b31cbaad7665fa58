//! Time as upstreams need it: timeouts of waits, which decide no limit.
//!
//! A request sets several deadlines and nearly never meets one. So timers are kept armed and handed from request to request: a
//! timer that fires before the deadline of its present user is armed again for that deadline. The timer wheel is touched about once
//! for a timeout's length, not once for a request.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Timers of one thread that no request uses at present, most of them armed.
#[derive(Debug, Default)]
pub(super) struct TimerPool {
    spare: RefCell<Vec<Pin<Box<Sleep>>>>,
}

/// A deadline of one request.
#[derive(Debug)]
pub(super) struct DeadlineTimer {
    /// Armed for the deadline or earlier.
    sleep: Option<Pin<Box<Sleep>>>,
    deadline: Instant,
    pool: Rc<TimerPool>,
}

/// Spare timers kept; beyond it they are dropped. A timer may keep the memory of the task that used it last until it fires.
const MAX_SPARE: usize = 512;

/// The present.
pub(super) fn now() -> Instant {
    Instant::now()
}

// === impl TimerPool ===

impl TimerPool {
    pub(super) fn deadline(self: &Rc<Self>, deadline: Instant) -> DeadlineTimer {
        let sleep = self.spare.borrow_mut().pop();
        DeadlineTimer {
            sleep: Some(sleep.unwrap_or_else(|| Box::pin(sleep_until(deadline)))),
            deadline,
            pool: Rc::clone(self),
        }
    }
}

// === impl DeadlineTimer ===

impl DeadlineTimer {
    pub(super) fn set(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(super) fn is_set_to(&self) -> Instant {
        self.deadline
    }

    /// Ready when the deadline has passed.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(sleep) = &mut self.sleep else {
            return Poll::Pending;
        };
        loop {
            if sleep.deadline() > self.deadline {
                sleep.as_mut().reset(self.deadline);
            }
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(self.deadline);
        }
    }
}

impl Drop for DeadlineTimer {
    fn drop(&mut self) {
        let mut spare = self.pool.spare.borrow_mut();
        if spare.len() < MAX_SPARE
            && let Some(sleep) = self.sleep.take()
        {
            spare.push(sleep);
        }
    }
}
