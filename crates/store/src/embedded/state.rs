//! States of fixed size, as a slot's one word or, where they do not fit it, as words of a block.

use tidegate_algorithms::{
    Decision, Meter, Quota, SoftPeriod, Ticks, Time, fixed_window, interval_bucket, leaky_bucket,
    sliding_counter, token_bucket,
};

use super::account::{NoCounts, NoLog};
use super::arena::Block;
use super::layout::{Layout, Shape};

/// Words of a block that holds a state of fixed size.
pub(super) const WIDE_WORDS: usize = 5;

/// Where every block keeps the instant at which its state expires.
pub(super) const EXPIRES: usize = 0;
/// Where every block keeps the period of soft admissions of its limit, or 0.
pub(super) const SOFT_PERIOD: usize = 1;

/// Bits of a narrow portion that say in how many periods the bucket is full again.
const PERIODS_BITS: u32 = 8;

/// What is remembered of one caller, by an algorithm whose state has a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Of a token bucket or a leaky bucket.
    Instant(Ticks),
    /// Of a fixed window.
    Window(fixed_window::State),
    /// Of a bucket refilled in portions.
    Portion(interval_bucket::State),
    /// Of a sliding counter with two buckets.
    Pair(sliding_counter::State),
}

// === impl State ===

impl State {
    /// The state as one word. What does not fit its field is held at the field's end, on the side
    /// that admits less; limits that could get there by admitting have a block instead.
    pub(super) fn to_narrow(self, layout: Layout, expires_at: Time) -> u64 {
        let index_bits = layout.index_bits();
        match self {
            // Not `Ticks::ceil`, which ends with time itself: a deep bucket may be full after that.
            Self::Instant(ticks) => {
                let nanos = ticks.0.div_ceil(Ticks::PER_NANO);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
            Self::Window(state) => {
                join([(state.window, index_bits), (state.count, 64 - index_bits)])
            }
            Self::Portion(state) => {
                let periods = (expires_at.nanos() / layout.window).saturating_sub(state.period);
                join([
                    (state.period, index_bits),
                    (periods, PERIODS_BITS),
                    (state.missing, missing_bits(layout)),
                ])
            }
            Self::Pair(state) => Self::pair_to(state, layout),
        }
    }

    /// Reads what `to_narrow` wrote. A block layout has no narrow form.
    pub(super) fn from_narrow(word: u64, layout: Layout) -> Option<Self> {
        let index_bits = layout.index_bits();
        Some(match layout.shape {
            Shape::Instant => Self::Instant(Ticks::from_nanos(word)),
            Shape::Window => Self::Window(Self::window_from(word, layout)),
            Shape::Portion => {
                let widths = [index_bits, PERIODS_BITS, missing_bits(layout)];
                let [period, _, missing] = cut(word, widths);
                Self::Portion(interval_bucket::State { period, missing })
            }
            Shape::Pair => Self::Pair(Self::pair_from(word, layout)),
            Shape::Log | Shape::Counts => return None,
        })
    }

    #[inline]
    pub(super) fn window_from(word: u64, layout: Layout) -> fixed_window::State {
        let [window, count] = cut(word, [layout.index_bits(), count_bits(layout)]);
        fixed_window::State { window, count }
    }

    #[inline]
    pub(super) fn window_to(state: fixed_window::State, layout: Layout) -> u64 {
        join([
            (state.window, layout.index_bits()),
            (state.count, count_bits(layout)),
        ])
    }

    #[inline]
    pub(super) fn pair_from(word: u64, layout: Layout) -> sliding_counter::State {
        let widths = [layout.index_bits(), pair_bits(layout), pair_bits(layout)];
        let [window, previous, current] = cut(word, widths);
        sliding_counter::State {
            window,
            previous,
            current,
        }
    }

    #[inline]
    pub(super) fn pair_to(state: sliding_counter::State, layout: Layout) -> u64 {
        join([
            (state.window, layout.index_bits()),
            (state.previous, pair_bits(layout)),
            (state.current, pair_bits(layout)),
        ])
    }

    /// Writes the state to a block of [`WIDE_WORDS`].
    pub(super) fn write_wide(self, block: &Block<'_>) {
        let words = match self {
            Self::Instant(ticks) => [low_word(ticks.0), low_word(ticks.0 >> 64), 0],
            Self::Window(state) => [state.window, state.count, 0],
            Self::Portion(state) => [state.period, state.missing, 0],
            Self::Pair(state) => [state.window, state.previous, state.current],
        };
        for (offset, word) in words.into_iter().enumerate() {
            block.put(SOFT_PERIOD + 1 + offset, word);
        }
    }

    /// Reads what `write_wide` wrote.
    pub(super) fn read_wide(block: &Block<'_>, shape: Shape) -> Option<Self> {
        let [a, b, c] = [2, 3, 4].map(|index| block.get(index));
        Some(match shape {
            Shape::Instant => Self::Instant(Ticks((u128::from(b) << 64) | u128::from(a))),
            Shape::Window => Self::Window(fixed_window::State {
                window: a,
                count: b,
            }),
            Shape::Portion => Self::Portion(interval_bucket::State {
                period: a,
                missing: b,
            }),
            Shape::Pair => Self::Pair(sliding_counter::State {
                window: a,
                previous: b,
                current: c,
            }),
            Shape::Log | Shape::Counts => return None,
        })
    }

    /// The state of a caller never seen.
    pub(super) fn unseen(shape: Shape) -> Option<Self> {
        Some(match shape {
            Shape::Instant => Self::Instant(Ticks::default()),
            Shape::Window => Self::Window(fixed_window::State::default()),
            Shape::Portion => Self::Portion(interval_bucket::State::default()),
            Shape::Pair => Self::Pair(sliding_counter::State::default()),
            Shape::Log | Shape::Counts => return None,
        })
    }
}

/// Deciding on a state; one of another algorithm's counts as never seen.
impl State {
    /// What `meter`, an algorithm of fixed size, says to `cost`, and the state to keep.
    #[inline]
    pub(super) fn decide(
        self,
        meter: &Meter,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, Self) {
        match meter {
            Meter::TokenBucket(meter) => {
                let state = token_bucket::State {
                    tat: self.instant(),
                };
                let (decision, next) = meter.decide(state, cost, extra, now);
                (decision, Self::Instant(next.tat))
            }
            Meter::LeakyBucket(meter) => {
                let state = leaky_bucket::State {
                    next_departure: self.instant(),
                };
                let (decision, next) = meter.decide(state, cost, extra, now);
                (decision, Self::Instant(next.next_departure))
            }
            Meter::FixedWindow(meter) => {
                let (decision, next) = meter.decide(self.window(), cost, extra, now);
                (decision, Self::Window(next))
            }
            Meter::IntervalBucket(meter) => {
                let (decision, next) = meter.decide(self.portion(), cost, extra, now);
                (decision, Self::Portion(next))
            }
            Meter::SlidingCounter(meter) => {
                let (decision, next) = meter.decide(self.pair(), cost, extra, now);
                (decision, Self::Pair(next))
            }
            // These keep their state in a block; as far as this state goes, nobody was seen.
            Meter::SlidingLog(meter) => (meter.decide(&NoLog, cost, extra, now).0, self),
            Meter::SubWindows(meter) => (meter.decide(&NoCounts, cost, extra, now).0, self),
        }
    }

