//! The calls that wait on one connection, in the order their replies will come.

use std::collections::VecDeque;
use std::mem;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tidegate_store::StoreError;
use tokio::time::Instant;

use crate::client::time::Span;
use crate::client::unclaimed::Unclaimed;

/// Calls that wait, and answers that nobody has fetched yet.
#[derive(Debug, Default)]
pub(super) struct Slots {
    calls: Vec<Slot>,
    free: Vec<Ticket>,
    order: VecDeque<Expected>,
    /// No call is due before this; one that was due then may have been answered since.
    due: Option<Instant>,
}

/// Names a call to whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(usize);

/// How a call ended, before anything is read into the reply.
pub(super) type Outcome = Result<Bytes, StoreError>;

/// What a reply that arrived was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// A call that waited since then.
    Awaited { since: Instant },
    /// Nobody: its caller gave up, or never wanted it.
    Skipped { since: Instant },
    /// Nothing was asked.
    Unasked,
}

/// Calls that became late at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LateCalls {
    pub(super) count: usize,
    /// The time at which the first of them was made, and its timeout.
    pub(super) first: Instant,
    pub(super) timeout: Duration,
    /// The time at which the last of them was made.
    pub(super) last: Instant,
}

#[derive(Debug)]
enum Slot {
    Free,
    /// In flight.
    Waiting(Option<Waker>),
    /// In flight, and its caller has gone.
    Abandoned,
    /// Not in flight any more.
    Over(Outcome),
}

/// A reply that will come.
#[derive(Debug)]
struct Expected {
    /// For whom, if anybody still waits.
    ticket: Option<Ticket>,
    asked: Instant,
    deadline: Instant,
    /// How many, from this one on, come as one.
    joined: usize,
    /// Who is to hear of it if nobody waits for it.
    unclaimed: Option<Unclaimed>,
}

// === impl Slots ===

impl Slots {
    /// How many replies are still to come.
    pub(super) fn in_flight(&self) -> usize {
        self.order.len()
    }

