//! The timeout of calls to one server, learnt from the time that its replies take.
//!
//! The timeout is a multiple of the recent 99.9th percentile, between two bounds. A reply that arrives after its
//! caller gave up is a sample like any other: without it, a server that is always slower than the timeout would
//! never be learnt. The time that connecting took is the first sample, and as long as there are fewer than 1,000
//! samples their 99.9th percentile is the largest of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The shortest and the longest timeout of calls to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeoutBounds {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

/// The timeout of calls to one server, shared by all its connections.
#[derive(Debug)]
pub(crate) struct AdaptiveTimeout {
    bounds: TimeoutBounds,
    nanos: AtomicU64,
    recent: Mutex<RecentLatencies>,
}

/// Samples of one connection that were not added to the server's yet.
#[derive(Debug)]
pub(crate) struct LatencySamples {
    buckets: Vec<u8>,
    added: Instant,
}

/// Latencies of the last 10 to 20 seconds.
#[derive(Debug)]
struct RecentLatencies {
    current: Histogram,
    previous: Histogram,
    began: Instant,
}

/// Counts by latency: eight buckets for each power of two, in microseconds.
#[derive(Debug)]
struct Histogram([u32; BUCKETS]);

/// From a microsecond to more than a second.
const BUCKETS: usize = 160;

/// The timeout is this many times the 99.9th percentile: the tail of a busy machine goes on beyond it.
const MULTIPLE: u32 = 3;

/// One sample in this many may be above the percentile.
const ONE_IN: u64 = 1_000;

/// The age at which samples begin to be forgotten.
const GENERATION: Duration = Duration::from_secs(10);

/// A connection adds its samples when there are this many, or after this long.
const MOST_SAMPLES: usize = 64;
const LONGEST_HELD: Duration = Duration::from_millis(20);

// === impl AdaptiveTimeout ===

impl AdaptiveTimeout {
    /// A timeout that is as long as may be until something is known.
    pub(crate) fn new(bounds: TimeoutBounds, now: Instant) -> Self {
        Self {
            bounds,
            nanos: AtomicU64::new(nanos(bounds.max)),
            recent: Mutex::new(RecentLatencies {
                current: Histogram::default(),
                previous: Histogram::default(),
                began: now,
            }),
        }
    }

    /// The timeout of a call that is made now.
    #[inline]
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// The longest that it can be.
    pub(crate) fn max(&self) -> Duration {
        self.bounds.max
    }

    /// Adds one latency.
    pub(crate) fn add(&self, latency: Duration, now: Instant) {
        self.add_buckets(&[bucket_of(latency)], now);
    }

    fn add_buckets(&self, buckets: &[u8], now: Instant) {
        // No panic can happen while it is held.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.add(buckets, now);
        let timeout = recent.percentile() * MULTIPLE;
        let timeout = timeout.clamp(self.bounds.min, self.bounds.max);
        self.nanos.store(nanos(timeout), Ordering::Relaxed);
    }
}

// === impl LatencySamples ===

impl LatencySamples {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            buckets: Vec::with_capacity(MOST_SAMPLES),
            added: now,
        }
    }

    /// Takes one more latency.
    #[inline]
    pub(crate) fn push(&mut self, latency: Duration) {
        self.buckets.push(bucket_of(latency));
    }

    /// Adds all samples to those of the server, if that is due.
    #[inline]
    pub(crate) fn add_to(&mut self, timeout: &AdaptiveTimeout, now: Instant) {
        let is_due =
            self.buckets.len() >= MOST_SAMPLES || now.duration_since(self.added) >= LONGEST_HELD;
        if is_due && !self.buckets.is_empty() {
            timeout.add_buckets(&self.buckets, now);
            self.buckets.clear();
            self.added = now;
        }
    }
}

// === impl RecentLatencies ===

impl RecentLatencies {
    fn add(&mut self, buckets: &[u8], now: Instant) {
        if now.duration_since(self.began) >= GENERATION {
            // Kept until there are new ones, so that a server which was idle is not unknown again.
            std::mem::swap(&mut self.current, &mut self.previous);
            self.current = Histogram::default();
            self.began = now;
        }
        for bucket in buckets {
            let count = &mut self.current.0[usize::from(*bucket)];
            *count = count.saturating_add(1);
        }
    }

