//! Giving back what is not spent.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::{Clock, Lender};
use tokio::task::JoinSet;

use super::borrower::{Out, Return};
use super::{Leased, Ordering};

/// How often some of the purses are looked through.
const SWEEP_EVERY: Duration = Duration::from_millis(50);

/// One in so many of them at a time: a full table takes a processor some milliseconds to look through.
const PARTS: usize = 4;

/// How many loans are given back at a time: they go out together, and the end of a node is quick.
const AT_ONCE: usize = 64;

/// Permits that are being given back. Dropped half-way, what is under way goes on, and the rest waits for the
/// next time: a node that ends stops looking, and then gives back everything.
struct Giving<'a, R, M: Clock> {
    leased: &'a Leased<R, M>,
    rest: Vec<Return>,
    under_way: JoinSet<()>,
}

// === impl Leased ===

impl<R: Lender + 'static, M: Clock + 'static> Leased<R, M> {
    /// Gives back, again and again, what is not spent.
    pub(crate) async fn run(self: &Arc<Self>) -> ! {
        let mut interval = tokio::time::interval(SWEEP_EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut part = 0;
        loop {
            interval.tick().await;
            self.sweep_part(part, PARTS).await;
            part = (part + 1) % PARTS;
        }
    }

    /// Looks through all purses once and gives back what is past its time or not asked for any more.
    pub(crate) async fn sweep(self: &Arc<Self>) {
        self.sweep_part(0, 1).await;
    }

    async fn sweep_part(self: &Arc<Self>, part: usize, parts: usize) {
        let now = self.clock.now();
        let returns: Vec<Return> = self
            .table
            .part(part, parts)
            .flat_map(|mut shard| {
                shard.sweep(now);
                std::mem::take(&mut shard.returns)
            })
            .collect();
        self.give_back(returns).await;
    }

    /// Gives back everything, and draws nothing more.
    pub(crate) async fn finish(self: &Arc<Self>) {
        self.is_closed.store(true, Ordering::Relaxed);
        let drawing: Vec<_> = self
            .table
            .shards()
            .flat_map(|shard| shard.drawing())
            .collect();
        self.empty().await;
        for landed in drawing {
            landed.await;
        }
        self.empty().await;
    }

    async fn empty(self: &Arc<Self>) {
        let now = self.clock.now();
        let returns: Vec<Return> = self
            .table
            .shards()
            .flat_map(|mut shard| {
                shard.empty(now);
                std::mem::take(&mut shard.returns)
            })
            .collect();
        self.give_back(returns).await;
    }

    async fn give_back(self: &Arc<Self>, returns: Vec<Return>) {
        let mut giving = Giving {
            leased: self,
            rest: returns,
            under_way: JoinSet::new(),
        };
        loop {
            if giving.under_way.len() >= AT_ONCE {
                giving.under_way.join_next().await;
            }
            let Some(returned) = giving.rest.pop() else {
                break;
            };
            let leased = Arc::clone(self);
            let giving_one = async move { leased.give_one_back(returned).await };
            giving.under_way.spawn(giving_one);
        }
        while giving.under_way.join_next().await.is_some() {}
    }

    async fn give_one_back(&self, returned: Return) {
        let Return {
            borrower,
            loan,
            permits,
        } = returned;
        let values = borrower.values();
        let key = borrower.key(&values);
        let given = self.remote.give_back(key, &borrower.quota, &loan, permits);
        let is_given = !borrower.is_reset() && given.await.is_ok();
        let mut shard = self.table.shard(borrower.digest);
        if is_given {
            shard.leases.given_back += permits;
            if let Some(purse) = shard.find_any(borrower.digest) {
                purse.forgive();
            }
        } else {
            shard.leases.lapsed += permits;
        }
    }
}

// === impl Giving ===

impl<R, M: Clock> Drop for Giving<'_, R, M> {
    fn drop(&mut self) {
        self.under_way.detach_all();
        for returned in self.rest.drain(..) {
            let mut shard = self.leased.table.shard(returned.borrower.digest);
            shard.take_out(Out {
                returns: vec![returned],
                lapsed: 0,
            });
        }
    }
}
