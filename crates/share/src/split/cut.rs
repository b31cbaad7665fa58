//! Quotas cut into parts.

use std::time::Duration;

use tidegate_algorithms::sub_windows::SubWindows;
use tidegate_algorithms::{Algorithm, Meter, Quota, QuotaSpec};
use tidegate_store::{LEAST_PARTS, MAX_PARTS};

use crate::capacity::capacity;

/// The longest window of a limit that is split. Shares change at window edges: a node that joins or leaves
/// within a longer one would wait too long.
pub const LONGEST_SPLIT_WINDOW: Duration = Duration::from_mins(1);

/// The longest memory of a counter of a split limit: two of the longest windows.
const LONGEST_MEMORY: Duration = Duration::from_mins(2);

/// The reason why a limit is strict although its rule says `split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Indivisible {
    /// A queue has one order, which no two nodes can keep.
    #[error("a queue has one order, and no two nodes can keep it")]
    Queue,
    /// The window is longer than [`LONGEST_SPLIT_WINDOW`].
    #[error(
        "shares change at window edges, and its window is longer than {LONGEST_SPLIT_WINDOW:?}"
    )]
    LongWindow,
    /// A bucket that holds more than one of its refills: what one node spends is back only after several.
    #[error("its bucket holds more than is refilled at once")]
    LargeBucket,
    /// A postpaid limit, which is charged whatever a share has left.
    #[error("it is postpaid, and debt has one counter")]
    Postpaid,
    /// A bucket that takes long to fill.
    #[error(
        "shares change when its bucket has had time to fill, and that takes longer than {LONGEST_MEMORY:?}"
    )]
    LongMemory,
}

/// A part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    pub(super) of: u32,
    pub(super) parts: u32,
}

/// Checks that a limit can be split.
pub fn divisible(quota: &Quota) -> Result<(), Indivisible> {
    if matches!(quota.meter(), Meter::LeakyBucket(_)) {
        Err(Indivisible::Queue)
    } else if quota.is_postpaid() {
        Err(Indivisible::Postpaid)
    } else if quota.window() > LONGEST_SPLIT_WINDOW {
        Err(Indivisible::LongWindow)
    } else if matches!(quota.meter(), Meter::IntervalBucket(_))
        && to_fill(quota) > u128::from(quota.limit())
    {
        Err(Indivisible::LargeBucket)
    } else if memory(quota) > LONGEST_MEMORY {
        Err(Indivisible::LongMemory)
    } else {
        Ok(())
    }
}

/// The number of nodes from which on a limit is strict: it is then smaller than [`LEAST_PARTS`] for each.
pub fn strict_from(quota: &Quota) -> u32 {
    parts(quota) / LEAST_PARTS + 1
}

/// The time for which a counter remembers admissions from before the edge of a window.
pub(super) fn memory(quota: &Quota) -> Duration {
    let window = quota.window();
    match quota.meter() {
        // A bucket that is split is full again at each edge.
        Meter::FixedWindow(_) | Meter::IntervalBucket(_) => Duration::ZERO,
        Meter::SlidingLog(_) | Meter::SlidingCounter(_) => window,
        Meter::SubWindows(meter) if is_whole(meter, window) => window,
        Meter::SubWindows(meter) => window.saturating_add(meter.sub_window()),
        Meter::TokenBucket(_) | Meter::LeakyBucket(_) => {
            // As long as it takes to fill an empty one.
            let nanos = to_fill(quota) * window.as_nanos();
            let nanos = nanos.div_ceil(u128::from(quota.limit().max(1)));
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    }
}

/// Whether sub-windows begin where a window does.
fn is_whole(meter: &SubWindows, window: Duration) -> bool {
    u32::try_from(meter.parts())
        .is_ok_and(|parts| meter.sub_window().saturating_mul(parts) == window)
}

/// The tokens that an empty bucket lacks.
fn to_fill(quota: &Quota) -> u128 {
    u128::from(capacity(quota)) + u128::from(quota.most_extra())
}

/// The number of parts that a limit is divided into: its requests or, for a bucket, what divides both its limit
/// and its capacity, so that each part of it fills in the same time; 0 for a limit that denies everything.
pub(super) fn parts(quota: &Quota) -> u32 {
    let (limit, capacity) = (quota.limit(), capacity(quota));
    let mut parts = if limit == capacity {
        limit.min(u64::from(MAX_PARTS))
    } else {
        common_divisor(limit, capacity)
    };
    for factor in [2, 3, 5] {
        while parts > u64::from(MAX_PARTS) && parts.is_multiple_of(factor) {
            parts /= factor;
        }
    }
    u32::try_from(parts).map_or(1, |parts| if parts > MAX_PARTS { 1 } else { parts })
}

const fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// That part of a quota, rounded down; `None` if nothing is left of it.
///
/// Parts that are no more than the whole together are quotas that admit no more than it together, also
/// when each is cut anew at the edges of epochs.
pub(super) fn cut(quota: &Quota, fraction: Fraction) -> Option<Quota> {
    if fraction.of >= fraction.parts {
        return Some(quota.clone());
    }
    let limit = fraction.floor(quota.limit());
    let algorithm = match quota.algorithm() {
        Algorithm::TokenBucket { refill, .. } => Algorithm::TokenBucket {
            burst: Some(fraction.floor(capacity(quota))),
            refill,
        },
        other => other,
    };
    let spec = QuotaSpec {
        limit,
        window: quota.window(),
        algorithm,
        allowance: quota.allowance(),
    };
    Quota::new(&spec)
        .ok()
        .filter(|cut| limit > 0 && capacity(cut) > 0)
}

// === impl Fraction ===

impl Fraction {
    /// That part of `whole`, rounded down.
    fn floor(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.of) / u128::from(self.parts.max(1));
        u64::try_from(part).unwrap_or(whole).min(whole)
    }
}
