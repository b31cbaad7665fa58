//! Counts of responses, one set for each thread.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

/// The origin of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An upstream.
    Upstream,
    /// The gateway itself: denials, errors, redirects.
    Gateway,
}

/// The responses of one thread. Only that thread writes, so no addition needs to be atomic.
#[derive(Debug, Default)]
pub(crate) struct ResponseCounts([[AtomicU64; 5]; 2]);

// === impl Origin ===

impl Origin {
    /// The value of the metrics label `origin`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Upstream => "upstream",
            Self::Gateway => "gateway",
        }
    }
}

// === impl ResponseCounts ===

impl ResponseCounts {
    /// Counts a response.
    pub(crate) fn add(&self, origin: Origin, status: StatusCode) {
        // Statuses are 100 to 999; those above 599 count as 5xx.
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        let count = &self.0[origin as usize][class];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The counts of one origin, from 1xx to 5xx.
    pub(crate) fn get(&self, origin: Origin) -> [u64; 5] {
        let counts = &self.0[origin as usize];
        counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}
