//! Tells a server that is late from a thread of our own that stood still.
//!
//! A busy machine stops this thread for tens of milliseconds. When it goes on, its timers ring at once, though the
//! replies may lie in the socket, or the calls may not have been sent yet. So the socket is read once more before
//! anything is given up, and the server gets as much longer as the thread stood still.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::Instant;

/// Decides whether something that is due is to be acted upon.
#[derive(Debug, Default)]
pub(super) struct Watch {
    second_look: Option<Arc<SecondLook>>,
    /// The end of the time that the server gets because our thread stood still.
    grace: Option<Instant>,
}

/// A turn of the runtime in which it looks at all sockets.
#[derive(Debug)]
struct SecondLook {
    is_over: AtomicBool,
    task: Waker,
}

/// A timer that rings this much too late was kept by our own thread: its clock has steps of a millisecond.
const OWN_STALL: Duration = Duration::from_millis(3);

/// The longest that the server gets for it.
const LONGEST_GRACE: Duration = Duration::from_millis(50);

// === impl Watch ===

impl Watch {
    /// The time at which to act upon something that is due.
    pub(super) fn with_grace(&self, due: Instant) -> Instant {
        self.grace.map_or(due, |grace| grace.max(due))
    }

    /// Nothing is due.
    pub(super) fn rest(&mut self) {
        self.second_look = None;
    }

    /// Is ready once the runtime has looked at all sockets; the connection is to be read in between.
    pub(super) fn look_again(&mut self, cx: &Context<'_>) -> Poll<()> {
        match &self.second_look {
            Some(look) if look.is_over.load(Ordering::Relaxed) => {
                self.second_look = None;
                return Poll::Ready(());
            }
            Some(_) => {}
            None => {
                let look = Arc::new(SecondLook {
                    is_over: AtomicBool::new(false),
                    task: cx.waker().clone(),
                });
                let waker = Waker::from(Arc::clone(&look));
                // Whoever yields is woken after the runtime has looked at its sockets. A wake of the task itself
                // would not do: others wake it, too.
                let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker));
                self.second_look = Some(look);
            }
        }
        Poll::Pending
    }

    /// Whether our own thread stood still until long after `due`: then the server gets that much longer, once.
    pub(super) fn is_excused(&mut self, due: Instant, now: Instant) -> bool {
        let stood_still = now.duration_since(due);
        let had_grace = self.grace.take() == Some(due);
        let is_excused = stood_still >= OWN_STALL && !had_grace;
        if is_excused {
            self.grace = Some(now + stood_still.min(LONGEST_GRACE));
        }
        is_excused
    }
}

// === impl SecondLook ===

impl Wake for SecondLook {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::time::now;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn a_timer_that_rings_in_time_excuses_nobody() {
        let (mut watch, due) = (Watch::default(), now());
        assert!(!watch.is_excused(due, due + MILLI * 2));
        assert_eq!(watch.with_grace(due), due);
    }

    #[test]
    fn the_server_gets_as_much_longer_as_the_thread_stood_still_once() {
        for (stood_still, grace) in [(MILLI * 7, MILLI * 7), (MILLI * 900, LONGEST_GRACE)] {
            let (mut watch, due) = (Watch::default(), now());
            let late = due + stood_still;
            assert!(watch.is_excused(due, late));
            let due = watch.with_grace(due);
            assert_eq!(due, late + grace);
            assert!(!watch.is_excused(due, due + stood_still), "not for ever");
            let due = due + MILLI * 100;
            assert!(
                watch.is_excused(due, due + stood_still),
                "but once for each"
            );
        }
    }

    #[tokio::test]
    async fn a_second_look_is_over_when_the_runtime_has_looked_at_its_sockets() {
        let mut watch = Watch::default();
        let mut polls = 0;
        std::future::poll_fn(|cx| {
            polls += 1;
            // As another task might.
            cx.waker().wake_by_ref();
            watch.look_again(cx)
        })
        .await;
        assert!(polls >= 2);
    }
}
