//! Giving back what is not spent.

use std::time::Duration;

use tidegate_store::{Clock, Lender};

use super::borrower::Return;
use super::{Leased, Ordering};

/// How often purses are looked through.
const SWEEP_EVERY: Duration = Duration::from_millis(50);

// === impl Leased ===

impl<R: Lender, M: Clock> Leased<R, M> {
    /// Gives back, again and again, what is not spent.
    pub(crate) async fn run(&self) -> ! {
        let mut interval = tokio::time::interval(SWEEP_EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.sweep().await;
        }
    }

    /// Looks through all purses once and gives back what is past its time or not asked for any more.
    pub(crate) async fn sweep(&self) {
        let now = self.clock.now();
        let returns: Vec<Return> = self
            .table
            .shards()
            .flat_map(|mut shard| {
                shard.sweep(now);
                std::mem::take(&mut shard.returns)
            })
            .collect();
        self.give_back(returns).await;
    }

    /// Gives back everything, and draws nothing more.
    pub(crate) async fn finish(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
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

    async fn give_back(&self, returns: Vec<Return>) {
        for Return {
            borrower,
            loan,
            permits,
        } in returns
        {
            let values = borrower.values();
            let key = borrower.key(&values);
            let given = self.remote.give_back(key, &borrower.quota, &loan, permits);
            let is_given = given.await.is_ok();
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
}
