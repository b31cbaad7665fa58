//! What the algorithms that count in plain numbers share: the comparison with the limit, and the
//! weight of a window that the sliding window still overlaps in part.

use std::time::Duration;

use crate::{Outcome, Retry, Rounding, Standing, Time};

/// How much may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Ordinarily.
    pub(crate) limit: u64,
    /// At most on top of it: an allowance, or debt.
    pub(crate) most_extra: u64,
    /// True if a cost that does not fit is charged all the same.
    pub(crate) is_postpaid: bool,
}

/// How a request compares with the room there is.
pub(crate) enum Fit {
    /// It fits.
    Fits(Standing),
    /// It will fit once no more than this is used.
    Later {
        /// What may be used by others.
        room: u64,
    },
    /// It can never fit.
    Never,
    /// It does not fit, but is charged up to the most debt. A cost of 1 fits again once no more than
    /// `room` is used.
    Debited {
        /// What is charged.
        cost: u64,
        /// What may be used by others.
        room: u64,
    },
}

/// Weighs the count of one window by the part of it that is still in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Length of the window in nanoseconds, not 0.
    pub(crate) span: u64,
    pub(crate) rounding: Rounding,
}

// === impl Room ===

impl Room {
    /// Compares `cost` on top of `used`. An `extra` above the most there may be is cut to it.
    #[inline]
    pub(crate) fn fit(&self, used: u64, cost: u64, extra: u64) -> Fit {
        let most = self.limit.saturating_add(extra.min(self.most_extra));
        if self.is_postpaid {
            return self.fit_postpaid(used, cost, most);
        }
        if cost > most || (self.limit == 0 && cost > 0) {
            return Fit::Never;
        }
        let after = used.saturating_add(cost);
        if after <= self.limit {
            Fit::Fits(Standing::Within)
        } else if after <= most {
            Fit::Fits(Standing::Over)
        } else {
            Fit::Later { room: most - cost }
        }
    }

    /// A look is denied as soon as a cost of 1 does not fit.
    #[cold]
    fn fit_postpaid(&self, used: u64, cost: u64, most: u64) -> Fit {
        let Some(room) = self.limit.checked_sub(1) else {
            return Fit::Never;
        };
        let after = used.saturating_add(cost);
        match cost {
            0 if used > room => Fit::Later { room },
            _ if after <= self.limit => Fit::Fits(Standing::Within),
            _ if after <= most => Fit::Fits(Standing::Over),
            _ => {
                let most = self.limit.saturating_add(self.most_extra);
                let cost = cost.min(most.saturating_sub(used));
                Fit::Debited { cost, room }
            }
        }
    }
}

// === impl Weight ===

impl Weight {
    /// `count` times `overlap` (of at most the whole span) over the span, rounded.
    #[inline]
    pub(crate) fn weighed(&self, count: u64, overlap: u64) -> u64 {
        if count == 0 || overlap >= self.span {
            return count;
        }
        let rounded_up = match self.rounding {
            Rounding::Down => 0,
            Rounding::Up => self.span - 1,
        };
        // Not more than the count itself, as the overlap is less than the span.
        muldiv(count, overlap, rounded_up, self.span).unwrap_or(count)
    }

    /// The largest overlap, up to the whole span, at which `count` weighs no more than `room`;
    /// `None` if it weighs more even in the last nanosecond.
    #[inline]
    pub(crate) fn widest_overlap(&self, count: u64, room: u64) -> Option<u64> {
        if count <= room {
            return Some(self.span);
        }
        let below_the_next = match self.rounding {
            Rounding::Down => self.span - 1,
            Rounding::Up => 0,
        };
        // With the count above the room the quotient is at most the span.
        muldiv(room, self.span, below_the_next, count).filter(|&overlap| overlap > 0)
    }
}

/// `(a * b + c) / d` rounded down, in 64 bits where that is enough; `None` if the quotient does not
/// fit. The divisor is not 0.
#[inline]
fn muldiv(a: u64, b: u64, c: u64, d: u64) -> Option<u64> {
    if let Some(dividend) = a.checked_mul(b).and_then(|product| product.checked_add(c)) {
        return Some(dividend / d);
    }
    let dividend = u128::from(a) * u128::from(b) + u128::from(c);
    u64::try_from(dividend / u128::from(d)).ok()
}

/// The outcome without a delay.
#[inline]
pub(crate) const fn allowed(standing: Standing) -> Outcome {
    Outcome::Allowed {
        standing,
        delay: Duration::ZERO,
    }
}

pub(crate) const fn denied_for(wait: Duration) -> Outcome {
    Outcome::Denied {
        retry: Retry::After(wait),
    }
}

pub(crate) const NEVER: Outcome = Outcome::Denied {
    retry: Retry::Never,
};

/// How long from `now` until `nanos` since the epoch; zero if that is past.
#[inline]
pub(crate) const fn until(nanos: u64, now: Time) -> Duration {
    Duration::from_nanos(nanos.saturating_sub(now.nanos()))
}
