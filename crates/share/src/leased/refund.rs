//! Giving back the permits that are not spent.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::{Clock, Lender};
use tokio::task::JoinSet;

use super::handle::{LoanRefund, Released};
use super::table::SHARDS;
use super::{Leases, Ordering};

/// The pause between two looks at what is due.
const TICK: Duration = Duration::from_millis(10);

/// The most refunds under way. Far from the store the end of a node is still quick: more than 12,000 loans go back in
/// a second with a round trip of 20 ms. More would keep a store that is near from answering within its deadline.
const AT_ONCE: usize = 256;

/// Permits that are being given back. Dropped half-way, what is under way goes on, and the rest waits for the
/// next time: a node that ends stops looking, and then gives back everything.
struct RefundGuard<'a, R, M: Clock> {
    leases: &'a Leases<R, M>,
    rest: Vec<LoanRefund>,
    under_way: JoinSet<()>,
}

// === impl Leases ===

impl<R: Lender + 'static, M: Clock + 'static> Leases<R, M> {
    /// Gives back, again and again, permits that are not spent.
    pub(crate) async fn run(self: &Arc<Self>) -> ! {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut place = 0;
        loop {
            interval.tick().await;
            // One shard at a time is looked through whole: a full table takes milliseconds.
            place = (place + 1) % SHARDS;
            self.release_due(|shard| shard == place).await;
        }
    }

    /// Looks through all counters once.
    pub(crate) async fn sweep(self: &Arc<Self>) {
        self.release_due(|_| true).await;
    }

    /// Gives back the permits that are due, and forgets the idle counters of some shards.
    async fn release_due(self: &Arc<Self>, forgets: impl Fn(usize) -> bool) {
        let now = self.clock.now();
        let mut refunds = Vec::new();
        for (place, mut shard) in self.table.shards().enumerate() {
            shard.release_due(now);
            if forgets(place) {
                shard.forget_idle(now);
            }
            refunds.append(&mut shard.refunds);
        }
        self.give_back(refunds).await;
    }

    /// Gives back everything, and draws nothing more.
    pub(crate) async fn finish(self: &Arc<Self>) {
        self.is_closed.store(true, Ordering::Relaxed);
        let draws: Vec<_> = self
            .table
            .shards()
            .flat_map(|shard| shard.draws())
            .collect();
        self.release_all().await;
        for draw in draws {
            // Nothing comes back of a draw that failed.
            let _ = draw.landed().await;
        }
        self.release_all().await;
    }

    async fn release_all(self: &Arc<Self>) {
        let now = self.clock.now();
        let mut refunds = Vec::new();
        for mut shard in self.table.shards() {
            shard.release_all(now);
            refunds.append(&mut shard.refunds);
        }
        self.give_back(refunds).await;
    }

    async fn give_back(self: &Arc<Self>, refunds: Vec<LoanRefund>) {
        let mut guard = RefundGuard {
            leases: self,
            rest: refunds,
            under_way: JoinSet::new(),
        };
        loop {
            if guard.under_way.len() >= AT_ONCE {
                guard.under_way.join_next().await;
            }
            let Some(refund) = guard.rest.pop() else {
                break;
            };
            let leases = Arc::clone(self);
            guard
                .under_way
                .spawn(async move { leases.give_one_back(refund).await });
        }
        while guard.under_way.join_next().await.is_some() {}
    }

    async fn give_one_back(&self, refund: LoanRefund) {
        let LoanRefund {
            handle,
            loan,
            permits,
        } = refund;
        let values = handle.values();
        let key = handle.key(&values);
        let taken = if handle.is_reset() {
            0
        } else {
            let given = self.remote.give_back(key, &handle.quota, &loan, permits);
            given.await.unwrap_or(0)
        };
        let mut shard = self.table.shard(handle.digest);
        shard.leases.given_back += taken;
        shard.leases.lapsed += permits.saturating_sub(taken);
        if taken > 0
            && let Some(counter) = shard.find_any(handle.digest)
        {
            counter.forgive();
        }
    }
}

// === impl RefundGuard ===

impl<R, M: Clock> Drop for RefundGuard<'_, R, M> {
    fn drop(&mut self) {
        self.under_way.detach_all();
        for refund in self.rest.drain(..) {
            let mut shard = self.leases.table.shard(refund.handle.digest);
            shard.release(Released {
                refunds: vec![refund],
                lapsed: 0,
            });
        }
    }
}
