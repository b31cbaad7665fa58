//! Tasks of HTTP/2 streams, on the thread of their connection.
//!
//! A client may grant an HTTP/2 stream no window and keep the connection alive otherwise. hyper then polls the response's body no more, so that no
//! timeout of the body fires and the upstream's connection is held for ever. The task of a stream therefore ends when a piece of the body has
//! waited too long for the client.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
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

/// The progress of one response, as far as its body sees it.
#[derive(Debug, Default)]
struct StreamProgress {
    /// The time at which the last piece was handed over; `None` while the body is asked for the next one.
    handed_over: Cell<Option<Instant>>,
}

tokio::task_local! {
    static PROGRESS: Rc<StreamProgress>;
}

/// Notes that the body of a response is asked for its next piece.
pub(crate) fn piece_wanted() {
    // HTTP/1 has no such task; its writes have a timeout of their own.
    let _ = PROGRESS.try_with(|progress| progress.handed_over.set(None));
}

/// Notes that the body of a response has handed over a piece.
pub(crate) fn piece_handed_over() {
    let _ = PROGRESS.try_with(|progress| progress.handed_over.set(Some(Instant::now())));
}

// === impl StreamExecutor ===

impl<F: Future<Output = ()> + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, future: F) {
        let progress = Rc::new(StreamProgress::default());
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
    fn poll_stalled(
        &self,
        context: &mut Context<'_>,
        timer: &mut Option<Pin<Box<Sleep>>>,
        most: Duration,
    ) -> Poll<()> {
        let Some(handed_over) = self.handed_over.get() else {
            return Poll::Pending;
        };
        let deadline = handed_over + most;
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context)
    }
}
