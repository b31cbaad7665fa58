//! The generic cell rate algorithm: the arithmetic that the token and the leaky bucket share.
//!
//! A bucket is one number, the theoretical arrival time: the instant at which it is full again
//! (token bucket) or empty again (leaky bucket). How far that lies ahead of `now`, in emission
//! intervals, is what is used of the capacity.

use std::ops::{Add, Div, Mul, Sub};
use std::time::Duration;

use crate::window::Room;
use crate::{Decision, Outcome, QuotaError, Retry, Standing, Ticks, Time};

/// The numbers of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gcra {
    /// Requests that an unused bucket admits at one instant.
    capacity: u64,
    /// The most that may ever be admitted on top of it, or charged as debt.
    most_extra: u64,
    /// True if a cost that does not fit is charged all the same.
    is_postpaid: bool,
    pace: Pace,
}

/// The spans of time that a bucket works with, for a store that does the arithmetic elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// What one request takes.
    pub interval: Ticks,
    /// What the capacity takes.
    pub capacity: Ticks,
    /// What the capacity and the most that may ever pass over it take. A bucket that is further ahead
    /// than this counts as one that is ahead by its capacity.
    pub bound: Ticks,
}

/// What the arithmetic says of one request.
pub(crate) struct Weighed<T> {
    pub(crate) decision: Decision,
    /// The arrival time to keep if the request is charged; of a denied one, the old one, clamped.
    pub(crate) tat: T,
    /// How long before the request the bucket still held others.
    pub(crate) backlog: Duration,
}

/// The emission interval, in the coarser unit where that is true enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// In whole nanoseconds: the hot path, all in 64 bits.
    Whole(Scale<u64>),
    /// In ticks of 2^-32 ns.
    Fine(Scale<u128>),
}

/// Spans of time in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale<N> {
    /// What one request takes.
    interval: N,
    /// What the capacity takes.
    capacity: N,
    /// What the capacity and the most extra take together.
    bound: N,
}

/// An unsigned span of time in some unit.
trait Span:
    Copy
    + Ord
    + From<u64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// As a number of requests, saturating.
    fn count(self) -> u64;
    /// Rounded up to a nanosecond, saturating.
    fn duration(self) -> Duration;
}

// === impl Gcra ===

impl Gcra {
    /// `limit` requests per `window_nanos`; a limit of 0 has no capacity, whatever `room` says.
    pub(crate) fn new(limit: u64, window_nanos: u64, room: Room) -> Result<Self, QuotaError> {
        let (limit, capacity, most_extra) = if limit == 0 {
            (window_nanos, 0, 0)
        } else {
            (limit, room.limit, room.most_extra)
        };
        let most = capacity
            .checked_add(most_extra)
            .ok_or(QuotaError::CapacityTooLarge)?;
        let pace = Pace::new(limit, window_nanos, capacity, most)?;
        Ok(Self {
            capacity,
            most_extra,
            is_postpaid: room.is_postpaid,
            pace,
        })
    }

    #[inline]
    pub(crate) fn weigh(&self, tat: Ticks, cost: u64, extra: u64, now: Time) -> Weighed<Ticks> {
        match (&self.pace, tat.whole_nanos()) {
            (Pace::Whole(scale), Some(tat)) => {
                let weighed = self.weigh_on(scale, tat, cost, extra, now);
                Weighed {
                    decision: weighed.decision,
                    tat: Ticks::from_nanos(weighed.tat),
                    backlog: weighed.backlog,
                }
            }
            (Pace::Whole(scale), None) => self.weigh_fine(&scale.fine(), tat, cost, extra, now),
            (Pace::Fine(scale), _) => self.weigh_fine(scale, tat, cost, extra, now),
        }
    }

