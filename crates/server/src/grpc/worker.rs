//! Answering calls without a task for each.
//!
//! A worker is a future that answers the calls laid on its desk, one after the other. A connection polls
//! its worker where it accepts: a call that needs no waiting is answered then and there, and neither a
//! task nor memory is taken for it. A worker that must wait becomes a task and leaves when its call is
//! done; the connection takes on another.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tidegate_limiter::Store;
use tokio::task::spawn_local;

use super::call::{self, Call, Office};

/// Answers calls for one connection.
pub(super) struct Worker {
    desk: Rc<Desk>,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

/// Where calls are laid.
struct Desk {
    call: RefCell<Option<Call>>,
    state: Cell<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A call is being answered.
    Busy,
    /// The worker waits for a call.
    Idle,
    /// No further call will come.
    Closed,
}

// === impl Worker ===

impl Worker {
    pub(super) fn new<S: Store + 'static>(office: Rc<Office<S>>) -> Self {
        let desk = Rc::new(Desk {
            call: RefCell::new(None),
            state: Cell::new(State::Idle),
        });
        let work = Box::pin(work(Rc::clone(&desk), office));
        Self { desk, work }
    }

    /// Answers a call if that needs no waiting; else gives back the worker, who does.
    pub(super) fn answer(&mut self, call: Call, context: &mut Context<'_>) -> Poll<()> {
        self.desk.call.replace(Some(call));
        self.desk.state.set(State::Busy);
        // It never ends while its desk is open.
        let _ = self.work.as_mut().poll(context);
        match self.desk.state.get() {
            State::Idle => Poll::Ready(()),
            State::Busy | State::Closed => Poll::Pending,
        }
    }

    /// Lets the worker finish its call as a task.
    pub(super) fn leave(self) {
        self.desk.state.set(State::Closed);
        spawn_local(self.work);
    }
}

// === impl Desk ===

impl Desk {
    async fn next(&self) -> Option<Call> {
        poll_fn(|_| {
            if let Some(call) = self.call.take() {
                return Poll::Ready(Some(call));
            }
            if self.state.get() == State::Closed {
                return Poll::Ready(None);
            }
            // Whoever lays down a call polls; there is nobody to wake.
            self.state.set(State::Idle);
            Poll::Pending
        })
        .await
    }
}

async fn work<S: Store>(desk: Rc<Desk>, office: Rc<Office<S>>) {
    while let Some(call) = desk.next().await {
        call::answer(call, &office).await;
    }
}
