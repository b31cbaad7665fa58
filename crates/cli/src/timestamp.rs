//! Times for people.

use std::time::{Duration, UNIX_EPOCH};

/// A time since 1970, such as `2026-11-15T23:05:00Z`. One that no calendar has is 1970.
pub(crate) fn since_1970(at: Duration) -> String {
    tidegate_server::rfc3339(UNIX_EPOCH.checked_add(at).unwrap_or(UNIX_EPOCH))
}
