//! Log lines of events that clients can cause at any rate.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::now;

/// Limits the log lines of one kind of event by time: the first event is logged at once, later ones at most every
/// [`LogSampler::INTERVAL`], with the number of events since the last line.
#[derive(Debug, Default)]
pub struct LogSampler(Mutex<SampledEvents>);

#[derive(Debug, Default)]
struct SampledEvents {
    n_events: u64,
    logged_at: Option<Instant>,
}

// === impl LogSampler ===

impl LogSampler {
    /// Time between two lines: an operator who looks sees whether it still happens, and no client can fill a log.
    pub const INTERVAL: Duration = Duration::from_secs(10);

    /// Counts an event. If a line is due, returns the number of events since the last one, this one included.
    pub fn count(&self) -> Option<u64> {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.n_events += 1;
        let now = now();
        let is_due = (events.logged_at).is_none_or(|last| now >= last + Self::INTERVAL);
        is_due.then(|| {
            events.logged_at = Some(now);
            std::mem::take(&mut events.n_events)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_every_ten_seconds_tells_the_number_of_events() {
        let sampler = LogSampler::default();
        assert_eq!(sampler.count(), Some(1), "the first at once");
        for _ in 0..99 {
            advance(LogSampler::INTERVAL / 100).await;
            assert_eq!(sampler.count(), None);
        }
        advance(LogSampler::INTERVAL / 100).await;
        assert_eq!(sampler.count(), Some(100));
        advance(100 * LogSampler::INTERVAL).await;
        assert_eq!(sampler.count(), Some(1));
    }
}
