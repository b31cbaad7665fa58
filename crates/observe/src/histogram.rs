//! How long decisions take.

use std::time::Duration;

use crate::counter::Counter;

/// The upper bounds of the buckets in nanoseconds, each with the text that a metric shows in seconds.
/// A decision in memory takes a fraction of a microsecond, one over the network some hundreds.
pub(crate) const BOUNDS: [(u64, &str); 17] = [
    (500, "0.0000005"),
    (1_000, "0.000001"),
    (2_500, "0.0000025"),
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
];

/// The bounds, and what lies above the last.
const N_BUCKETS: usize = BOUNDS.len() + 1;

/// A histogram that one thread writes.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; N_BUCKETS],
    sum_nanos: Counter,
}

/// The sum of several histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// How many were within each bound and above the one before; the last are above all.
    pub(crate) buckets: [u64; N_BUCKETS],
    pub(crate) sum_nanos: u64,
}

// === impl Histogram ===

impl Histogram {
    #[inline]
    pub(crate) fn add(&self, took: Duration) {
        let nanos = nanos(took);
        // The bounds are few and most times are within the first: nothing is faster than to look.
        let above = BOUNDS.iter().take_while(|(bound, _)| nanos > *bound);
        self.buckets[above.count()].add(1);
        self.sum_nanos.add(nanos);
    }
}

// === impl Times ===

impl Times {
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum = sum.wrapping_add(bucket.get());
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(histogram.sum_nanos.get());
    }
}

/// Saturates after 584 years.
#[inline]
fn nanos(span: Duration) -> u64 {
    span.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(span.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_bucket_that_bounds_it() {
        let histogram = Histogram::default();
        for nanos in [0, 500, 501, 100_000_000, 100_000_001] {
            histogram.add(Duration::from_nanos(nanos));
        }
        histogram.add(Duration::MAX);
        let mut times = Times::default();
        times.add(&histogram);
        assert_eq!(times.buckets[..3], [2, 1, 0]);
        assert_eq!(times.buckets[16..], [1, 2]);
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
