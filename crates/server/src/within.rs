//! A bound on the time that a future takes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

/// Returns the output of `future`, or `None` after `most`. One that is ready at once costs no timer. It is taken
/// pinned: moved in, a large one would be copied whole.
pub(crate) async fn within<T>(
    most: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => timeout(most, future).await.ok(),
    }
}
