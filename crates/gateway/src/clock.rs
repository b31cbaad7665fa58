//! The wall clock by which tokens expire. Limits go by the store's.

use std::time::{SystemTime, UNIX_EPOCH};

/// The seconds since 1970.
pub fn unix_seconds() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the expiry of a token is a date; no limit is decided by it"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
