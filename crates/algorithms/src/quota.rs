//! The numbers of one limit, validated: what the algorithms may trust.

mod error;
mod judge;
mod promise;

use std::time::Duration;

pub use error::QuotaError;
pub use promise::Promise;

use crate::fixed_window::FixedWindow;
use crate::interval_bucket::IntervalBucket;
use crate::leaky_bucket::LeakyBucket;
use crate::sliding_counter::SlidingCounter;
use crate::sliding_log::{Refused, SlidingLog};
use crate::sub_windows::SubWindows;
use crate::token_bucket::TokenBucket;
use crate::window::{Room, Weight};

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

/// The shortest window.
const SHORTEST_WINDOW: Duration = Duration::from_millis(1);

/// The longest window, and the longest `only_for`: ten years with up to three leap days.
const LONGEST_WINDOW: Duration = Duration::from_hours(3_653 * 24);

/// Entries of the longest log: at 4 bytes each, one caller can take 4 MB.
const LONGEST_LOG: u64 = 1_000_000;

/// The most sub-windows: seconds of an hour.
const MOST_SUB_WINDOWS: u16 = 3_600;

/// The most that may pass over a limit.
const MOST_PERCENT: Percent = Percent(1_000);

/// A validated limit, ready to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    window: Duration,
    algorithm: Algorithm,
    allowance: Allowance,
    /// The most that may ever be admitted over the limit (over the capacity, for a bucket).
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

    /// What an unused limit of `limit` per window admits at one instant.
    const fn capacity(&self, limit: u64) -> u64 {
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
    fn validate(&self) -> Result<(), QuotaError> {
        let (over, only_for) = match *self {
            Self::Hard => return Ok(()),
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

    /// The most it admits over `capacity`.
    fn most(&self, capacity: u64) -> u64 {
        match self {
            Self::Hard => 0,
            Self::Soft { over, .. } | Self::Elastic { over } => over.of(capacity),
        }
    }
}

// === impl Quota ===

impl Quota {
    /// Validates `spec`.
    pub fn new(spec: &QuotaSpec) -> Result<Self, QuotaError> {
        let QuotaSpec {
            limit,
            window,
            algorithm,
            allowance,
        } = *spec;
        if !(SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&window) {
            return Err(QuotaError::WindowOutOfRange);
        }
        // A billion per second is one per nanosecond.
        if u128::from(limit) > window.as_nanos() {
            return Err(QuotaError::RateTooHigh);
        }
        allowance.validate()?;
        // A limit of 0 refuses everything, whatever its burst.
        let capacity = if limit == 0 {
            0
        } else {
            algorithm.capacity(limit)
        };
        let extra = allowance.most(capacity);
        let meter = Meter::new(
            spec,
            Room {
                limit: capacity,
                most_extra: extra,
            },
        )?;
        Ok(Self {
            limit,
            window,
            algorithm,
            allowance,
            extra,
            meter,
        })
    }

    /// Requests per window, as configured.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window, as configured.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// How the limit counts, as configured.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// What may pass over the limit.
    pub const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// The algorithm with its numbers.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What this quota promises however the traffic arrives, in words.
    pub const fn promise(&self) -> Promise<'_> {
        Promise::of(self)
    }
}

// === impl Meter ===

impl Meter {
    /// `spec` is valid but for what its algorithm asks of it; `room` is that of an unused counter.
    fn new(spec: &QuotaSpec, room: Room) -> Result<Self, QuotaError> {
        let QuotaSpec {
            limit,
            window,
            algorithm,
            ..
        } = *spec;
        let Room {
            limit: capacity,
            most_extra,
        } = room;
        let nanos = u64::try_from(window.as_nanos()).map_err(|_| QuotaError::WindowOutOfRange)?;
        Ok(match algorithm {
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => Self::TokenBucket(TokenBucket::new(limit, nanos, capacity, most_extra)?),
            Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => Self::IntervalBucket(IntervalBucket::new(limit, nanos, room)?),
            Algorithm::LeakyBucket { .. } => {
                Self::LeakyBucket(LeakyBucket::new(limit, nanos, capacity, most_extra)?)
            }
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::new(room, nanos)),
            Algorithm::SlidingLog { log_refused } => {
                if capacity.saturating_add(most_extra) > LONGEST_LOG {
                    return Err(QuotaError::LogTooLong);
                }
                let refused = if log_refused {
                    Refused::Logged
                } else {
                    Refused::Forgotten
                };
                Self::SlidingLog(SlidingLog::new(room, nanos, refused))
            }
            Algorithm::SlidingCounter {
                sub_windows: 1,
                rounding,
            } => Self::SlidingCounter(SlidingCounter::new(
                room,
                Weight {
                    span: nanos,
                    rounding,
                },
            )),
            Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            } => {
                if !(1..=MOST_SUB_WINDOWS).contains(&sub_windows) {
                    return Err(QuotaError::SubWindowsOutOfRange);
                }
                let parts = u64::from(sub_windows);
                let weight = Weight {
                    span: nanos.div_ceil(parts),
                    rounding,
                };
                Self::SubWindows(SubWindows::new(room, parts, weight))
            }
        })
    }
}
