//! The numbers of one limit, validated: what the algorithms may trust.

use std::time::Duration;

use crate::fixed_window::FixedWindow;
use crate::interval_bucket::IntervalBucket;
use crate::leaky_bucket::LeakyBucket;
use crate::sliding_counter::SlidingCounter;
use crate::sliding_log::SlidingLog;
use crate::sub_windows::SubWindows;
use crate::token_bucket::TokenBucket;

/// The numbers of a limit as somebody wrote them. [`Quota::new`] validates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSpec {
    /// Requests per window; 0 refuses everything.
    pub limit: u64,
    /// The window, from 1 ms to ten years.
    pub window: Duration,
    /// How the limit counts.
    pub algorithm: Algorithm,
    /// What may pass over the limit.
    pub allowance: Allowance,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Tokens that refill at `limit` per window, up to a capacity (`None`: the limit itself).
    TokenBucket {
        /// Capacity of the bucket.
        burst: Option<u64>,
        /// Whether tokens drip in or drop in whole portions of `limit` at window edges.
        refill: Refill,
    },
    /// A FIFO queue with constant outflow of `limit` per window.
    LeakyBucket {
        /// How many requests may wait (`None`: the limit itself).
        queue: Option<u64>,
    },
    /// Counts per epoch-aligned window.
    FixedWindow,
    /// Remembers each request: exact.
    SlidingLog {
        /// Whether refused requests are remembered as well.
        log_refused: bool,
    },
    /// Counts per sub-window, the oldest weighted by its overlap. One sub-window is the textbook's
    /// two-bucket interpolation.
    SlidingCounter {
        /// How many parts the window is cut into, from 1 to 3600.
        sub_windows: u16,
        /// How the weighted count is rounded.
        rounding: Rounding,
    },
}

/// How a token bucket refills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Refill {
    /// Tokens drip in evenly.
    #[default]
    Continuous,
    /// `limit` tokens drop in at once at each epoch-aligned window edge.
    Interval,
}

/// How a sliding counter rounds its weighted count before it compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Towards zero, as the textbook does: lenient by less than one request.
    #[default]
    Down,
    /// Away from zero: strict by less than one request.
    Up,
}

/// A whole percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Percent(pub u32);

/// What may pass over the ordinary limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allowance {
    /// Nothing.
    #[default]
    Hard,
    /// This much over is admitted and marked; with `only_for`, only so long after the limit was first
    /// exceeded, until a request fits the ordinary limit again.
    Soft {
        /// How much over, in percent of the limit (of the capacity, for a bucket).
        over: Percent,
        /// For how long at a stretch; `None` is always.
        only_for: Option<Duration>,
    },
    /// This much over is admitted and marked while there is headroom.
    Elastic {
        /// How much over, in percent of the limit (of the capacity, for a bucket).
        over: Percent,
    },
}

/// Whether the protected service has room to spare, as the caller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headroom {
    /// It has not (or nobody knows): elastic limits are hard.
    #[default]
    Absent,
    /// It has: elastic limits stretch.
    Available,
}

/// A validated limit, ready to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    window: Duration,
    allowance: Allowance,
    extra: u64,
    meter: Meter,
}

/// The algorithm of a quota with its numbers worked out; what a store dispatches on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// Continuous token bucket.
    TokenBucket(TokenBucket),
    /// Token bucket refilled in portions.
    IntervalBucket(IntervalBucket),
    /// FIFO queue.
    LeakyBucket(LeakyBucket),
    /// Count per window.
    FixedWindow(FixedWindow),
    /// Every request remembered.
    SlidingLog(SlidingLog),
    /// Two-bucket interpolation.
    SlidingCounter(SlidingCounter),
    /// Interpolation over sub-windows.
    SubWindows(SubWindows),
}

/// Why numbers are no quota.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The window is shorter than 1 ms or longer than ten years.
    WindowOutOfRange,
    /// More than a billion per second.
    RateTooHigh,
    /// Filling the bucket or draining the queue would take longer than time can count.
    CapacityTooLarge,
    /// The log would remember more than a million requests.
    LogTooLong,
    /// The window cannot be cut into so many parts.
    SubWindowsOutOfRange,
    /// More than 1,000 percent over.
    PercentTooLarge,
    /// Longer than ten years.
    SoftForOutOfRange,
}

// === impl Quota ===

impl Quota {
    /// Validates `spec`.
    pub fn new(_spec: &QuotaSpec) -> Result<Self, QuotaError> {
        unimplemented!()
    }

    /// Requests per window, as configured.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window, as configured.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// What may pass over the limit.
    pub const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// The algorithm with its numbers.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
}