    /// The same in whole nanoseconds; `None` for a bucket whose requests do not take such.
    #[inline]
    pub(crate) fn weigh_whole(
        &self,
        tat: u64,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> Option<Weighed<u64>> {
        match &self.pace {
            Pace::Whole(scale) => Some(self.weigh_on(scale, tat, cost, extra, now)),
            Pace::Fine(_) => None,
        }
    }

    #[inline]
    fn weigh_on(
        &self,
        scale: &Scale<u64>,
        tat: u64,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> Weighed<u64> {
        let ahead = scale.clamp(tat.saturating_sub(now.nanos()));
        let (decision, after) = self.decide(scale, ahead, cost, extra);
        Weighed {
            decision,
            // A look at an unused bucket leaves it as it is. Else at most twice `Time::MAX`: both
            // summands are at most that.
            tat: if after == 0 { tat } else { now.nanos() + after },
            backlog: ahead.duration(),
        }
    }

    pub(crate) fn spans(&self) -> Spans {
        let Scale {
            interval,
            capacity,
            bound,
        } = self.pace.fine();
        Spans {
            interval: Ticks(interval),
            capacity: Ticks(capacity),
            bound: Ticks(bound),
        }
    }

    /// Whether one request takes a whole number of nanoseconds.
    pub(crate) const fn has_whole_nanos(&self) -> bool {
        matches!(self.pace, Pace::Whole(_))
    }

    /// The arrival time after a refund of `cost`, less the span `lost`.
    #[must_use]
    pub(crate) fn refund(&self, tat: Ticks, cost: u64, lost: Duration, now: Time) -> Ticks {
        let scale = self.pace.fine();
        let now = Ticks::at(now);
        let ahead = scale.clamp(tat.0.saturating_sub(now.0));
        let lost = lost.as_nanos().saturating_mul(Ticks::PER_NANO);
        let back = scale.interval.saturating_mul(u128::from(cost));
        let back = back.saturating_sub(lost);
        Ticks(if ahead == 0 { tat.0 } else { now.0 + ahead }.saturating_sub(back))
    }

    fn weigh_fine(
        &self,
        scale: &Scale<u128>,
        tat: Ticks,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> Weighed<Ticks> {
        let now = Ticks::at(now);
        let ahead = scale.clamp(tat.0.saturating_sub(now.0));
        let (decision, after) = self.decide(scale, ahead, cost, extra);
        Weighed {
            decision,
            tat: if after == 0 {
                tat
            } else {
                Ticks(now.0 + after)
            },
            backlog: ahead.duration(),
        }
    }

    /// Decides on a bucket that is `ahead` of now, and says how far it is afterwards.
    #[inline]
    fn decide<N: Span>(&self, scale: &Scale<N>, ahead: N, cost: u64, extra: u64) -> (Decision, N) {
        // With the extra cut to what was validated no sum or product below can overflow.
        let extra = extra.min(self.most_extra);
        let (outcome, after) = if self.is_postpaid {
            self.debit(scale, ahead, cost, extra)
        } else {
            self.fit(scale, ahead, cost, extra)
        };
        (self.decision(scale, after, outcome), after)
    }

    /// Says whether a cost fits: one that does not leaves the bucket as it is.
    #[inline]
    fn fit<N: Span>(&self, scale: &Scale<N>, ahead: N, cost: u64, extra: u64) -> (Outcome, N) {
        if cost > self.capacity + extra {
            let retry = Retry::Never;
            return (Outcome::Denied { retry }, ahead);
        }
        let after = ahead + N::from(cost) * scale.interval;
        let most = scale.capacity + N::from(extra) * scale.interval;
        if after > most {
            let retry = Retry::After((after - most).duration());
            return (Outcome::Denied { retry }, ahead);
        }
        (scale.allowed(after), after)
    }

    /// Says whether a cost fits a postpaid bucket: one that does not is charged up to the bound. Denied, the retry
    /// says when a cost of 1 fits; a look is denied as soon as one does not.
    #[cold]
    #[inline(never)]
    fn debit<N: Span>(&self, scale: &Scale<N>, ahead: N, cost: u64, extra: u64) -> (Outcome, N) {
        // A larger cost makes no difference, and could overflow.
        let counted = cost.min(self.capacity + self.most_extra);
        let wanted = ahead + N::from(counted) * scale.interval;
        let after = wanted.min(scale.bound);
        let most = scale.capacity + N::from(extra) * scale.interval;
        let is_full = cost == 0 && ahead + scale.interval > scale.capacity;
        if wanted > most || cost > counted || is_full {
            let wait = after + scale.interval - scale.capacity;
            let retry = Retry::After(wait.duration());
            return (Outcome::Denied { retry }, after);
        }
        (scale.allowed(after), after)
    }

    #[inline]
    fn decision<N: Span>(&self, scale: &Scale<N>, ahead: N, outcome: Outcome) -> Decision {
        // The one division of a decision.
        let remaining = if ahead > scale.capacity {
            0
        } else {
            ((scale.capacity - ahead) / scale.interval).count()
        };
        Decision {
            outcome,
            limit: self.capacity,
            remaining,
            reset_after: ahead.duration(),
        }
    }
}

// === impl Pace ===

impl Pace {
    /// Fails if `most` requests take longer than [`Time::MAX`].
    fn new(limit: u64, window_nanos: u64, capacity: u64, most: u64) -> Result<Self, QuotaError> {
        let whole = window_nanos.div_ceil(limit);
        // How much longer than the window `limit` whole intervals take: at most one in a million?
        let surplus = u128::from(whole) * u128::from(limit) - u128::from(window_nanos);
        if surplus * 1_000_000 <= u128::from(window_nanos) {
            let bound = whole
                .checked_mul(most)
                .filter(|&bound| bound <= Time::MAX.nanos());
            let bound = bound.ok_or(QuotaError::CapacityTooLarge)?;
            Ok(Self::Whole(Scale {
                interval: whole,
                capacity: whole * capacity,
                bound,
            }))
        } else {
            let interval = Ticks::from_nanos(window_nanos)
                .0
                .div_ceil(u128::from(limit));
            let bound = interval.checked_mul(u128::from(most));
            let bound = bound.filter(|&bound| bound <= Ticks::at(Time::MAX).0);
            let bound = bound.ok_or(QuotaError::CapacityTooLarge)?;
            Ok(Self::Fine(Scale {
                interval,
                capacity: interval * u128::from(capacity),
                bound,
            }))
        }
    }

    fn fine(&self) -> Scale<u128> {
        match self {
            Self::Whole(scale) => scale.fine(),
            Self::Fine(scale) => *scale,
        }
    }
}

// === impl Scale ===

impl<N: Span> Scale<N> {
    /// The outcome for a request that brings the bucket to `after`.
    #[inline]
    fn allowed(&self, after: N) -> Outcome {
        let standing = if after > self.capacity {
            Standing::Over
        } else {
            Standing::Within
        };
        Outcome::Allowed {
            standing,
            delay: Duration::ZERO,
        }
    }

    /// A bucket further ahead than any charge can have brought it was left by a larger limit or by
    /// a clock that stepped back since: it counts as one that is exactly used up.
    #[inline]
    fn clamp(&self, ahead: N) -> N {
        if ahead > self.bound {
            self.capacity
        } else {
            ahead
        }
    }
}

impl Scale<u64> {
    fn fine(&self) -> Scale<u128> {
        let fine = |nanos| Ticks::from_nanos(nanos).0;
        Scale {
            interval: fine(self.interval),
            capacity: fine(self.capacity),
            bound: fine(self.bound),
        }
    }
}

// === impl Span ===

impl Span for u64 {
    #[inline]
    fn count(self) -> u64 {
        self
    }

    #[inline]
    fn duration(self) -> Duration {
        Duration::from_nanos(self)
    }
}

impl Span for u128 {
    fn count(self) -> u64 {
        u64::try_from(self).unwrap_or(u64::MAX)
    }

    fn duration(self) -> Duration {
        Duration::from_nanos(self.div_ceil(Ticks::PER_NANO).count())
    }
}
