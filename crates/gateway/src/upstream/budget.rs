//! The budget of retries: an upstream that fails must not get a multiple of its load.

use std::sync::atomic::{AtomicU64, Ordering};

/// Tokens for retries, in thousandths: each request adds a part of one, each retry takes one. So retries are never more than the
/// configured share of all requests, and [`FLOOR`] besides.
#[derive(Debug)]
pub(super) struct RetryBudget {
    millitokens: AtomicU64,
}

/// Retries that a rare caller has before any request has paid for them.
const FLOOR: u64 = 10;
/// The most that is saved up: as many retries as the loss of one busy target needs at once.
const CAPACITY: u64 = 1_000;
const TOKEN: u64 = 1_000;

// === impl RetryBudget ===

impl RetryBudget {
    /// Adds the share of one request.
    pub(super) fn deposit(&self, percent: u32) {
        let share = u64::from(percent) * TOKEN / 100;
        let tokens = self.millitokens.load(Ordering::Relaxed);
        if tokens < CAPACITY * TOKEN {
            // May overshoot the capacity by a token for each thread.
            self.millitokens.fetch_add(share, Ordering::Relaxed);
        }
    }

    /// Takes the token of one retry, if there is one.
    pub(super) fn withdraw(&self) -> bool {
        self.millitokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| {
                tokens.checked_sub(TOKEN)
            })
            .is_ok()
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            millitokens: AtomicU64::new(FLOOR * TOKEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBudget;

    #[test]
    fn a_fifth_of_all_requests_may_be_retried_and_ten_besides() {
        let budget = RetryBudget::default();
        for _ in 0..100 {
            budget.deposit(20);
        }
        let n_retries = (0..1_000).filter(|_| budget.withdraw()).count();
        assert_eq!(n_retries, 30);
    }

    #[test]
    fn savings_are_bounded() {
        let budget = RetryBudget::default();
        for _ in 0..1_000_000 {
            budget.deposit(20);
        }
        let n_retries = (0..1_000_000).filter(|_| budget.withdraw()).count();
        assert_eq!(n_retries, 1_000);
    }
}
