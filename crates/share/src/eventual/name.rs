//! The names of counters.

use tidegate_algorithms::{Algorithm, Quota, Refill};
use tidegate_store::{CounterId, CounterKey};

/// The name of a counter among all nodes. Each part is hashed after its length, so that no two counters are
/// alike, and no string of a client leaves the node.
pub(super) fn counter_id(key: CounterKey<'_>, quota: &Quota) -> CounterId {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut add = |bytes: &[u8]| {
        context.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        context.update(bytes);
    };
    add(&key.limit.0.to_le_bytes());
    add(&shape(quota).to_le_bytes());
    for value in key.values {
        add(value.as_bytes());
    }
    let digest = context.finish();
    // Half of it: a pair that collides takes 2^64 tries to find, and is the finder's own.
    let half = digest.as_ref().first_chunk().copied().unwrap_or_default();
    CounterId(u128::from_be_bytes(half))
}

/// The algorithm and the window of a quota. Another window is another counter: a count by one says nothing about
/// another. The limit and the burst are left out, so that a reload that changes them restarts nothing.
pub(super) fn shape(quota: &Quota) -> u128 {
    let (letter, parts) = match quota.algorithm() {
        Algorithm::FixedWindow => (b'f', 0),
        Algorithm::SlidingLog { .. } => (b'g', 0),
        Algorithm::SlidingCounter { sub_windows, .. } => (b'c', sub_windows),
        Algorithm::TokenBucket { refill, .. } => match refill {
            Refill::Continuous => (b't', 0),
            Refill::Interval => (b'i', 0),
        },
        Algorithm::LeakyBucket { .. } => (b'l', 0),
    };
    (quota.window().as_nanos() << 24) | (u128::from(parts) << 8) | u128::from(letter)
}
