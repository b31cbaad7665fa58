//! Tasks of HTTP/2 streams, on the thread of their connection.
//!
//! A client may grant an HTTP/2 stream no window and keep the connection alive otherwise. Its response is then not polled any more, so that no
//! timeout of the body fires and the upstream's connection is held for ever. The task of a stream therefore ends when its client has taken
//! nothing of a piece for too long. A client that takes a few bytes now and then is slow, not stuck.
//!
//! A task that has ended cannot reset its stream any more. So the body of a response ends only when its client has granted the window for the
//! last byte: see `response.rs`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::task::spawn_local;
use tokio::time::{Instant, Sleep, sleep_until};

/// Spawns the tasks of streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamExecutor {
    /// The time a client may take nothing of a response that waits for it.
    pub(crate) write_timeout: Duration,
}

/// The progress of one response.
#[derive(Debug)]
pub(crate) struct StreamProgress {
    /// Pieces that the client has not taken to their ends.
    n_unsent: Cell<usize>,
    /// The time at which the client took something, or else had to begin.
    progress_at: Cell<Instant>,
    /// Wakes the body that waits for the last piece to be taken.
    waker: RefCell<Option<Waker>>,
}

/// A piece that the client has not taken to its end, until dropped.
#[derive(Debug)]
pub(crate) struct UnsentGuard(Rc<StreamProgress>);

tokio::task_local! {
    static PROGRESS: Rc<StreamProgress>;
}

// === impl StreamExecutor ===

impl<F: Future<Output = ()> + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, future: F) {
        let progress = Rc::new(StreamProgress::new());
        // Boxed, because an `async fn` has room for an argument that it pins twice.
        let bounded = bounded(Box::pin(future), Rc::clone(&progress), self.write_timeout);
        drop(spawn_local(PROGRESS.scope(progress, bounded)));
    }
}

/// Runs the task of a stream until it ends, or until its client has taken nothing for `most`; dropping it resets the stream.
async fn bounded(
    mut task: Pin<Box<impl Future<Output = ()>>>,
    progress: Rc<StreamProgress>,
    most: Duration,
) {
    let mut timer = None;
    poll_fn(|context| {
        if task.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        progress.poll_stalled(context, &mut timer, most)
    })
    .await;
}

// === impl StreamProgress ===

impl StreamProgress {
    fn new() -> Self {
        Self {
            n_unsent: Cell::new(0),
            progress_at: Cell::new(Instant::now()),
            waker: RefCell::default(),
        }
    }

    /// That of the stream whose task this is; `None` in HTTP/1, whose writes have a timeout of their own.
    pub(crate) fn of_this_task() -> Option<Rc<Self>> {
        PROGRESS.try_with(Rc::clone).ok()
    }

    /// Begins to send a piece.
    pub(crate) fn begin_piece(self: &Rc<Self>) -> UnsentGuard {
        if self.n_unsent.get() == 0 {
            self.progress_at.set(Instant::now());
        }
        self.n_unsent.set(self.n_unsent.get() + 1);
        UnsentGuard(Rc::clone(self))
    }

    /// Ready once the client has taken all pieces.
    pub(crate) fn poll_sent(&self, context: &Context<'_>) -> Poll<()> {
        if self.n_unsent.get() == 0 {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }

    fn poll_stalled(
        &self,
        context: &mut Context<'_>,
        timer: &mut Option<Pin<Box<Sleep>>>,
        most: Duration,
    ) -> Poll<()> {
        if self.n_unsent.get() == 0 {
            return Poll::Pending;
        }
        let deadline = self.progress_at.get() + most;
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            // The client has taken something since the timer was set.
            timer.as_mut().reset(deadline);
        }
    }
}

// === impl UnsentGuard ===

impl UnsentGuard {
    /// A guard for another piece of the same response.
    pub(crate) fn another(&self) -> Self {
        self.0.begin_piece()
    }

    /// Notes that the client takes some of the piece.
    pub(crate) fn note_progress(&self) {
        self.0.progress_at.set(Instant::now());
    }
}

impl Drop for UnsentGuard {
    fn drop(&mut self) {
        let n_unsent = self.0.n_unsent.get() - 1;
        self.0.n_unsent.set(n_unsent);
        if n_unsent == 0
            && let Some(waker) = self.0.waker.borrow_mut().take()
        {
            waker.wake();
        }
    }
}
