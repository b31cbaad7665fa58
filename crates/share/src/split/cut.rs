//! How a quota is cut into parts.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Meter, Quota, QuotaSpec};
use tidegate_store::{MAX_PARTS, Plan};

use crate::capacity::capacity;

/// The longest window of a limit that is split. Shares change at window edges: whoever joins or leaves
/// within a longer one would wait too long.
pub const LONGEST_SPLIT_WINDOW: Duration = Duration::from_mins(1);

/// The longest that a counter of a split limit remembers: two of the longest windows.
const LONGEST_MEMORY: Duration = Duration::from_mins(2);

/// Why a limit is not split, whatever its rule says: every request asks the common store.
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
    /// A bucket that takes long to fill.
    #[error(
        "shares change when its bucket has had time to fill, and that takes longer than {LONGEST_MEMORY:?}"
    )]
    LongMemory,
}

/// A part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    /// So many.
    pub(super) of: u32,
    /// Of so many.
    pub(super) parts: u32,
}

/// Whether a limit is split where its rule says so, and if not, why.
pub fn divisible(quota: &Quota) -> Result<(), Indivisible> {
    if matches!(quota.meter(), Meter::LeakyBucket(_)) {
        Err(Indivisible::Queue)
    } else if quota.window() > LONGEST_SPLIT_WINDOW {
        Err(Indivisible::LongWindow)
    } else if memory(quota) > LONGEST_MEMORY {
        Err(Indivisible::LongMemory)
    } else {
        Ok(())
    }
}

/// From how many nodes on a limit that is divisible is strict all the same: there is not one for each of
/// them and one for the reserve.
pub fn strict_from(quota: &Quota) -> u32 {
    let parts = parts(quota);
    let for_nodes = parts.saturating_sub(Plan::least_reserve(parts));
    for_nodes.saturating_add(1)
}

/// How long a counter remembers what was before the edge of a window.
pub(super) fn memory(quota: &Quota) -> Duration {
    let window = quota.window();
    match quota.meter() {
        Meter::FixedWindow(_) => Duration::ZERO,
        Meter::SlidingLog(_) => window,
        Meter::SlidingCounter(_) => window.saturating_mul(2),
        Meter::SubWindows(meter) => window.saturating_add(meter.sub_window()),
        // As long as it takes to fill an empty one.
        Meter::TokenBucket(_) | Meter::IntervalBucket(_) | Meter::LeakyBucket(_) => {
            let most = u128::from(capacity(quota)) + u128::from(quota.most_extra());
            let windows = most.div_ceil(u128::from(quota.limit().max(1)));
            let is_even = matches!(quota.meter(), Meter::TokenBucket(_));
            let nanos = if is_even {
                (most * window.as_nanos()).div_ceil(u128::from(quota.limit().max(1)))
            } else {
                windows * window.as_nanos()
            };
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    }
}

/// How many parts a limit is divided into: as many as it has requests, and a bucket as many as it has
/// of whatever it has fewer of; 0 for one that refuses everything.
pub(super) fn parts(quota: &Quota) -> u32 {
    let whole = quota.limit().min(capacity(quota));
    u32::try_from(whole).unwrap_or(MAX_PARTS).min(MAX_PARTS)
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
            burst: Some(cut_capacity(quota, fraction)),
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

/// The capacity of a bucket that is cut.
///
/// A bucket remembers when it will be full. One that now fills more slowly in proportion, since its rate
/// was rounded down, would find tokens in that: as many as drop in while the whole one fills, at a rate
/// of less than one in a window. It is made smaller by those; one of a single token finds none.
fn cut_capacity(quota: &Quota, fraction: Fraction) -> u64 {
    let capacity = capacity(quota);
    let cut = fraction.floor(capacity);
    if fraction.is_whole(quota.limit()) || cut == 0 {
        return cut;
    }
    let found = capacity.div_ceil(quota.limit().max(1));
    cut.saturating_sub(found).max(1)
}

// === impl Fraction ===

impl Fraction {
    fn product(self, whole: u64) -> u128 {
        u128::from(whole) * u128::from(self.of)
    }

    /// So much of `whole`, rounded down.
    fn floor(self, whole: u64) -> u64 {
        let part = self.product(whole) / u128::from(self.parts.max(1));
        u64::try_from(part).unwrap_or(whole).min(whole)
    }

    /// Whether nothing is rounded.
    fn is_whole(self, whole: u64) -> bool {
        self.product(whole)
            .is_multiple_of(u128::from(self.parts.max(1)))
    }
}
