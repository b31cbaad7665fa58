//! Drawing: one at a time for a key, by the request that ran dry or ahead of need by the way.

use std::pin::Pin;
use std::sync::Arc;

use tidegate_algorithms::{Decision, Time};
use tidegate_store::{Charge, Charging, Clock, Lender, Loan, StoreError};
use tokio::runtime::Handle;

use super::borrower::{Borrower, Plan};
use super::purse::{Purse, Step};
use super::{Leased, Ordering};
use crate::reckoning::Heard;

/// How often a request waits for the draws of others before it asks for itself.
const MOST_WAITS: u32 = 2;

/// What became of a request for one leased limit.
pub(crate) enum Taken<'a> {
    /// It is decided.
    Decided(Decision),
    /// The store is to be asked for it, strictly.
    Ask,
    /// It is decided when a draw has come to something; `None` if the store is to be asked.
    Later(Pin<Box<dyn Future<Output = Result<Option<Decision>, StoreError>> + Send + 'a>>),
}

/// A draw under way. Dropped before it is settled, it has failed: whoever waits for it is woken either
/// way, and the next one may draw.
struct Underway<'a, R, M: Clock> {
    leased: &'a Leased<R, M>,
    borrower: &'a Arc<Borrower>,
    is_settled: bool,
}

// === impl Leased ===

impl<R: Lender + 'static, M: Clock + 'static> Leased<R, M> {
    /// Decides on a request for one limit.
    #[inline]
    pub(crate) fn take_alone<'a>(
        self: &'a Arc<Self>,
        charge: &'a Charge<'a>,
        charging: Charging,
    ) -> Taken<'a> {
        match self.step(charge, charging) {
            Step::Spent(decision, None) | Step::Refused(decision) => Taken::Decided(decision),
            Step::Spent(decision, plan) => {
                self.draw_ahead(plan);
                Taken::Decided(decision)
            }
            Step::Ask => Taken::Ask,
            step @ (Step::Wait(_) | Step::Draw(_)) => {
                Taken::Later(Box::pin(self.take_slowly(charge, charging, step)))
            }
        }
    }

    async fn take_slowly(
        self: &Arc<Self>,
        charge: &Charge<'_>,
        charging: Charging,
        mut step: Step,
    ) -> Result<Option<Decision>, StoreError> {
        let mut n_waits = 0;
        loop {
            match step {
                Step::Wait(landed) if n_waits < MOST_WAITS => {
                    n_waits += 1;
                    landed.await;
                }
                Step::Draw(plan) => return self.draw(&plan, charge.cost).await.map(Some),
                Step::Spent(decision, plan) => {
                    self.draw_ahead(plan);
                    return Ok(Some(decision));
                }
                Step::Refused(decision) => return Ok(Some(decision)),
                Step::Wait(_) | Step::Ask => return Ok(None),
            }
            step = self.step(charge, charging);
        }
    }

    /// Draws in a task of its own, if there is a runtime; else the request that runs dry draws for itself.
    pub(super) fn draw_ahead(self: &Arc<Self>, plan: Option<Plan>) {
        let Some(plan) = plan else { return };
        match Handle::try_current() {
            Ok(runtime) => {
                let leased = Arc::clone(self);
                runtime.spawn(async move {
                    // Who needs the permits next hears the error.
                    let _ = leased.draw(&plan, 0).await;
                });
            }
            Err(_) => self.leave(&plan.borrower),
        }
    }

    /// Draws, and spends `cost` of what comes.
    async fn draw(&self, plan: &Plan, cost: u64) -> Result<Decision, StoreError> {
        let mut underway = Underway {
            leased: self,
            borrower: &plan.borrower,
            is_settled: false,
        };
        let values = plan.borrower.values();
        let key = plan.borrower.key(&values);
        let asked = self.clock.now();
        let loan = self.remote.draw(key, &plan.borrower.quota, plan.draw);
        let loan = loan.await?;
        let heard = self.learn_time(loan.now, asked);
        underway.is_settled = true;
        Ok(self.settle(plan, loan, heard, cost))
    }

    /// Puts a loan into its purse, less what is spent at once.
    fn settle(&self, plan: &Plan, loan: Loan, heard: Heard, cost: u64) -> Decision {
        let digest = plan.borrower.digest;
        let mut shard = self.table.shard(digest);
        shard.leases.draws += 1;
        shard.leases.drawn += loan.permits;
        let mut decision = loan.decision;
        if decision.is_allowed() {
            shard.leases.spent += cost;
            let left = loan.permits.saturating_sub(cost);
            decision.remaining = decision.remaining.saturating_add(left).min(decision.limit);
        }
        let now = heard.answered;
        // Gone since the draw, with its counter: then nobody may spend what was drawn.
        let purse = shard.find_any(digest);
        if let Some(purse) = purse.filter(|purse| purse.is_of(&plan.borrower)) {
            let mut returns = Vec::new();
            purse.lapse(now, &mut returns);
            returns.extend(purse.settle(plan.draw, loan, heard, cost));
            if self.is_closed.load(Ordering::Relaxed) {
                purse.empty(now, &mut returns);
            }
            shard.returns.append(&mut returns);
        }
        decision
    }

    fn leave(&self, borrower: &Arc<Borrower>) {
        self.release(borrower, |purse, _| purse.abandon());
    }
}

impl<R, M: Clock> Leased<R, M> {
    fn release(&self, borrower: &Arc<Borrower>, change: impl FnOnce(&mut Purse, Time)) {
        let now = self.clock.now();
        let mut shard = self.table.shard(borrower.digest);
        let purse = shard.find_any(borrower.digest);
        if let Some(purse) = purse.filter(|purse| purse.is_of(borrower)) {
            change(purse, now);
        }
    }
}

// === impl Underway ===

impl<R, M: Clock> Drop for Underway<'_, R, M> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.leased.release(self.borrower, Purse::fail);
        }
        self.borrower.wake();
    }
}
