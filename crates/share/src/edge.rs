//! Where the windows of a counter meet.

use tidegate_algorithms::{Meter, Quota, Time};

/// Whether a counter has begun another window in between, and what was charged `then` cannot be taken back
/// `now`: it would be taken from what others were charged since. Not of counters that forget bit by bit.
pub(crate) fn is_between(quota: &Quota, then: Time, now: Time) -> bool {
    let window = match quota.meter() {
        Meter::FixedWindow(_) | Meter::SlidingCounter(_) | Meter::IntervalBucket(_) => {
            quota.window()
        }
        Meter::SubWindows(meter) => meter.sub_window(),
        Meter::TokenBucket(_) | Meter::LeakyBucket(_) | Meter::SlidingLog(_) => return false,
    };
    let number = |time: Time| u128::from(time.nanos()) / window.as_nanos().max(1);
    number(then) != number(now)
}