    pub(super) fn instant(self) -> Ticks {
        if let Self::Instant(ticks) = self {
            ticks
        } else {
            Ticks::default()
        }
    }

    pub(super) fn window(self) -> fixed_window::State {
        if let Self::Window(state) = self {
            state
        } else {
            fixed_window::State::default()
        }
    }

    fn portion(self) -> interval_bucket::State {
        if let Self::Portion(state) = self {
            state
        } else {
            interval_bucket::State::default()
        }
    }

    fn pair(self) -> sliding_counter::State {
        if let Self::Pair(state) = self {
            state
        } else {
            sliding_counter::State::default()
        }
    }
}

/// When a narrow state expires, from the word alone.
pub(super) fn narrow_expires_at(word: u64, layout: Layout) -> Time {
    let end_of = |index: u64| Time::from_nanos(index.saturating_mul(layout.window));
    match State::from_narrow(word, layout) {
        Some(State::Instant(ticks)) => ticks.ceil(),
        Some(State::Window(state)) => end_of(state.window + 1),
        Some(State::Pair(state)) => end_of(state.window + if state.current > 0 { 2 } else { 1 }),
        Some(State::Portion(state)) => {
            let [_, periods] = cut(word, [layout.index_bits(), PERIODS_BITS]);
            end_of(state.period + periods)
        }
        // An empty slot's tag names no layout, so this is a slot nobody can use: free.
        None => Time::ZERO,
    }
}

/// The period of soft admissions that a block keeps.
pub(super) fn soft_period(block: &Block<'_>) -> Option<SoftPeriod> {
    SoftPeriod::from_word(block.get(SOFT_PERIOD))
}

/// Writes what `soft_period` reads.
pub(super) fn put_soft_period(block: &Block<'_>, period: Option<SoftPeriod>) {
    block.put(SOFT_PERIOD, period.map_or(0, SoftPeriod::to_word));
}

/// Whether every state that `quota` can admit its way into fits a narrow word.
#[inline]
pub(super) fn fits_narrow(quota: &Quota, layout: Layout) -> bool {
    let most = quota.limit().saturating_add(quota.most_extra());
    let fits = |value: u64, bits: u32| value.checked_shr(bits).unwrap_or(0) == 0;
    let counts_fit = match quota.meter() {
        Meter::TokenBucket(bucket) => bucket.has_whole_nanos(),
        Meter::LeakyBucket(bucket) => bucket.has_whole_nanos(),
        Meter::FixedWindow(_) => fits(most, count_bits(layout)),
        Meter::SlidingCounter(_) => fits(most, pair_bits(layout)),
        Meter::IntervalBucket(bucket) => {
            let capacity = bucket.capacity().saturating_add(quota.most_extra());
            let periods = capacity.div_ceil(quota.limit().max(1));
            fits(capacity, missing_bits(layout)) && fits(periods, PERIODS_BITS)
        }
        Meter::SlidingLog(_) | Meter::SubWindows(_) => false,
    };
    counts_fit && !quota.tracks_soft_period()
}

/// Bits for the count of a narrow window.
const fn count_bits(layout: Layout) -> u32 {
    64 - layout.index_bits()
}

/// Bits for each of the two counts of a narrow pair.
const fn pair_bits(layout: Layout) -> u32 {
    (64 - layout.index_bits()) / 2
}

/// Bits for the missing tokens of a narrow portion.
const fn missing_bits(layout: Layout) -> u32 {
    (64 - layout.index_bits()).saturating_sub(PERIODS_BITS)
}

/// Joins fields, each with its width, from the highest bits down, each held at its largest.
#[inline]
fn join<const N: usize>(fields: [(u64, u32); N]) -> u64 {
    let mut word = 0;
    let mut left = u64::BITS;
    for (value, bits) in fields {
        left = left.saturating_sub(bits);
        word |= value.min(mask(bits)).checked_shl(left).unwrap_or(0);
    }
    word
}

/// Cuts fields of those widths from the highest bits down.
#[inline]
fn cut<const N: usize>(word: u64, widths: [u32; N]) -> [u64; N] {
    let mut left = u64::BITS;
    widths.map(|bits| {
        left = left.saturating_sub(bits);
        word.checked_shr(left).unwrap_or(0) & mask(bits)
    })
}

/// The largest number that has `bits` bits.
#[inline]
fn mask(bits: u32) -> u64 {
    1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}

fn low_word(wide: u128) -> u64 {
    u64::try_from(wide & u128::from(u64::MAX)).expect("masked to 64 bits")
}

#[cfg(all(test, not(loom)))]
mod tests;
