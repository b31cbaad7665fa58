//! Which limits the scripts can count exactly.
//!
//! Numbers in Lua are doubles, whole up to 2^53, and Redis tells time in microseconds.

use std::time::Duration;

use tidegate_algorithms::{Meter, Quota};
use tidegate_store::Unfit;

/// Counts from here on are not whole numbers to a script.
pub(crate) const COUNTS_END: u64 = 1 << 53;

/// Whether a limit can be counted in Redis exactly as in memory, and if not, why.
pub fn fits(quota: &Quota) -> Result<(), Unfit> {
    match quota.meter() {
        // A bucket's times are kept in two parts, neither of which a valid quota can overflow; a log
        // compares with its limit alone, and a valid one is short.
        Meter::TokenBucket(_) | Meter::LeakyBucket(_) | Meter::SlidingLog(_) => Ok(()),
        Meter::FixedWindow(_) | Meter::SlidingCounter(_) => {
            whole(quota.window())?;
            countable(quota, quota.limit())
        }
        Meter::IntervalBucket(meter) => {
            whole(quota.window())?;
            countable(quota, quota.limit().max(meter.capacity()))
        }
        Meter::SubWindows(meter) => {
            whole(meter.sub_window())?;
            countable(quota, quota.limit())
        }
    }
}

/// Whether a span is a whole number of microseconds.
fn whole(span: Duration) -> Result<(), Unfit> {
    if span.subsec_nanos().is_multiple_of(1_000) {
        Ok(())
    } else {
        Err(Unfit::Grain)
    }
}

/// Whether all counts up to `most`, and what may pass over it, are whole numbers to a script.
fn countable(quota: &Quota, most: u64) -> Result<(), Unfit> {
    if most.saturating_add(quota.most_extra()) < COUNTS_END {
        Ok(())
    } else {
        Err(Unfit::Magnitude)
    }
}

#[cfg(test)]
mod tests;
