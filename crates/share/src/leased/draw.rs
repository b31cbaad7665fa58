//! Drawing permits: one draw at a time for a key, by a request that found none or ahead of need.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tidegate_algorithms::{Decision, Time};
use tidegate_store::{Charge, Charging, Clock, Lender, Loan, StoreError};
use tokio::runtime::Handle;

use super::counter::{LeasedCounter, Step};
use super::handle::{CounterHandle, DrawPlan, LoanRefund, Released};
use super::{Leases, Ordering};
use crate::memory::Took;
use crate::reckoning::Heard;

/// Draws of other requests that a request waits for before it asks the store itself.
const MOST_WAITS: u32 = 2;

/// The result of a request for one limit.
pub(crate) enum Taken<'a> {
    /// Decided from memory.
    Decided(Took),
    /// The store must decide.
    Ask,
    /// Decided when a draw has ended; `None` if the store must decide.
    Later(Pin<Box<dyn Future<Output = Result<Option<Took>, StoreError>> + Send + 'a>>),
}

/// A draw under way. Dropped before it is settled, it has failed or was cancelled: the requests that wait for it are
/// woken either way. They get the error, so that none waits for two timeouts; after a cancelled draw they ask the store.
struct DrawGuard<R, M: Clock> {
    leases: Arc<Leases<R, M>>,
    plan: DrawPlan,
    is_settled: bool,
}

/// The decision that a draw brings.
type Drawn = Pin<Box<dyn Future<Output = Result<Took, StoreError>> + Send>>;

/// A request that waits for its draw. The draw goes on without it: what it has charged would be lost.
struct AwaitedDraw(Option<Drawn>);

// === impl Leases ===

impl<R: Lender + 'static, M: Clock + 'static> Leases<R, M> {
    /// Decides on a request for one limit.
    #[inline]
    pub(crate) fn take_alone<'a>(
        self: &'a Arc<Self>,
        charge: &'a Charge<'a>,
        charging: Charging,
    ) -> Taken<'a> {
        match self.step(charge, charging) {
            Step::Spent(took, None) => Taken::Decided(took),
            Step::Spent(took, plan) => {
                self.draw_ahead(plan);
                Taken::Decided(took)
            }
            Step::Denied(decision) => Taken::Decided(decision.into()),
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
    ) -> Result<Option<Took>, StoreError> {
        let mut n_waits = 0;
        loop {
            match step {
                Step::Wait(draw) if n_waits < MOST_WAITS => {
                    n_waits += 1;
                    draw.landed().await?;
                }
                Step::Draw(plan) => {
                    let drawn = AwaitedDraw(Some(Box::pin(self.draw(plan, charge.cost))));
                    return drawn.await.map(Some);
                }
                Step::Spent(took, plan) => {
                    self.draw_ahead(plan);
                    return Ok(Some(took));
                }
                Step::Denied(decision) => return Ok(Some(decision.into())),
                Step::Wait(_) | Step::Ask => return Ok(None),
            }
            step = self.step(charge, charging);
        }
    }

    /// Draws in a task of its own, if there is a runtime; else the next request without permits draws.
    pub(super) fn draw_ahead(self: &Arc<Self>, plan: Option<DrawPlan>) {
        let Some(plan) = plan else { return };
        if let Ok(runtime) = Handle::try_current() {
            // The next request that needs permits gets the error.
            runtime.spawn(self.draw(plan, 0));
        } else {
            self.with_counter(&plan.handle, |counter, _| counter.cancel());
        }
    }

    /// Draws permits, and spends `cost` of them. Under way from now on, polled or not.
    fn draw(
        self: &Arc<Self>,
        plan: DrawPlan,
        cost: u64,
    ) -> impl Future<Output = Result<Took, StoreError>> + Send + use<R, M> {
        let guard = DrawGuard {
            leases: Arc::clone(self),
            plan,
            is_settled: false,
        };
        async move {
            // As a whole, so that it is dropped with this.
            let mut guard = guard;
            let DrawGuard { leases, plan, .. } = &guard;
            let values = plan.handle.values();
            let key = plan.handle.key(&values);
            let asked = leases.clock.now();
            let loan = leases.remote.draw(key, &plan.handle.quota, plan.draw);
            let loan = match loan.await {
                Ok(loan) => loan,
                Err(error) => {
                    plan.error.send_replace(Some(error.clone()));
                    return Err(error);
                }
            };
            let heard = leases.heard(loan.now, asked);
            let decision = leases.settle(plan, loan, heard, cost);
            guard.is_settled = true;
            let charged = decision.is_allowed().then_some(loan.now);
            Ok(Took::new(decision, charged))
        }
    }

    /// Adds a loan to its counter, less what is spent at once.
    fn settle(&self, plan: &DrawPlan, loan: Loan, heard: Heard, cost: u64) -> Decision {
        let digest = plan.handle.digest;
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
            Some(counter) if counter.is_of(&plan.handle) => {
                let mut released = Released::default();
                counter.release_due(now, &mut released);
                released
                    .refunds
                    .extend(counter.settle(plan.draw, loan, heard, cost));
                if self.is_closed.load(Ordering::Relaxed) {
                    counter.release_all(now, &mut released);
                }
                shard.release(released);
                shard.schedule(digest, now);
            }
            // The rules have changed since the draw, or the counter was reset: the loan is not to be spent.
            _ => shard.release(Released {
                refunds: vec![LoanRefund {
                    handle: Arc::clone(&plan.handle),
                    loan,
                    permits: loan.permits.saturating_sub(cost),
                }],
                lapsed: 0,
            }),
        }
        decision
    }
}

impl<R, M: Clock> Leases<R, M> {
    fn with_counter(
        &self,
        handle: &Arc<CounterHandle>,
        change: impl FnOnce(&mut LeasedCounter, Time),
    ) {
        let now = self.clock.now();
        let mut shard = self.table.shard(handle.digest);
        let counter = shard.find_any(handle.digest);
        if let Some(counter) = counter.filter(|counter| counter.is_of(handle)) {
            change(counter, now);
        }
    }
}

// === impl DrawGuard ===

impl<R, M: Clock> Drop for DrawGuard<R, M> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.leases
                .with_counter(&self.plan.handle, LeasedCounter::rest);
        }
    }
}

// === impl AwaitedDraw ===

impl Future for AwaitedDraw {
    type Output = Result<Took, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(drawn) = &mut self.0 else {
            return Poll::Pending;
        };
        let took = ready!(drawn.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(took)
    }
}

impl Drop for AwaitedDraw {
    fn drop(&mut self) {
        if let Some(drawn) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(drawn);
        }
    }
}
