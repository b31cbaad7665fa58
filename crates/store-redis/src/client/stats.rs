//! What became of the calls to a server, counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of one link. One thread writes nearly all of them, so they cost next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) calls: Count,
    pub(crate) timeouts: Count,
    pub(crate) lost: Count,
    pub(crate) refused: Count,
    pub(crate) faulty: Count,
    pub(crate) overloaded: Count,
    pub(crate) connects: Count,
    pub(crate) writes: Count,
    pub(crate) bytes_out: Count,
    pub(crate) bytes_in: Count,
    latency: [Count; Latency::BUCKETS],
    latency_micros: Count,
}

/// A number that goes up.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

/// The counts of a server, summed up over all its connections, since the client was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that were sent.
    pub calls: u64,
    /// Calls whose time was up.
    pub timeouts: u64,
    /// Calls whose connection was lost, or could not be made.
    pub lost: u64,
    /// Calls that the server refused because it cannot serve: it loads, is read-only, wants a password.
    pub refused: u64,
    /// Calls that the server found faulty, or whose answer made no sense.
    pub faulty: u64,
    /// Calls that were not sent, for too many waited.
    pub overloaded: u64,
    /// Calls that were not sent, for the breaker was open.
    pub not_asked: u64,
    /// Calls that the server sent on to another.
    pub redirected: u64,
    /// Connections that were made.
    pub connects: u64,
    /// Writes to connections: calls / writes is the depth of the pipeline.
    pub writes: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// How long calls took that were answered in time.
    pub latency: Latency,
}

/// How long calls took, by powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many took less than two to the power of the place, in microseconds, and no less than the
    /// place before says. The last one has all that took longer, too.
    pub buckets: [u64; Self::BUCKETS],
    /// How long all of them took together.
    pub total: Duration,
}

// === impl Stats ===

impl Stats {
    /// Writes down how long one call took.
    #[inline]
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bits = u64::BITS - micros.leading_zeros();
        let bucket = usize::try_from(bits).unwrap_or(usize::MAX);
        self.latency[bucket.min(Latency::BUCKETS - 1)].add(1);
        self.latency_micros.add(micros);
    }

    /// Adds these to `sum`.
    pub(crate) fn add_to(&self, sum: &mut Counts) {
        sum.calls += self.calls.get();
        sum.timeouts += self.timeouts.get();
        sum.lost += self.lost.get();
        sum.refused += self.refused.get();
        sum.faulty += self.faulty.get();
        sum.overloaded += self.overloaded.get();
        sum.connects += self.connects.get();
        sum.writes += self.writes.get();
        sum.bytes_out += self.bytes_out.get();
        sum.bytes_in += self.bytes_in.get();
        for (sum, count) in sum.latency.buckets.iter_mut().zip(&self.latency) {
            *sum += count.get();
        }
        sum.latency.total += Duration::from_micros(self.latency_micros.get());
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

// === impl Latency ===

impl Latency {
    /// The last bucket begins at 4 seconds.
    pub const BUCKETS: usize = 24;

    /// How many calls were measured.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What all calls in a bucket took less than; the last bucket has no bound.
    pub fn bound(bucket: usize) -> Option<Duration> {
        let power = u32::try_from(bucket).ok()?;
        (bucket + 1 < Self::BUCKETS).then(|| Duration::from_micros(1 << power))
    }

    /// What at least the given part of the calls took less than, in thousandths: 990 is the 99th
    /// percentile. `None` without calls, or if it is beyond all bounds.
    pub fn quantile(&self, thousandths: u64) -> Option<Duration> {
        let count = u128::from(self.count());
        let wanted = (count * u128::from(thousandths)).div_ceil(1000);
        let mut seen = 0;
        for (bucket, &calls) in self.buckets.iter().enumerate() {
            seen += u128::from(calls);
            if seen >= wanted && seen > 0 {
                return Self::bound(bucket);
            }
        }
        None
    }
}
