//! The times that a limit with `soft_for` remembers of the requests above it.
//!
//! ```text
//!            soft admission               request above the limit, `soft_for` after it began
//!  no period ──────────────► soft period ──────────────────────────────────────► ended period
//!      ▲                          │                                                    │
//!      └──────────────────────────┴── a whole window without a request above the limit ┘
//! ```
//! A request is above the limit if it is allowed on the extra or denied. Both times are kept in one word,
//! so that such a limit takes no more memory than others: whole microseconds and, while the period is
//! soft, the last request in thousandths of `soft_for`, rounded up.

use std::time::Duration;

use crate::Time;

/// A period in which requests above a limit with `soft_for` came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftPeriod {
    /// The first soft admission; of a period that has ended, the last request above the limit.
    micros: u64,
    /// The last request above the limit, in steps after the first; [`SoftPeriod::ENDED`] of a period that
    /// has ended.
    step: u16,
}

/// Steps that `soft_for` is divided into.
const STEPS: u64 = 1_000;

/// Bits of a step in a word.
const STEP_BITS: u32 = 10;

/// Set in every word, so that no word of an earlier format is taken for one of this.
const MARK: u64 = 1 << 63;

/// The latest time in microseconds. It has 53 bits.
const MOST_MICROS: u64 = Time::MAX.nanos().div_ceil(1_000);

// === impl SoftPeriod ===

impl SoftPeriod {
    /// The step of a period that has ended.
    pub const ENDED: u16 = (1 << STEP_BITS) - 1;

    /// A period that begins with a soft admission at `now`.
    pub(super) const fn begin(now: Time) -> Self {
        Self {
            micros: micros(now),
            step: 0,
        }
    }

    /// The period after a request above the limit at `now`.
    pub(super) fn with_request(self, only_for: Duration, now: Time) -> Self {
        let micros = micros(now);
        if self.is_soft(only_for, now) {
            let step = micros
                .saturating_sub(self.micros)
                .div_ceil(step_micros(only_for).max(1));
            let step = u16::try_from(step).unwrap_or(Self::ENDED - 1);
            return Self {
                step: self.step.max(step.min(Self::ENDED - 1)),
                ..self
            };
        }
        let is_later = self.step != Self::ENDED || micros > self.micros;
        Self {
            micros: if is_later { micros } else { self.micros },
            step: Self::ENDED,
        }
    }

    /// Whether the extra is still available at `now`.
    pub(super) fn is_soft(self, only_for: Duration, now: Time) -> bool {
        self.ends_at(only_for).is_some_and(|end| now < end)
    }

    /// The time at which the extra ends; `None` if it has ended.
    pub(super) fn ends_at(self, only_for: Duration) -> Option<Time> {
        let micros = self.micros.saturating_add(span_micros(only_for));
        (self.step != Self::ENDED).then(|| Time::from_micros(micros))
    }

    /// The time at which a new period may begin: a window after the last request above the limit.
    pub(super) fn restarts_at(self, only_for: Duration, window: Duration) -> Time {
        let after_first = match self.step {
            Self::ENDED => 0,
            step => u64::from(step).saturating_mul(step_micros(only_for)),
        };
        Time::from_micros(self.micros.saturating_add(after_first)).plus(window)
    }

    /// The period as two numbers: microseconds since the epoch, and steps.
    pub const fn parts(self) -> (u64, u16) {
        (self.micros, self.step)
    }

    /// The period of two numbers; `None` if they cannot come from [`parts`](Self::parts).
    pub const fn from_parts(micros: u64, step: u16) -> Option<Self> {
        if micros > MOST_MICROS || step > Self::ENDED {
            return None;
        }
        Some(Self { micros, step })
    }

    /// The period as one word, never 0.
    pub fn to_word(self) -> u64 {
        MARK | (self.micros << STEP_BITS) | u64::from(self.step)
    }

    /// Reads what [`to_word`](Self::to_word) wrote; `None` for any other word.
    pub fn from_word(word: u64) -> Option<Self> {
        let step = u16::try_from(word & u64::from(Self::ENDED)).ok()?;
        let is_marked = word & MARK != 0;
        Self::from_parts((word & !MARK) >> STEP_BITS, step).filter(|_| is_marked)
    }
}

/// A time in microseconds, rounded up.
const fn micros(time: Time) -> u64 {
    time.nanos().div_ceil(1_000)
}

/// A span in microseconds, rounded up.
fn span_micros(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// The length of a step in microseconds, rounded up.
fn step_micros(only_for: Duration) -> u64 {
    span_micros(only_for).div_ceil(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_A_MINUTE: Duration = Duration::from_secs(30);

    #[test]
    fn a_word_is_read_as_it_was_written() {
        let last = micros(Time::MAX);
        for (at, step) in [(0, 0), (1, 1), (last, 1_000), (last, SoftPeriod::ENDED)] {
            let period = SoftPeriod::from_parts(at, step).expect("in range");
            assert_eq!(SoftPeriod::from_word(period.to_word()), Some(period));
        }
        // No period, and the nanoseconds of an earlier format.
        assert_eq!(SoftPeriod::from_word(0), None);
        assert_eq!(SoftPeriod::from_word(1_800_000_000_000_000_001), None);
        assert_eq!(SoftPeriod::from_word(u64::MAX), None);
    }

    #[test]
    fn the_last_request_is_rounded_up_to_a_step() {
        let at = |millis: u64| Time::from_micros(millis * 1_000);
        let begun = SoftPeriod::begin(at(1_000));
        // A step is 30 ms.
        for (request, last) in [
            (1_000, 1_000),
            (1_001, 1_030),
            (1_030, 1_030),
            (30_999, 31_000),
        ] {
            let period = begun.with_request(HALF_A_MINUTE, at(request));
            let restart = period.restarts_at(HALF_A_MINUTE, Duration::ZERO);
            assert_eq!(restart, at(last), "a request at {request} ms");
        }
        let ended = begun.with_request(HALF_A_MINUTE, at(31_000));
        assert_eq!(ended.parts(), (31_000_000, SoftPeriod::ENDED));
        // An earlier request does not end it earlier.
        assert_eq!(ended.with_request(HALF_A_MINUTE, at(5_000)), ended);
    }
}
