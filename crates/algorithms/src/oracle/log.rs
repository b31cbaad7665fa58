//! The log as a list of times, one for each unit of cost.

use super::Numbers;

#[derive(Clone, Debug)]
pub(super) struct Stamps {
    window: u128,
    grain: u128,
    capacity: usize,
    log_refused: bool,
    /// When each was, in nanoseconds, rounded up to a grain, oldest first.
    taken_at: Vec<u128>,
}

// === impl Stamps ===

impl Stamps {
    pub(super) fn new(numbers: Numbers, log_refused: bool) -> Self {
        let Numbers {
            window,
            capacity,
            extra,
            ..
        } = numbers;
        let capacity = usize::try_from(capacity + extra).unwrap_or(usize::MAX);
        Self {
            window,
            grain: grain(window),
            capacity,
            log_refused,
            taken_at: Vec::new(),
        }
    }

    pub(super) fn used(&self, at: u128) -> u128 {
        self.taken_at
            .iter()
            .map(|stamp| u128::from(stamp + self.window > at))
            .sum()
    }

    pub(super) fn settle(&mut self, now: u128) {
        self.taken_at.retain(|stamp| stamp + self.window > now);
    }

    pub(super) fn charge(&mut self, cost: u128, now: u128) {
        let stamp = now.next_multiple_of(self.grain);
        let stamp = self
            .taken_at
            .last()
            .map_or(stamp, |newest| stamp.max(*newest));
        let copies = usize::try_from(cost)
            .unwrap_or(usize::MAX)
            .min(self.capacity);
        self.taken_at.extend(std::iter::repeat_n(stamp, copies));
    }

    pub(super) fn refuse(&mut self, cost: u128, now: u128) {
        if self.log_refused {
            self.debit(cost, now);
        }
    }

    /// Charges what does not fit: the oldest make way.
    pub(super) fn debit(&mut self, cost: u128, now: u128) {
        if cost > 0 {
            self.charge(cost, now);
            let too_many = self.taken_at.len().saturating_sub(self.capacity);
            self.taken_at.drain(..too_many);
        }
    }

    pub(super) fn refund(&mut self, cost: u128) {
        let cost = usize::try_from(cost).unwrap_or(usize::MAX);
        self.taken_at
            .truncate(self.taken_at.len().saturating_sub(cost));
    }

    /// Forgets the first entries from the charge on, while its own would be in the window.
    pub(super) fn refund_charge(&mut self, cost: u128, at: u128, now: u128) {
        let stamp = at.next_multiple_of(self.grain);
        let mut left = if stamp + self.window > now { cost } else { 0 };
        self.taken_at.retain(|entry| {
            let is_refunded = *entry >= stamp && left > 0;
            left -= u128::from(is_refunded);
            !is_refunded
        });
    }
}

/// As the documentation of the log's grain says.
fn grain(window: u128) -> u128 {
    let seconds = window.div_ceil(1_000_000_000);
    match seconds {
        0..=4 => 1,
        5..=4_200 => 1_000,
        4_201..=4_233_600 => 1_000_000,
        _ => 1_000_000_000,
    }
}
