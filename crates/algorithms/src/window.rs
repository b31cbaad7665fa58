//! What the algorithms that count in plain numbers share: the comparison with the limit, and the
//! weight of a window that the sliding window still overlaps in part.

use std::time::Duration;

use crate::{Outcome, Retry, Rounding, Standing, Time};

/// How much may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Ordinarily.
    pub(crate) limit: u64,
    /// At most on top of it.
    pub(crate) most_extra: u64,
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
}

// === impl Weight ===

impl Weight {
    /// `count` times `overlap` (of at most the whole span) over the span, rounded.
    #[inline]
    pub(crate) fn weighed(&self, count: u64, overlap: u64) -> u64 {
        if count == 0 || overlap >= self.span {
            return count;
        }
        if let Some(product) = count.checked_mul(overlap) {
            return match self.rounding {
                Rounding::Down => product / self.span,
                Rounding::Up => product.div_ceil(self.span),
            };
        }
        let (product, span) = (
            u128::from(count) * u128::from(overlap),
            u128::from(self.span),
        );
        let weighed = match self.rounding {
            Rounding::Down => product / span,
            Rounding::Up => product.div_ceil(span),
        };
        // Not more than the count itself, as the overlap is less than the span.
        u64::try_from(weighed).unwrap_or(count)
    }

    /// The largest overlap, up to the whole span, at which `count` weighs no more than `room`;
    /// `None` if it weighs more even in the last nanosecond.
    pub(crate) fn widest_overlap(&self, count: u64, room: u64) -> Option<u64> {
        if count <= room {
            return Some(self.span);
        }
        let span = u128::from(self.span);
        let widest = match self.rounding {
            Rounding::Down => ((u128::from(room) + 1) * span - 1) / u128::from(count),
            Rounding::Up => u128::from(room) * span / u128::from(count),
        };
        // With the count above the room the quotient is at most the span.
        u64::try_from(widest).ok().filter(|&overlap| overlap > 0)
    }
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
