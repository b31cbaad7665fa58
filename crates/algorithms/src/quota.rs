//! The numbers of one limit, validated: what the algorithms may trust.

mod error;
mod judge;
mod promise;
mod soft_period;
mod spec;

use std::time::Duration;

pub use error::QuotaError;
pub use judge::Inquiry;
pub use promise::Promise;
pub use soft_period::SoftPeriod;
pub use spec::{Algorithm, Allowance, Headroom, Percent, QuotaSpec, Refill, Rounding};

use crate::fixed_window::FixedWindow;
use crate::interval_bucket::IntervalBucket;
use crate::leaky_bucket::LeakyBucket;
use crate::sliding_counter::SlidingCounter;
use crate::sliding_log::{Refused, SlidingLog};
use crate::sub_windows::SubWindows;
use crate::token_bucket::TokenBucket;
use crate::window::{Room, Weight};

/// The shortest window.
const SHORTEST_WINDOW: Duration = Duration::from_millis(1);

/// The longest window, and the longest `only_for`: ten years with up to three leap days.
const LONGEST_WINDOW: Duration = Duration::from_hours(3_653 * 24);

/// The largest limit or capacity: with ten times as much over it, counts stay far from the end of
/// 64 bits.
const LARGEST_LIMIT: u64 = 1 << 56;

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
        // A billion per second is one per nanosecond, and less than a nanosecond no clock tells.
        if algorithm.is_paced() && u128::from(limit) > window.as_nanos() {
            return Err(QuotaError::RateTooHigh);
        }
        if limit > LARGEST_LIMIT {
            return Err(QuotaError::LimitTooLarge);
        }
        allowance.validate()?;
        // A limit of 0 refuses everything, whatever its burst.
        let capacity = if limit == 0 {
            0
        } else {
            algorithm.capacity(limit)
        };
        if capacity > LARGEST_LIMIT {
            return Err(QuotaError::CapacityTooLarge);
        }
        let is_postpaid = matches!(allowance, Allowance::Postpaid { .. });
        if is_postpaid && matches!(algorithm, Algorithm::LeakyBucket { .. }) {
            return Err(QuotaError::PostpaidQueue);
        }
        // What denies everything charges nothing.
        let is_postpaid = is_postpaid && capacity > 0;
        let extra = allowance.most(algorithm, limit, capacity);
        let meter = Meter::new(
            spec,
            Room {
                limit: capacity,
                most_extra: extra,
                is_postpaid,
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

    /// The same quota with its limit, and the capacity of a bucket, cut to `of_parts` of `parts`
    /// equal parts, rounded down but not below `least`; `None` if that is no valid quota.
    pub fn part(&self, of_parts: u64, parts: u64, least: u64) -> Option<Self> {
        let cut = |whole: u64| {
            let part = u128::from(whole) * u128::from(of_parts) / u128::from(parts.max(1));
            u64::try_from(part)
                .unwrap_or(whole)
                .min(whole)
                .max(least.min(whole))
        };
        let algorithm = match self.algorithm {
            Algorithm::TokenBucket { burst, refill } => Algorithm::TokenBucket {
                burst: burst.map(cut),
                refill,
            },
            Algorithm::LeakyBucket { queue } => Algorithm::LeakyBucket {
                queue: queue.map(cut),
            },
            other => other,
        };
        let allowance = match self.allowance {
            Allowance::Postpaid { max_debt } => Allowance::Postpaid {
                max_debt: max_debt.map(cut),
            },
            other => other,
        };
        let spec = QuotaSpec {
            limit: cut(self.limit),
            window: self.window,
            algorithm,
            allowance,
        };
        Self::new(&spec).ok()
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

    /// Returns true if every cost is charged, also one that does not fit and one of a request that is denied.
    #[inline]
    pub const fn is_postpaid(&self) -> bool {
        let has_capacity = self.limit > 0
            && !matches!(
                self.algorithm,
                Algorithm::TokenBucket { burst: Some(0), .. }
            );
        matches!(self.allowance, Allowance::Postpaid { .. }) && has_capacity
    }

    /// The most that the allowance ever admits over the limit, or charges as debt.
    pub const fn most_extra(&self) -> u64 {
        self.extra
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
        let nanos = u64::try_from(window.as_nanos()).map_err(|_| QuotaError::WindowOutOfRange)?;
        Ok(match algorithm {
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => Self::TokenBucket(TokenBucket::new(limit, nanos, room)?),
            Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => Self::IntervalBucket(IntervalBucket::new(limit, nanos, room)?),
            Algorithm::LeakyBucket { .. } => {
                Self::LeakyBucket(LeakyBucket::new(limit, nanos, room)?)
            }
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::new(room, nanos)),
            Algorithm::SlidingLog { log_refused } => Self::sliding_log(room, nanos, log_refused)?,
            Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            } => Self::sliding_counter(room, nanos, sub_windows, rounding)?,
        })
    }

    fn sliding_log(room: Room, nanos: u64, log_refused: bool) -> Result<Self, QuotaError> {
        if room.limit.saturating_add(room.most_extra) > LONGEST_LOG {
            return Err(QuotaError::LogTooLong);
        }
        let refused = if log_refused {
            Refused::Logged
        } else {
            Refused::Forgotten
        };
        Ok(Self::SlidingLog(SlidingLog::new(room, nanos, refused)))
    }

    fn sliding_counter(
        room: Room,
        nanos: u64,
        sub_windows: u16,
        rounding: Rounding,
    ) -> Result<Self, QuotaError> {
        let parts = u64::from(sub_windows);
        match sub_windows {
            1 => {
                let weight = Weight {
                    span: nanos,
                    rounding,
                };
                Ok(Self::SlidingCounter(SlidingCounter::new(room, weight)))
            }
            2..=MOST_SUB_WINDOWS => {
                let weight = Weight {
                    span: nanos.div_ceil(parts),
                    rounding,
                };
                Ok(Self::SubWindows(SubWindows::new(room, parts, weight)))
            }
            _ => Err(QuotaError::SubWindowsOutOfRange),
        }
    }
}
