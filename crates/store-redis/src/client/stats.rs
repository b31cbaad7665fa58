//! What became of the calls to a server, counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_store::report::{BOUNDS, ServerReport};

/// Counts of one link. One thread writes nearly all of them, so they cost next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// Calls that were sent.
    pub(crate) calls: Count,
    /// Calls whose time was up.
    pub(crate) timeouts: Count,
    /// Calls whose connection was lost, or could not be made.
    pub(crate) lost: Count,
    /// Calls to which the server said no.
    pub(crate) refused: Count,
    /// Times that something came back that is no reply.
    pub(crate) nonsense: Count,
    /// Calls that were not sent, for too many waited.
    pub(crate) overload: Count,
    /// Calls that the server sent on to another.
    pub(crate) redirected: Count,
    pub(crate) reconnects: Count,
    pub(crate) writes: Count,
    latencies: [Count; BOUNDS.len() + 1],
    latency_nanos: Count,
}

/// A number that goes up.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

// === impl Stats ===

impl Stats {
    /// Writes down how long one call took.
    #[inline]
    pub(crate) fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // The bounds are the powers of two in microseconds, and a bucket has its upper bound in it.
        let above = nanos.saturating_sub(1) / 1_000;
        let bits = u64::BITS - above.leading_zeros();
        let bucket = usize::try_from(bits).unwrap_or(usize::MAX);
        self.latencies[bucket.min(BOUNDS.len())].add(1);
        self.latency_nanos.add(nanos);
    }

    /// Adds these to a report.
    pub(crate) fn add_to(&self, report: &mut ServerReport) {
        report.calls += self.calls.get();
        report.writes += self.writes.get();
        report.reconnects += self.reconnects.get();
        report.redirected += self.redirected.get();
        let errors = &mut report.errors;
        errors.timeout += self.timeouts.get();
        errors.connection += self.lost.get();
        errors.reply += self.refused.get();
        errors.protocol += self.nonsense.get();
        errors.overload += self.overload.get();
        let latencies = &mut report.latencies;
        for (sum, count) in latencies.buckets.iter_mut().zip(&self.latencies) {
            *sum += count.get();
        }
        let nanos = self.latency_nanos.get();
        latencies.sum_nanos = latencies.sum_nanos.saturating_add(nanos);
    }
}

// === impl Count ===

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Adds a number of things that fit memory.
    #[inline]
    pub(crate) fn add_len(&self, more: usize) {
        self.add(u64::try_from(more).unwrap_or(u64::MAX));
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_within_its_bound() {
        let bucket = |nanos| {
            let stats = Stats::default();
            stats.took(Duration::from_nanos(nanos));
            let mut report = ServerReport::default();
            stats.add_to(&mut report);
            let buckets = report.latencies.buckets;
            buckets.iter().position(|&count| count == 1).unwrap()
        };
        for (place, (bound, _)) in BOUNDS.iter().enumerate() {
            assert_eq!(bucket(*bound), place);
            assert_eq!(bucket(*bound + 1), place + 1);
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BOUNDS.len());
    }
}
