//! Requests that go on until their limits are decided.
//!
//! A client that leaves drops its request. If that happens while a store decides, the charge is made all the same, and nobody learns of it
//! and can refund it. So such a request goes on without its client, until it is decided, and then refunds its charges.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::task::spawn_local;

/// The wait of one request for the decision of its limits.
#[derive(Debug, Default)]
pub(crate) struct DecisionWait {
    is_waiting: Cell<bool>,
    is_abandoned: Cell<bool>,
}

/// A request that goes on in a task of its own if it is dropped while it waits for its decision.
pub(crate) struct DecidedRequest<F: Future<Output: 'static> + 'static> {
    /// There until it is dropped.
    future: Option<Pin<Box<F>>>,
    wait: Rc<DecisionWait>,
}

// === impl DecisionWait ===

impl DecisionWait {
    /// Notes that a decision is waited for.
    pub(crate) fn begin(&self) {
        self.is_waiting.set(true);
    }

    /// Notes that it is there.
    pub(crate) fn end(&self) {
        self.is_waiting.set(false);
    }

    /// True if the client has left meanwhile.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.get()
    }
}

// === impl DecidedRequest ===

impl<F: Future<Output: 'static> + 'static> DecidedRequest<F> {
    /// A request that notes its wait in `wait`.
    pub(crate) const fn new(future: Pin<Box<F>>, wait: Rc<DecisionWait>) -> Self {
        Self {
            future: Some(future),
            wait,
        }
    }
}

impl<F: Future<Output: 'static> + 'static> Future for DecidedRequest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            // It is there until the end.
            None => Poll::Pending,
        }
    }
}

impl<F: Future<Output: 'static> + 'static> Drop for DecidedRequest<F> {
    fn drop(&mut self) {
        if self.wait.is_waiting.get()
            && let Some(future) = self.future.take()
        {
            self.wait.is_abandoned.set(true);
            drop(spawn_local(future));
        }
    }
}
