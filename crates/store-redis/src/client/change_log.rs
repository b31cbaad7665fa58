//! A bound on the lines of the log about servers that fail and come back.
//!
//! A Cluster can name ever new servers that do not answer, or send calls around for ever, so that the circuit
//! breakers of its servers open again and again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Decides which changes of the servers of a client are logged: a burst, and then one every ten seconds.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    /// The time from which on a whole burst is logged again.
    rested_at: Mutex<Instant>,
}

/// The changes that are logged however close they are: more than the masters of most Clusters.
const BURST: u32 = 10;

/// The time between two changes that are logged after a burst.
const INTERVAL: Duration = Duration::from_secs(10);

// === impl ChangeLog ===

impl ChangeLog {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            rested_at: Mutex::new(now),
        }
    }

    /// Returns true if a change is to be logged now.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        // No panic can happen while it is held.
        let mut rested_at = self
            .rested_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let next = (*rested_at).max(now) + INTERVAL;
        let is_admitted = next.duration_since(now) <= INTERVAL * BURST;
        if is_admitted {
            *rested_at = next;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_one_change_is_logged_every_ten_seconds() {
        let now = crate::client::time::now();
        let log = ChangeLog::new(now);
        let n_admitted = |now, changes: u32| (0..changes).filter(|_| log.admits(now)).count();
        assert_eq!(n_admitted(now, 100), 10);
        assert_eq!(n_admitted(now + Duration::from_secs(9), 100), 0);
        assert_eq!(n_admitted(now + INTERVAL, 100), 1);
        assert_eq!(n_admitted(now + INTERVAL * 20, 100), 10);
    }
}
