//! Loans that nobody waits for any more.
//!
//! A draw whose reply comes too late has charged its counter all the same: a server that stalls for a moment
//! would keep what every node drew just then from all of them, until the counter's own time has passed.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tidegate_algorithms::Quota;
use tidegate_store::{CounterKey, Draw, Lender, StoreError};
use tokio::runtime::Handle;

use super::owned::OwnedKey;
use super::{RedisStore, TimeArgument};
use crate::client::{Reply, Unclaimed, WeakClient, pause};
use crate::key::Installation;
use crate::script::Scripts;

/// A draw that is under way, and may be missed.
#[derive(Debug)]
struct Missed {
    store: WeakStore,
    key: OwnedKey,
    quota: Quota,
    draw: Draw,
}

/// A store that does not keep its connections, of which one keeps this.
#[derive(Debug)]
struct WeakStore {
    client: WeakClient,
    scripts: Arc<Scripts>,
    time: Arc<TimeArgument>,
    installation: Installation,
    disagreements: Arc<AtomicU64>,
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
            store: self.downgrade(),
            key: OwnedKey::of(key),
            quota: quota.clone(),
            draw,
        });
        Unclaimed::new(move |reply| missed.heard(reply))
    }

    fn downgrade(&self) -> WeakStore {
        WeakStore {
            client: self.client.downgrade(),
            scripts: Arc::clone(&self.scripts),
            time: Arc::clone(&self.time),
            installation: self.installation,
            disagreements: Arc::clone(&self.disagreements),
        }
    }
}

// === impl Missed ===

impl Missed {
    fn heard(self: &Arc<Self>, reply: &Reply) {
        // All of it later: whoever has a store, and be it for a moment, may be the last who has it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(Arc::clone(self).give_back(reply.clone()));
        }
    }

    /// Gives back what was drawn ahead. What the request at hand costs stays charged, as that of any request
    /// whose reply came too late: it was decided without, and may have been admitted.
    async fn give_back(self: Arc<Self>, reply: Reply) {
        let Some(store) = self.store.upgrade() else {
            return;
        };
        let values = self.key.values();
        let key = self.key.key(&values);
        let Ok(loan) = store.read_loan(key, &self.quota, self.draw, &reply) else {
            return;
        };
        let permits = loan.permits.saturating_sub(self.draw.least);
        if permits == 0 {
            return;
        }
        for _ in 0..TRIES {
            let given = store.give_back(key, &self.quota, &loan, permits);
            // Any other error may have given it back, and that is not to be done twice.
            if given.await.map(|_| ()) != Err(StoreError::Open) {
                return;
            }
            pause(WAIT).await;
        }
    }
}

// === impl WeakStore ===

impl WeakStore {
    /// The store, while anybody has it.
    fn upgrade(&self) -> Option<RedisStore> {
        Some(RedisStore {
            client: self.client.upgrade()?,
            scripts: Arc::clone(&self.scripts),
            time: Arc::clone(&self.time),
            installation: self.installation,
            disagreements: Arc::clone(&self.disagreements),
        })
    }
}
