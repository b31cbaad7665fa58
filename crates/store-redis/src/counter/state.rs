//! The state of a counter as a script tells it.

use std::time::Duration;

use tidegate_algorithms::{
    Decision, Meter, Quota, SoftPeriod, Ticks, Time, fixed_window, interval_bucket, leaky_bucket,
    sliding_counter, token_bucket,
};

use super::numbers::unit;
use super::sparse::{Known, SparseCounts, SparseLog};

/// What a counter remembered when a script found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(super) state: State,
    /// The period of soft admissions, which may be over.
    pub(super) soft_period: Option<SoftPeriod>,
}

/// The state of an algorithm; that of a caller never seen is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    TokenBucket(token_bucket::State),
    LeakyBucket(leaky_bucket::State),
    IntervalBucket(interval_bucket::State),
    FixedWindow(fixed_window::State),
    SlidingCounter(sliding_counter::State),
    SlidingLog(SparseLog),
    SubWindows(SparseCounts),
}

/// Reads a time as replies tell it: seconds, a point, and microseconds without leading zeros.
pub(crate) fn time(text: &[u8]) -> Option<Time> {
    let (seconds, micros) = str::from_utf8(text).ok()?.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    let all = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    Some(Time::from_micros(all))
}

// === impl Told ===

impl Told {
    /// Reads what a script found for a counter of `quota`; `None` if it makes no sense.
    pub(crate) fn read(text: &[u8], quota: &Quota) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let (state, soft_period) = match quota.meter() {
            Meter::SlidingLog(meter) => {
                let (log, period) = log(text, meter.grain())?;
                (State::SlidingLog(log), period)
            }
            Meter::SubWindows(_) => {
                let (counts, period) = counts(text)?;
                (State::SubWindows(counts), period)
            }
            meter => {
                let text = text.strip_prefix('-').unwrap_or(text);
                let (text, period) = text.split_once('@').unwrap_or((text, ""));
                (State::fixed(text, meter)?, soft_period(period))
            }
        };
        Some(Self { state, soft_period })
    }
}

// === impl State ===

impl State {
    fn fixed(text: &str, meter: &Meter) -> Option<Self> {
        let is_unseen = text.is_empty();
        let numbers = |n: usize| -> Option<[u64; 3]> {
            let mut numbers = [0; 3];
            let mut parts = text.split(':');
            for (number, part) in numbers.iter_mut().zip(parts.by_ref().take(n)) {
                *number = part.parse().ok()?;
            }
            parts.next().is_none().then_some(numbers)
        };
        let [a, b, c] = if is_unseen {
            [0; 3]
        } else {
            match meter {
                Meter::SlidingCounter(_) => numbers(3)?,
                _ => numbers(2)?,
            }
        };
        // A bucket's value is nanoseconds and, maybe, ticks.
        let instant = Ticks((u128::from(a) << 32) | u128::from(b));
        Some(match meter {
            Meter::TokenBucket(_) => Self::TokenBucket(token_bucket::State { tat: instant }),
            Meter::LeakyBucket(_) => Self::LeakyBucket(leaky_bucket::State {
                next_departure: instant,
            }),
            Meter::IntervalBucket(_) => Self::IntervalBucket(interval_bucket::State {
                period: a,
                missing: b,
            }),
            Meter::FixedWindow(_) => Self::FixedWindow(fixed_window::State {
                window: a,
                count: b,
            }),
            Meter::SlidingCounter(_) => Self::SlidingCounter(sliding_counter::State {
                window: a,
                previous: b,
                current: c,
            }),
            Meter::SlidingLog(_) | Meter::SubWindows(_) => return None,
        })
    }

    /// What `meter` says to `cost` on top of this state. Another algorithm's state counts as none.
    pub(super) fn decide(&self, meter: &Meter, cost: u64, extra: u64, now: Time) -> Decision {
        match (meter, self) {
            (Meter::TokenBucket(meter), Self::TokenBucket(state)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Meter::LeakyBucket(meter), Self::LeakyBucket(state)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Meter::IntervalBucket(meter), Self::IntervalBucket(state)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Meter::FixedWindow(meter), Self::FixedWindow(state)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Meter::SlidingCounter(meter), Self::SlidingCounter(state)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Meter::SlidingLog(meter), Self::SlidingLog(log)) => {
                meter.decide(log, cost, extra, now).0
            }
            (Meter::SubWindows(meter), Self::SubWindows(counts)) => {
                meter.decide(counts, cost, extra, now).0
            }
            // A key names its algorithm, so that a state is never read as another's.
            _ => Decision {
                outcome: tidegate_algorithms::Outcome::Denied {
                    retry: tidegate_algorithms::Retry::After(Duration::ZERO),
                },
                limit: 0,
                remaining: 0,
                reset_after: Duration::ZERO,
            },
        }
    }
}

/// Microseconds and, in the last four digits, the step. A shorter text, such as `-1`, stands for none.
fn soft_period(text: &str) -> Option<SoftPeriod> {
    let (micros, step) = text.split_at_checked(text.len().checked_sub(4)?)?;
    SoftPeriod::from_parts(micros.parse().ok()?, step.parse().ok()?)
}

/// Nothing, or: how many, the newest time, the period of soft admissions or -1, and pairs of places and times.
fn log(text: &str, grain: u64) -> Option<(SparseLog, Option<SoftPeriod>)> {
    let mut words = text.split_ascii_whitespace();
    // The scripts' unit in the core's grains.
    let scale = unit(grain) * 1_000 / grain;
    let len = words.next().map_or(Some(0), |word| word.parse().ok())?;
    let Some(newest) = words.next() else {
        return (len == 0).then(|| (SparseLog::default(), None));
    };
    let newest: u64 = newest.parse().ok()?;
    let period = words.next().and_then(soft_period);
    let mut known = pairs(words)?;
    for (_, stamp) in &mut known {
        *stamp = stamp.saturating_mul(scale);
    }
    let newest = newest.saturating_mul(scale);
    Some((SparseLog { len, newest, known }, period))
}

/// Nothing, or: the newest sub-window, the sum, the period of soft admissions or -1, and pairs of indexes and
/// counts.
fn counts(text: &str) -> Option<(SparseCounts, Option<SoftPeriod>)> {
    let mut words = text.split_ascii_whitespace();
    let newest = words.next().map_or(Some(0), |word| word.parse().ok())?;
    let Some(total) = words.next() else {
        return Some((SparseCounts::default(), None));
    };
    let total = total.parse().ok()?;
    let period = words.next().and_then(soft_period);
    let known = pairs(words)?;
    let counts = SparseCounts {
        newest,
        total,
        known,
    };
    Some((counts, period))
}

fn pairs<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Known> {
    let mut known = Known::new();
    while let Some(place) = words.next() {
        known.push((place.parse().ok()?, words.next()?.parse().ok()?));
    }
    Some(known)
}

#[cfg(test)]
mod tests;
