//! The runtime of the thread that a command runs on.

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// A runtime for this thread alone.
pub(crate) fn start() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|reason| Failure::System {
        what: "start the runtime",
        reason,
    })
}
