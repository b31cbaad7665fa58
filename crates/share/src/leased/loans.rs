//! The loans that this node holds of one counter.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use tidegate_algorithms::Time;
use tidegate_store::Loan;

use super::handle::{CounterHandle, LoanRefund, Released};

/// Loans, oldest first: the one that is being spent, and the next.
#[derive(Debug, Default)]
pub(super) struct HeldLoans(ArrayVec<HeldLoan, 2>);

/// Permits of one loan.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLoan {
    pub(super) loan: Loan,
    pub(super) permits: u64,
    /// The end of the time in which they may be spent, by this node's clock.
    pub(super) until: Time,
}

/// The exactness of the times in receipts.
const RECEIPT_GRAIN: Duration = Duration::from_micros(1);

// === impl HeldLoans ===

impl HeldLoans {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The newest loan.
    pub(super) fn newest(&self) -> Option<&HeldLoan> {
        self.0.last()
    }

    /// The permits that may be spent at `at`.
    #[inline]
    pub(super) fn permits(&self, at: Time) -> u64 {
        let live = self.0.iter().filter(|held| at < held.until);
        live.fold(0, |sum, held| sum.saturating_add(held.permits))
    }

    /// Spends permits of one loan, and returns when that was made.
    #[inline]
    pub(super) fn spend(&mut self, cost: u64, now: Time) -> Option<Time> {
        let is_enough = |held: &&mut HeldLoan| now < held.until && held.permits >= cost;
        let held = self.0.iter_mut().find(is_enough)?;
        held.permits -= cost;
        Some(held.loan.now)
    }

    /// Puts permits back into the loan that was made at `lent`. Returns false if that is gone.
    pub(super) fn put_back(&mut self, cost: u64, lent: Time) -> bool {
        let found = self.0.iter_mut().find(|held| held.loan.now == lent);
        found.map(|held| held.permits += cost).is_some()
    }

    /// Refunds permits to the loan that was made at `lent`, as exactly as a receipt tells it. Returns false if
    /// that is gone.
    pub(super) fn refund(&mut self, cost: u64, lent: Time) -> bool {
        let is_own = |held: &&mut HeldLoan| {
            let made = held.loan.now;
            made >= lent && made.since(lent) < RECEIPT_GRAIN
        };
        let found = self.0.iter_mut().find(is_own);
        found.map(|held| held.permits += cost).is_some()
    }

    /// Whether there is room for another loan.
    pub(super) fn has_room(&self, now: Time) -> bool {
        let is_of_use = |held: &HeldLoan| now < held.until && held.permits > 0;
        !self.0.is_full() || !self.0.iter().all(is_of_use)
    }

    /// Adds a loan. Returns it if there is no room.
    pub(super) fn add(&mut self, held: HeldLoan) -> Option<HeldLoan> {
        if self.0.is_full() {
            // A request that puts back permits of a spent loan finds it gone, and they lapse.
            self.0.retain(|held| held.permits > 0);
        }
        let full = self.0.try_push(held).err()?;
        Some(full.element())
    }

    /// The first time at which permits can no longer be spent.
    pub(super) fn first_end(&self) -> Option<Time> {
        self.0.iter().map(|held| held.until).min()
    }

    /// Releases the loans for which `is_due`. Those for which `is_forgotten` are not given back.
    pub(super) fn release(
        &mut self,
        handle: &Arc<CounterHandle>,
        released: &mut Released,
        is_due: impl Fn(&HeldLoan) -> bool,
        is_forgotten: impl Fn(&HeldLoan) -> bool,
    ) {
        self.0.retain(|held| {
            if !is_due(held) {
                return true;
            }
            if is_forgotten(held) {
                released.lapsed += held.permits;
            } else if held.permits > 0 {
                released.refunds.push(LoanRefund {
                    handle: Arc::clone(handle),
                    loan: held.loan,
                    permits: held.permits,
                });
            }
            false
        });
    }
}

// === impl HeldLoan ===

impl HeldLoan {
    /// Whether the loan lives its whole life, and is not cut by the end of a window.
    pub(super) fn is_whole(&self, life: Duration) -> bool {
        self.loan.ends.since(self.loan.now) >= life
    }
}
