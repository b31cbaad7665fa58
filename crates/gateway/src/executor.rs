//! Tasks of HTTP/2 connections, on the thread of their connection.

use hyper::rt::Executor;
use tokio::task::spawn_local;

/// Spawns tasks on the present thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

// === impl LocalExecutor ===

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        drop(spawn_local(future));
    }
}
