//! The numbers of a limit as somebody wrote them.

use std::time::Duration;

use super::{LARGEST_LIMIT, LONGEST_WINDOW, MOST_PERCENT, QuotaError};

/// The numbers of a limit as somebody wrote them. [`Quota::new`](super::Quota::new) validates them.
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
    /// This much over is allowed and marked; with `only_for`, only for that long after the first soft
    /// admission, and again only after a whole window without a request above the limit.
    Soft {
        /// How much over, in percent of the limit (of the capacity, for a bucket).
        over: Percent,
        /// For how long after the first soft admission; `None` is always.
        only_for: Option<Duration>,
    },
    /// This much over is admitted and marked while there is headroom.
    Elastic {
        /// How much over, in percent of the limit (of the capacity, for a bucket).
        over: Percent,
    },
    /// Nothing is allowed over the limit, but every cost is charged: also one that does not fit, and also
    /// if another limit denies the request.
    Postpaid {
        /// The most that is charged over the limit (over the capacity, for a bucket); `None` is the limit.
        max_debt: Option<u64>,
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

// === impl Algorithm ===

impl Algorithm {
    /// The name as rules spell it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TokenBucket { .. } => "token_bucket",
            Self::LeakyBucket { .. } => "leaky_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingLog { .. } => "sliding_log",
            Self::SlidingCounter { .. } => "sliding_counter",
        }
    }

    /// Whether requests are spaced in time, rather than counted by the window. What is counted may
    /// be as much as can be counted: 4294967295 per second is how Lyft's users write "no limit".
    pub(super) const fn is_paced(&self) -> bool {
        match self {
            Self::TokenBucket { refill, .. } => matches!(refill, Refill::Continuous),
            Self::LeakyBucket { .. } => true,
            Self::FixedWindow | Self::SlidingLog { .. } | Self::SlidingCounter { .. } => false,
        }
    }

    /// What an unused limit of `limit` per window admits at one instant.
    pub(super) const fn capacity(&self, limit: u64) -> u64 {
        match *self {
            Self::TokenBucket {
                burst: Some(capacity),
                ..
            } => capacity,
            // One leaves at once, the others wait.
            Self::LeakyBucket { queue: Some(queue) } => queue.saturating_add(1),
            Self::LeakyBucket { queue: None } => limit.saturating_add(1),
            _ => limit,
        }
    }
}

// === impl Refill ===

impl Refill {
    /// The name as rules spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continuous => "continuous",
            Self::Interval => "interval",
        }
    }
}

// === impl Rounding ===

impl Rounding {
    /// The name as rules spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

// === impl Percent ===

impl Percent {
    /// This much of `whole`, rounded down, saturating.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

// === impl Allowance ===

impl Allowance {
    pub(super) fn validate(&self) -> Result<(), QuotaError> {
        let (over, only_for) = match *self {
            Self::Hard => return Ok(()),
            Self::Postpaid { max_debt } => {
                let is_too_large = max_debt.is_some_and(|debt| debt > LARGEST_LIMIT);
                return if is_too_large {
                    Err(QuotaError::DebtTooLarge)
                } else {
                    Ok(())
                };
            }
            Self::Soft { over, only_for } => (over, only_for),
            Self::Elastic { over } => (over, None),
        };
        if over.0 > MOST_PERCENT.0 {
            return Err(QuotaError::PercentTooLarge);
        }
        if only_for.is_some_and(|span| span > LONGEST_WINDOW) {
            return Err(QuotaError::SoftForOutOfRange);
        }
        Ok(())
    }

    /// The most that is used over the `capacity` of a limit. A log keeps no more entries than its limit, so
    /// it has no debt.
    pub(super) fn most(&self, algorithm: Algorithm, limit: u64, capacity: u64) -> u64 {
        match *self {
            Self::Hard => 0,
            Self::Soft { over, .. } | Self::Elastic { over } => over.of(capacity),
            Self::Postpaid { .. }
                if capacity == 0 || matches!(algorithm, Algorithm::SlidingLog { .. }) =>
            {
                0
            }
            Self::Postpaid { max_debt } => max_debt.unwrap_or(limit),
        }
    }
}
