//! A bound on the time that a future takes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// Returns the output of `future`, or `None` after `most`. One that is ready at once costs no timer. It is taken
/// pinned: moved in, a large one would be copied whole.
pub(crate) async fn within<T>(
    most: Duration,
    future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    Some(timed_within(most, future).await?.0)
}

/// The same with the time that was waited: none if it was ready at once.
pub(crate) async fn timed_within<T>(
    most: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<(T, Duration)> {
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Some((output, Duration::ZERO)),
        Poll::Pending => {
            let began = Instant::now();
            let output = timeout(most, future).await.ok()?;
            Some((output, began.elapsed()))
        }
    }
}
