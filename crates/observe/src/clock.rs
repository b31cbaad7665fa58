//! The wall clock of what is shown: when a span began, how old a count is. Nothing is decided by it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