    /// By when the reply that is to come next should have come.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.order.front().map(|expected| expected.deadline)
    }

    /// When to look for calls whose time is up.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Adds a call.
    pub(super) fn expect(&mut self, span: Span, unclaimed: Option<Unclaimed>) -> Ticket {
        let deadline = span.deadline;
        let ticket = self.put(Slot::Waiting(None));
        self.order.push_back(Expected {
            ticket: Some(ticket),
            asked: span.began,
            deadline,
            joined: 1,
            unclaimed,
        });
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        ticket
    }

    /// Adds a call whose reply nobody wants.
    pub(super) fn expect_nothing(&mut self, span: Span) {
        self.order.push_back(Expected {
            ticket: None,
            asked: span.began,
            deadline: span.deadline,
            joined: 1,
            unclaimed: None,
        });
    }

    /// Has the replies to the last `calls` come as one.
    pub(super) fn join(&mut self, calls: usize) {
        let first = self.order.len().saturating_sub(calls);
        if let Some(first) = self.order.get_mut(first) {
            first.joined = calls;
        }
    }

    /// How many calls the next reply is for.
    pub(super) fn next_joined(&self) -> usize {
        self.order.front().map_or(1, |expected| expected.joined)
    }

    /// Hands over the reply that came next.
    pub(super) fn arrived(&mut self, frame: Bytes) -> Arrived {
        let Some(expected) = self.order.pop_front() else {
            return Arrived::Unasked;
        };
        let unclaimed = expected
            .unclaimed
            .map(|unclaimed| (unclaimed, frame.clone()));
        match expected.ticket {
            Some(ticket) if self.end(ticket, Ok(frame)) => Arrived::Awaited {
                since: expected.asked,
            },
            _ => {
                if let Some((unclaimed, frame)) = unclaimed {
                    unclaimed.arrived(frame);
                }
                Arrived::Skipped {
                    since: expected.asked,
                }
            }
        }
    }

    /// Ends all calls whose time is up; those whose callers gave up earlier are late all the same. Their replies
    /// may still come.
    pub(super) fn sweep(&mut self, now: Instant) -> Option<LateCalls> {
        let mut late: Option<LateCalls> = None;
        let mut due: Option<Instant> = None;
        for place in 0..self.order.len() {
            let expected = &mut self.order[place];
            let (asked, deadline) = (expected.asked, expected.deadline);
            if expected.ticket.is_some() && deadline > now {
                due = Some(due.map_or(deadline, |due| due.min(deadline)));
                continue;
            }
            let Some(ticket) = expected.ticket.take() else {
                continue;
            };
            let timeout = deadline.duration_since(asked);
            self.end(ticket, Err(StoreError::Timeout { after: timeout }));
            let calls = late.get_or_insert(LateCalls {
                count: 0,
                first: asked,
                timeout,
                last: asked,
            });
            calls.count += 1;
            calls.last = asked;
        }
        self.due = due;
        late
    }

    /// Ends all calls in flight, for no reply will come, and says how many waited.
    pub(super) fn fail(&mut self, error: &StoreError) -> usize {
        self.due = None;
        let mut ended = 0;
        while let Some(expected) = self.order.pop_front() {
            if let Some(ticket) = expected.ticket {
                ended += usize::from(self.end(ticket, Err(error.clone())));
            }
        }
        ended
    }

    /// Whether anybody still waits.
    pub(super) fn is_awaited(&self) -> bool {
        let waits = |ticket: Ticket| matches!(self.calls[ticket.0], Slot::Waiting(_));
        self.order
            .iter()
            .any(|expected| expected.ticket.is_some_and(waits))
    }

    /// Fetches the outcome of a call, after which its ticket is void.
    pub(super) fn poll(&mut self, ticket: Ticket, waker: &Waker) -> Poll<Outcome> {
        match &mut self.calls[ticket.0] {
            Slot::Waiting(Some(known)) => {
                known.clone_from(waker);
                Poll::Pending
            }
            Slot::Waiting(none) => {
                *none = Some(waker.clone());
                Poll::Pending
            }
            slot => match mem::replace(slot, Slot::Free) {
                Slot::Over(outcome) => {
                    self.free.push(ticket);
                    Poll::Ready(outcome)
                }
                _ => unreachable!("a ticket is void once its outcome was fetched"),
            },
        }
    }

    /// Takes note that nobody will fetch the outcome, after which the ticket is void.
    pub(super) fn abandon(&mut self, ticket: Ticket) {
        let slot = &mut self.calls[ticket.0];
        match slot {
            Slot::Waiting(_) => *slot = Slot::Abandoned,
            Slot::Over(_) => self.release(ticket),
            Slot::Abandoned | Slot::Free => {}
        }
    }

    /// Ends one call that is in flight; `false` if its caller has gone.
    fn end(&mut self, ticket: Ticket, outcome: Outcome) -> bool {
        let before = mem::replace(&mut self.calls[ticket.0], Slot::Over(outcome));
        let Slot::Waiting(waker) = before else {
            self.release(ticket);
            return false;
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    fn put(&mut self, slot: Slot) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.calls[ticket.0] = slot;
            ticket
        } else {
            self.calls.push(slot);
            Ticket(self.calls.len() - 1)
        }
    }

    fn release(&mut self, ticket: Ticket) {
        self.calls[ticket.0] = Slot::Free;
        self.free.push(ticket);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(5);

    fn span() -> Span {
        Span::new(PATIENCE)
    }

    fn expect(slots: &mut Slots, span: Span) -> Ticket {
        slots.expect(span, None)
    }

    fn poll(slots: &mut Slots, ticket: Ticket) -> Poll<Outcome> {
        slots.poll(ticket, Waker::noop())
    }

    fn frame(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn replies_go_to_calls_in_order_whoever_gave_up() {
        let mut slots = Slots::default();
        let (first, gone, last) = (
            expect(&mut slots, span()),
            expect(&mut slots, span()),
            expect(&mut slots, span()),
        );
        slots.expect_nothing(span());
        slots.abandon(gone);
        assert_eq!(slots.in_flight(), 4);
        assert!(matches!(slots.arrived(frame("1")), Arrived::Awaited { .. }));
        assert!(matches!(slots.arrived(frame("2")), Arrived::Skipped { .. }));
        assert!(poll(&mut slots, last).is_pending());
        assert!(matches!(slots.arrived(frame("3")), Arrived::Awaited { .. }));
        assert!(matches!(slots.arrived(frame("4")), Arrived::Skipped { .. }));
        assert_eq!(slots.arrived(frame("5")), Arrived::Unasked);
        assert_eq!(poll(&mut slots, last), Poll::Ready(Ok(frame("3"))));
        assert_eq!(poll(&mut slots, first), Poll::Ready(Ok(frame("1"))));
        assert_eq!(
            slots.free.len(),
            slots.calls.len(),
            "nothing is left behind"
        );
    }

    #[test]
    fn a_call_whose_time_is_up_leaves_its_reply_to_be_skipped() {
        let mut slots = Slots::default();
        let (early, late) = (span(), Span::new(PATIENCE * 10));
        let (hasty, patient) = (expect(&mut slots, early), expect(&mut slots, late));
        assert_eq!(slots.due(), Some(early.deadline));
        let swept = LateCalls {
            count: 1,
            first: early.began,
            timeout: PATIENCE,
            last: early.began,
        };
        assert_eq!(slots.sweep(early.deadline), Some(swept));
        assert_eq!(slots.due(), Some(late.deadline));
        let timeout = StoreError::Timeout { after: PATIENCE };
        assert_eq!(poll(&mut slots, hasty), Poll::Ready(Err(timeout)));
        // Its place is taken by another call before its reply comes.
        let next = expect(&mut slots, late);
        assert!(matches!(slots.arrived(frame("1")), Arrived::Skipped { .. }));
        assert!(matches!(slots.arrived(frame("2")), Arrived::Awaited { .. }));
        assert_eq!(poll(&mut slots, patient), Poll::Ready(Ok(frame("2"))));
        assert!(poll(&mut slots, next).is_pending());
    }

    #[test]
    fn a_call_is_late_though_its_caller_has_gone() {
        let mut slots = Slots::default();
        let span = span();
        let (gone, _waits) = (expect(&mut slots, span), expect(&mut slots, span));
        slots.abandon(gone);
        assert_eq!(slots.due(), Some(span.deadline));
        assert_eq!(slots.sweep(span.deadline).map(|late| late.count), Some(2));
        assert_eq!(slots.sweep(span.deadline), None, "they are late once");
        assert_eq!(slots.in_flight(), 2, "their replies may still come");
    }

    #[test]
    fn a_lost_connection_ends_all_calls_in_flight_and_spares_those_answered() {
        let mut slots = Slots::default();
        let (answered, lost, gone) = (
            expect(&mut slots, span()),
            expect(&mut slots, span()),
            expect(&mut slots, span()),
        );
        slots.arrived(frame("1"));
        slots.abandon(gone);
        assert!(slots.is_awaited());
        assert_eq!(slots.fail(&StoreError::Open), 1);
        assert!(!slots.is_awaited());
        assert_eq!(slots.in_flight(), 0);
        assert_eq!(poll(&mut slots, lost), Poll::Ready(Err(StoreError::Open)));
        slots.abandon(answered);
        assert_eq!(
            slots.free.len(),
            slots.calls.len(),
            "nothing is left behind"
        );
    }

    #[test]
    fn a_reply_that_nobody_waits_for_is_heard_of_unless_it_is_an_error() {
        let mut slots = Slots::default();
        let heard = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&heard);
        let unclaimed = Unclaimed::new(move |reply| {
            assert_eq!(reply.integer(), Ok(1));
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut next = || slots.expect(span(), Some(unclaimed.clone()));
        let (claimed, gone, _late, _refused) = (next(), next(), next(), next());
        slots.abandon(gone);
        slots.arrived(frame(":1\r\n"));
        assert_eq!(heard.load(Ordering::Relaxed), 0);
        slots.arrived(frame(":1\r\n"));
        assert_eq!(heard.load(Ordering::Relaxed), 1);
        slots.sweep(span().deadline + PATIENCE);
        slots.arrived(frame(":1\r\n"));
        slots.arrived(frame("-ERR\r\n"));
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert_eq!(poll(&mut slots, claimed), Poll::Ready(Ok(frame(":1\r\n"))));
    }
}
