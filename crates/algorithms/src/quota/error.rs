//! Why numbers are no quota.

use std::error::Error;
use std::fmt;

/// Why numbers are no quota.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The window is shorter than 1 ms or longer than ten years.
    WindowOutOfRange,
    /// More than a billion per second, of a bucket.
    RateTooHigh,
    /// More than 2^56.
    LimitTooLarge,
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
    /// More than 2^56.
    DebtTooLarge,
    /// A queue whose requests are charged after they have left.
    PostpaidQueue,
}

// === impl QuotaError ===

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WindowOutOfRange => {
                "the window is out of range: choose one from 1 ms to 3653 days"
            }
            Self::RateTooHigh => {
                "the rate of the bucket is above a billion per second: lower the limit, lengthen the \
                 window, or count by fixed_window"
            }
            Self::LimitTooLarge => {
                "the limit is above 72057594037927936: lower it, or make it unlimited"
            }
            Self::CapacityTooLarge => {
                "the bucket would take more than 146 years to fill: lower the burst (the queue, the \
                 percentage over) or raise the rate"
            }
            Self::LogTooLong => {
                "the log would remember more than 1000000 requests for one caller: lower the limit, \
                 or use sliding_counter with sub_windows"
            }
            Self::SubWindowsOutOfRange => {
                "the number of sub-windows is out of range: choose one from 1 to 3600"
            }
            Self::PercentTooLarge => {
                "the percentage over the limit is above 1000: raise the limit instead"
            }
            Self::SoftForOutOfRange => {
                "the time over the limit is above 3653 days: leave it out to allow it always"
            }
            Self::DebtTooLarge => "the debt is above 72057594037927936: lower it",
            Self::PostpaidQueue => {
                "a queue cannot be postpaid, because what is charged afterwards has left it already: use \
                 token_bucket"
            }
        })
    }
}

impl Error for QuotaError {}
