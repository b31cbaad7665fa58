//! Windows as lists of what was charged in which.

use super::Numbers;
use crate::Rounding;

/// Fixed windows.
#[derive(Clone, Debug)]
pub(super) struct Clocked {
    window: u128,
    /// The newest window seen.
    newest: u128,
    charged: u128,
}

/// Sub-windows of a sliding window.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    span: u128,
    parts: u128,
    rounding: Rounding,
    /// The newest sub-window seen.
    newest: u128,
    /// Sub-window and what was charged in it, oldest first, one for each charge.
    charges: Vec<(u128, u128)>,
}

// === impl Clocked ===

impl Clocked {
    pub(super) fn new(numbers: Numbers) -> Self {
        Self {
            window: numbers.window,
            newest: 0,
            charged: 0,
        }
    }

    pub(super) fn window_at(&self, at: u128) -> u128 {
        let least = if self.charged == 0 { 0 } else { self.newest };
        (at / self.window).max(least)
    }

    pub(super) fn used(&self, at: u128) -> u128 {
        if self.window_at(at) == self.newest {
            self.charged
        } else {
            0
        }
    }

    pub(super) fn settle(&mut self, now: u128) {
        self.charged = self.used(now);
        self.newest = self.window_at(now);
    }

    pub(super) fn charge(&mut self, cost: u128) {
        self.charged += cost;
    }

    /// Counts stop at 64 bits.
    pub(super) fn count_refused(&mut self, cost: u128) {
        self.charged = (self.charged + cost).min(u128::from(u64::MAX));
    }

    pub(super) fn refund(&mut self, cost: u128) {
        self.charged = self.charged.saturating_sub(cost);
    }

    pub(super) fn refund_charge(&mut self, cost: u128, at: u128) {
        if at / self.window == self.newest {
            self.refund(cost);
        }
    }
}

// === impl Buckets ===

impl Buckets {
    pub(super) fn new(numbers: Numbers, parts: u16, rounding: Rounding) -> Self {
        let parts = u128::from(parts);
        let span = numbers.window.div_ceil(parts);
        Self {
            span,
            parts,
            rounding,
            newest: 0,
            charges: Vec::new(),
        }
    }

    fn newest_at(&self, at: u128) -> u128 {
        let is_empty = self.charges.iter().all(|(_, cost)| *cost == 0);
        let least = if is_empty { 0 } else { self.newest };
        (at / self.span).max(least)
    }

    pub(super) fn used(&self, at: u128) -> u128 {
        let newest = self.newest_at(at);
        let into_newest = at.saturating_sub(newest * self.span);
        let charged = |wanted: &dyn Fn(u128) -> bool| -> u128 {
            self.charges
                .iter()
                .filter(|(index, _)| wanted(*index))
                .map(|(_, cost)| cost)
                .sum()
        };
        let whole = charged(&|index| index + self.parts > newest);
        let fading = charged(&|index| index + self.parts == newest) * (self.span - into_newest);
        whole
            + match self.rounding {
                Rounding::Down => fading / self.span,
                Rounding::Up => fading.div_ceil(self.span),
            }
    }

    pub(super) fn settle(&mut self, now: u128) {
        self.newest = self.newest_at(now);
        let oldest = self.newest.saturating_sub(self.parts);
        self.charges
            .retain(|(index, cost)| *index >= oldest && *cost > 0);
    }

    pub(super) fn charge(&mut self, cost: u128) {
        self.charges.push((self.newest, cost));
    }

    pub(super) fn refund(&mut self, cost: u128) {
        let mut left = cost;
        for (_, charged) in self.charges.iter_mut().rev() {
            let taken = left.min(*charged);
            *charged -= taken;
            left -= taken;
        }
    }

    pub(super) fn refund_charge(&mut self, cost: u128, at: u128) {
        let mut left = cost;
        let is_own = |(index, _): &&mut (u128, u128)| *index == at / self.span;
        for (_, charged) in self.charges.iter_mut().filter(is_own) {
            let taken = left.min(*charged);
            *charged -= taken;
            left -= taken;
        }
    }
}
