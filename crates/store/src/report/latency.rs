//! How long calls take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets in nanoseconds, each with the text that a metric shows in seconds. A
/// call over loopback takes some tens of microseconds; above a second nobody waits.
pub const BOUNDS: [(u64, &str); 16] = [
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (150_000, "0.00015"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (1_500_000, "0.0015"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (1_000_000_000, "1"),
];

/// The bounds, and what lies above the last.
const N_BUCKETS: usize = BOUNDS.len() + 1;

/// How long calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// How many were within each bound and above the one before; the last are above all.
    pub buckets: [u64; N_BUCKETS],
    /// All of them together, in nanoseconds.
    pub sum_nanos: u64,
}

/// Latencies as they are written down, by any thread.
#[derive(Debug, Default)]
pub struct Stopwatches {
    buckets: [AtomicU64; N_BUCKETS],
    sum_nanos: AtomicU64,
}

// === impl Latencies ===

impl Latencies {
    /// How many calls there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::wrapping_add)
    }

    /// Adds those of another place.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum = sum.wrapping_add(more);
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(other.sum_nanos);
    }
}

// === impl Stopwatches ===

impl Stopwatches {
    /// Writes down one call.
    #[inline]
    pub fn add(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let above = BOUNDS.iter().take_while(|(bound, _)| nanos > *bound);
        // Relaxed: nothing is read by these counts.
        self.buckets[above.count()].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// What was written down so far.
    pub fn read(&self) -> Latencies {
        Latencies {
            buckets: self.buckets.each_ref().map(|it| it.load(Ordering::Relaxed)),
            sum_nanos: self.sum_nanos.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_bucket_that_bounds_it() {
        let stopwatches = Stopwatches::default();
        for nanos in [0, 25_000, 25_001, 1_000_000_000, 1_000_000_001] {
            stopwatches.add(Duration::from_nanos(nanos));
        }
        let mut latencies = stopwatches.read();
        assert_eq!(latencies.buckets[..3], [2, 1, 0]);
        assert_eq!(latencies.buckets[15..], [1, 1]);
        assert_eq!(latencies.sum_nanos, 2_000_050_002);
        latencies.add(&stopwatches.read());
        assert_eq!(latencies.count(), 10);
    }

    #[test]
    fn bounds_rise_and_say_what_they_are() {
        for pair in BOUNDS.windows(2) {
            assert!(pair[0].0 < pair[1].0);
        }
        for (nanos, text) in BOUNDS {
            let seconds: f64 = text.parse().unwrap();
            assert_eq!(
                Duration::from_secs_f64(seconds),
                Duration::from_nanos(nanos)
            );
        }
    }
}
