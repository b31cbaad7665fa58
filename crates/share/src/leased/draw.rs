//! Drawing: one at a time for a key, by the request that ran dry or ahead of need by the way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_algorithms::{Decision, Time};
use tidegate_store::{Charge, Charging, Clock, Lender, Loan, StoreError};
use tokio::runtime::Handle;

use super::borrower::{Borrower, Out, Plan, Return};
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
struct Underway<R, M: Clock> {
    leased: Arc<Leased<R, M>>,
    plan: Plan,
    is_settled: bool,
}

/// What comes of a draw.
type Drawn = Pin<Box<dyn Future<Output = Result<Decision, StoreError>> + Send>>;

/// Waits for a draw, which goes on if nobody does any more: what it has charged would be lost.
struct Await(Option<Drawn>);

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
            Step::Spent(took, None) => Taken::Decided(took.decision),
            Step::Spent(took, plan) => {
                self.draw_ahead(plan);
                Taken::Decided(took.decision)
            }
            Step::Refused(decision) => Taken::Decided(decision),
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
                Step::Draw(plan) => {
                    let drawn = Await(Some(Box::pin(self.draw(plan, charge.cost))));
                    return drawn.await.map(Some);
                }
                Step::Spent(took, plan) => {
                    self.draw_ahead(plan);
                    return Ok(Some(took.decision));
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
        if let Ok(runtime) = Handle::try_current() {
            // Who needs the permits next hears the error.
            runtime.spawn(self.draw(plan, 0));
        } else {
            self.release(&plan.borrower, |purse, _| purse.abandon());
            plan.borrower.wake();
        }
    }

    /// Draws, and spends `cost` of what comes. Under way from now on, polled or not.
    fn draw(
        self: &Arc<Self>,
        plan: Plan,
        cost: u64,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send + use<R, M> {
        let underway = Underway {
            leased: Arc::clone(self),
            plan,
            is_settled: false,
        };
        async move {
            // As a whole, so that it is dropped with this.
            let mut underway = underway;
            let Underway { leased, plan, .. } = &underway;
            let values = plan.borrower.values();
            let key = plan.borrower.key(&values);
            let asked = leased.clock.now();
            let loan = leased.remote.draw(key, &plan.borrower.quota, plan.draw);
            let loan = loan.await?;
            let heard = leased.heard(loan.now, asked);
            let decision = leased.settle(plan, loan, heard, cost);
            underway.is_settled = true;
            Ok(decision)
        }
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
        match shard.find_any(digest) {
            Some(purse) if purse.is_of(&plan.borrower) => {
                let mut out = Out::default();
                purse.lapse(now, &mut out);
                out.returns
                    .extend(purse.settle(plan.draw, loan, heard, cost));
                if self.is_closed.load(Ordering::Relaxed) {
                    purse.empty(now, &mut out);
                }
                shard.take_out(out);
            }
            // The rules have changed since the draw, or the counter was reset: nobody is to spend it.
            _ => shard.take_out(Out {
                returns: vec![Return {
                    borrower: Arc::clone(&plan.borrower),
                    loan,
                    permits: loan.permits.saturating_sub(cost),
                }],
                lapsed: 0,
            }),
        }
        decision
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

impl<R, M: Clock> Drop for Underway<R, M> {
    fn drop(&mut self) {
        let borrower = &self.plan.borrower;
        if !self.is_settled {
            self.leased.release(borrower, Purse::fail);
        }
        borrower.wake();
    }
}

// === impl Await ===

impl Future for Await {
    type Output = Result<Decision, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(drawn) = &mut self.0 else {
            return Poll::Pending;
        };
        let decision = ready!(drawn.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(decision)
    }
}

impl Drop for Await {
    fn drop(&mut self) {
        if let Some(drawn) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(drawn);
        }
    }
}
