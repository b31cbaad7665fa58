//! Buckets as a level that rises.

use super::Numbers;

/// A bucket that tokens drip into. The level is in the time that tokens take, in 2^-32 ns, so that
/// it is exact.
#[derive(Clone, Debug)]
pub(super) struct Drip {
    /// The time of one token.
    token: i128,
    full: i128,
    /// The lowest level that charges can leave.
    lowest: i128,
    /// What the level was `at` that time; above full means full since long.
    level: i128,
    at: i128,
}

/// A bucket that whole portions drop into.
#[derive(Clone, Debug)]
pub(super) struct Portions {
    numbers: Numbers,
    /// Tokens in the bucket; below 0 is debt.
    tokens: i128,
    period: u128,
}

const TICKS: i128 = 1 << 32;

// === impl Drip ===

impl Drip {
    pub(super) fn new(numbers: Numbers) -> Self {
        let Numbers {
            limit,
            window,
            capacity,
            extra,
            ..
        } = numbers;
        let limit = limit.max(1);
        let whole = window.div_ceil(limit);
        let close_enough = whole * limit * 1_000_000 <= window * 1_000_001;
        let token = if close_enough {
            whole << 32
        } else {
            (window << 32).div_ceil(limit)
        };
        let token = signed(token);
        let full = signed(capacity) * token;
        Self {
            token,
            full,
            lowest: -(signed(extra) * token),
            level: full,
            at: 0,
        }
    }

    fn level(&self, at: u128) -> i128 {
        let level = self
            .level
            .saturating_add(signed(at) * TICKS - self.at)
            .min(self.full);
        if level < self.lowest { 0 } else { level }
    }

    /// `cost` is at most `most`, which is at least the capacity.
    pub(super) fn fits(&self, cost: u128, most: u128, at: u128) -> bool {
        let credit = signed(most) * self.token - self.full;
        self.level(at) + credit >= signed(cost) * self.token
    }

    pub(super) fn is_full(&self, at: u128) -> bool {
        self.level(at) == self.full
    }

    /// Makes a clamp last.
    pub(super) fn settle(&mut self, now: u128) {
        if self.level(now) < self.full {
            (self.level, self.at) = (self.level(now), signed(now) * TICKS);
        }
    }

    pub(super) fn charge(&mut self, cost: u128, now: u128) {
        if cost > 0 {
            let level = self.level(now) - signed(cost) * self.token;
            (self.level, self.at) = (level, signed(now) * TICKS);
        }
    }

    /// Charges what does not fit, but never below the lowest level.
    pub(super) fn debit(&mut self, cost: u128, now: u128) {
        let cost = signed(cost).saturating_mul(self.token);
        let level = self.level(now).saturating_sub(cost).max(self.lowest);
        (self.level, self.at) = (level, signed(now) * TICKS);
    }

    pub(super) fn refund(&mut self, cost: u128) {
        self.level = self
            .level
            .saturating_add(signed(cost).saturating_mul(self.token));
    }

    /// Refunds what was charged so many nanoseconds ago, less what dripped in since.
    pub(super) fn refund_late(&mut self, cost: u128, ago: u128) {
        let taken = signed(cost).saturating_mul(self.token);
        let left = taken.saturating_sub(signed(ago) * TICKS).max(0);
        self.level = self.level.saturating_add(left);
    }
}

// === impl Portions ===

impl Portions {
    pub(super) fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            tokens: signed(numbers.capacity),
            period: 0,
        }
    }

    fn period_at(&self, at: u128) -> u128 {
        let is_full = self.tokens == signed(self.numbers.capacity);
        let least = if is_full { 0 } else { self.period };
        (at / self.numbers.window).max(least)
    }

    fn tokens(&self, at: u128) -> i128 {
        let periods = self.period_at(at).saturating_sub(self.period);
        let dropped = signed(periods * self.numbers.limit);
        let is_forgotten = self.numbers.is_postpaid && periods > 0;
        let tokens = if is_forgotten {
            self.tokens.max(0)
        } else {
            self.tokens
        };
        (tokens + dropped).min(signed(self.numbers.capacity))
    }

    pub(super) fn used(&self, at: u128) -> u128 {
        (signed(self.numbers.capacity) - self.tokens(at)).unsigned_abs()
    }

    pub(super) fn settle(&mut self, now: u128) {
        (self.tokens, self.period) = (self.tokens(now), self.period_at(now));
    }

    pub(super) fn charge(&mut self, cost: u128) {
        self.tokens -= signed(cost);
    }

    pub(super) fn refund(&mut self, cost: u128) {
        self.tokens = (self.tokens + signed(cost)).min(signed(self.numbers.capacity));
    }

    /// Refunds what was charged `at` that time, less the portions since.
    pub(super) fn refund_late(&mut self, cost: u128, at: u128) {
        let portions = self.period.saturating_sub(at / self.numbers.window);
        let dropped = portions.saturating_mul(self.numbers.limit);
        let may_be_forgotten = self.numbers.is_postpaid && portions > 0;
        let forgotten = if may_be_forgotten {
            self.numbers.extra
        } else {
            0
        };
        self.refund(cost.saturating_sub(dropped + forgotten));
    }
}

fn signed(number: u128) -> i128 {
    i128::try_from(number).unwrap_or(i128::MAX)
}
