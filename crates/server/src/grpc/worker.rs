//! Answering calls without a task for each.
//!
//! A worker is a future that answers the calls of a connection, one after the other. The connection polls
//! its worker where it accepts: a call that needs no waiting is answered then and there, and neither a
//! task nor memory is taken for it. A worker that must wait becomes a task and leaves when its call is
//! done; the connection takes on another.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tidegate_limiter::Store;
use tokio::task::spawn_local;

use super::call::{self, Call, Office};

/// Answers calls for one connection.
pub(super) struct Worker {
    state: Rc<Cell<State>>,
    work: Pin<Box<dyn Future<Output = ()>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A call is being answered.
    Busy,
    /// There are no more calls.
    Idle,
    /// The worker is to take no further call.
    Leaving,
}

// === impl Worker ===

impl Worker {
    pub(super) fn new<S: Store + 'static>(office: Rc<Office<S>>) -> Self {
        let state = Rc::new(Cell::new(State::Idle));
        let work = Box::pin(work(Rc::clone(&state), office));
        Self { state, work }
    }

    /// Answers the calls that lie in the office until none is left, or until one has to wait.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.state.set(State::Busy);
        // It never ends unless it is to leave.
        let _ = self.work.as_mut().poll(context);
        match self.state.get() {
            State::Idle => Poll::Ready(()),
            State::Busy | State::Leaving => Poll::Pending,
        }
    }

    /// Lets the worker finish its call as a task.
    pub(super) fn leave(self) {
        self.state.set(State::Leaving);
        spawn_local(self.work);
    }
}

async fn work<S: Store>(state: Rc<Cell<State>>, office: Rc<Office<S>>) {
    while let Some(call) = poll_fn(|_| next(&state, &office)).await {
        call::answer(call, &office).await;
    }
}

fn next<S>(state: &Cell<State>, office: &Office<S>) -> Poll<Option<Call>> {
    if state.get() == State::Leaving {
        return Poll::Ready(None);
    }
    let call = office.calls.borrow_mut().pop_front();
    if call.is_some() {
        return Poll::Ready(call);
    }
    // Whoever brings in calls polls; there is nobody to wake.
    state.set(State::Idle);
    Poll::Pending
}
