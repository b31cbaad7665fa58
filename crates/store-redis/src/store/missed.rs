//! Loans that nobody waits for any more.
//!
//! A draw whose reply comes too late has charged its counter all the same: a server that stalls for a moment
//! would keep what every node drew just then from all of them, until the counter's own time has passed.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, Lender, Loan, StoreError};
use tokio::runtime::Handle;

use super::RedisStore;
use super::owned::OwnedKey;
use crate::client::{Reply, Unclaimed, pause};

/// A draw that is under way, and may be missed.
#[derive(Debug)]
struct Missed {
    store: RedisStore,
    key: OwnedKey,
    quota: Quota,
    draw: Draw,
}

/// How often to try to give back, and how long to wait in between: a server that was too slow may not be asked
/// for a moment.
const TRIES: u32 = 20;
const WAIT: Duration = Duration::from_millis(100);

// === impl RedisStore ===

impl RedisStore {
    /// Has a loan given back whose reply comes too late.
    pub(super) fn when_missed(&self, key: CounterKey<'_>, quota: &Quota, draw: Draw) -> Unclaimed {
        let missed = Arc::new(Missed {
            store: self.clone(),
            key: OwnedKey::of(key),
            quota: quota.clone(),
            draw,
        });
        Unclaimed::new(move |reply| missed.heard(reply))
    }
}

// === impl Missed ===

impl Missed {
    fn heard(self: &Arc<Self>, reply: &Reply) {
        let values = self.key.values();
        let key = self.key.key(&values);
        let loan = self.store.read_loan(key, &self.quota, self.draw, reply);
        if let (Ok(loan), Ok(runtime)) = (loan, Handle::try_current()) {
            runtime.spawn(Arc::clone(self).give_back(loan));
        }
    }

    /// Gives back what was drawn ahead. What the request at hand costs stays charged, as that of any request
    /// whose reply came too late: it was decided without, and may have been admitted.
    async fn give_back(self: Arc<Self>, loan: Loan) {
        let permits = loan.permits.saturating_sub(self.draw.least);
        if permits == 0 {
            return;
        }
        let values = self.key.values();
        let key = self.key.key(&values);
        for _ in 0..TRIES {
            let given = self.store.give_back(key, &self.quota, &loan, permits);
            // Any other error may have given it back, and that is not to be done twice.
            if given.await != Err(StoreError::Open) {
                return;
            }
            pause(WAIT).await;
        }
    }
}