    /// The 99.9th percentile; the largest sample while there are fewer than 1,000.
    fn percentile(&self) -> Duration {
        let counts = self.current.0.iter().zip(&self.previous.0);
        let counts = counts.map(|(new, old)| u64::from(*new) + u64::from(*old));
        let may_be_above = counts.clone().sum::<u64>() / ONE_IN;
        let mut above = 0;
        for (bucket, count) in counts.enumerate().rev() {
            above += count;
            if above > may_be_above {
                return upper_bound(bucket);
            }
        }
        Duration::ZERO
    }
}

// === impl Histogram ===

impl Default for Histogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

fn bucket_of(latency: Duration) -> u8 {
    let micros = latency.as_micros().max(1);
    let power = micros.ilog2();
    // The three bits after the leading one.
    let eighth = (micros << 3 >> power) & 7;
    let bucket = u128::from(power) * 8 + eighth;
    u8::try_from(bucket.min(BUCKETS as u128 - 1)).unwrap_or(u8::MAX)
}

fn upper_bound(bucket: usize) -> Duration {
    let (power, eighth) = (bucket / 8, bucket as u64 % 8);
    Duration::from_nanos(((8 + eighth + 1) << power) * 1_000 / 8)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::time::now;

    const BOUNDS: TimeoutBounds = TimeoutBounds {
        min: Duration::from_millis(5),
        max: Duration::from_millis(50),
    };

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Adds so many samples of a latency, one a millisecond.
    fn add(timeout: &AdaptiveTimeout, now: &mut Instant, count: usize, latency: Duration) {
        for _ in 0..count {
            *now += millis(1);
            timeout.add(latency, *now);
        }
    }

    #[test]
    fn a_latency_is_in_the_bucket_whose_bound_is_at_most_an_eighth_above_it() {
        for micros in [1, 2, 7, 8, 9, 100, 999, 6_000, 20_000, 999_999] {
            let bound = upper_bound(usize::from(bucket_of(Duration::from_micros(micros))));
            let (low, high) = (micros * 1_000, micros * 1_000 * 9 / 8 + 1_000);
            assert!((low..=high).contains(&nanos(bound)), "{micros} {bound:?}");
        }
        assert_eq!(usize::from(bucket_of(Duration::MAX)), BUCKETS - 1);
    }

    #[test]
    fn it_is_the_longest_until_the_handshake_is_known() {
        let mut now = now();
        let timeout = AdaptiveTimeout::new(BOUNDS, now);
        assert_eq!(timeout.get(), BOUNDS.max);
        add(&timeout, &mut now, 1, millis(6));
        assert!((millis(18)..millis(21)).contains(&timeout.get()));
    }

    #[test]
    fn it_stays_between_its_bounds() {
        for (latency, expected) in [
            (Duration::from_micros(100), BOUNDS.min),
            (millis(20), BOUNDS.max),
            (millis(900), BOUNDS.max),
        ] {
            let mut now = now();
            let timeout = AdaptiveTimeout::new(BOUNDS, now);
            add(&timeout, &mut now, 2_000, latency);
            assert_eq!(timeout.get(), expected, "{latency:?}");
        }
    }

    #[test]
    fn one_in_a_thousand_does_not_count_and_two_do() {
        let mut now = now();
        let timeout = AdaptiveTimeout::new(BOUNDS, now);
        add(&timeout, &mut now, 1_999, millis(1));
        add(&timeout, &mut now, 1, millis(12));
        assert_eq!(timeout.get(), BOUNDS.min);
        add(&timeout, &mut now, 2, millis(12));
        assert!(timeout.get() > millis(30));
    }

    #[test]
    fn what_was_slow_is_forgotten_after_two_generations() {
        let mut now = now();
        let timeout = AdaptiveTimeout::new(BOUNDS, now);
        add(&timeout, &mut now, 100, millis(30));
        assert_eq!(timeout.get(), BOUNDS.max);
        add(&timeout, &mut now, 20_000, millis(1));
        assert_eq!(timeout.get(), BOUNDS.min);
    }

    #[test]
    fn a_pause_without_calls_forgets_nothing() {
        let mut now = now();
        let timeout = AdaptiveTimeout::new(BOUNDS, now);
        add(&timeout, &mut now, 100, millis(6));
        now += GENERATION * 100;
        add(&timeout, &mut now, 1, millis(1));
        assert!(timeout.get() > millis(17));
    }
}
