//! The clocks of what is shown: when a span began, how old a count is, when a line was logged. Nothing is decided by them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The time since the epoch.
pub(crate) fn since_epoch() -> Duration {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is shown, nothing is decided by it"
    )]
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// The present, for the time between two log lines.
pub(crate) fn now() -> Instant {
    Instant::now()
}
