//! A node whose limits are partly its own and partly in common passes the suite that every store
//! passes: whatever the mix, a request is charged all or none, and quota and shadow limits count for
//! what they are.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_share::{EventualConfig, LeaseConfig, SharedConfig, SharedStore, SplitConfig};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore,
    ManualClock, Page, Receipt, Store, StoreConfig, StoreError,
};

/// One clock for the common store and the node.
#[derive(Clone)]
struct OneClock(Arc<ManualClock>);

/// A node that shares every other limit.
struct Mixed {
    store: SharedStore<EmbeddedStore<OneClock>, OneClock, OneClock>,
    clock: OneClock,
}

// === impl OneClock ===

impl Clock for OneClock {
    fn now(&self) -> Time {
        self.0.now()
    }
}

// === impl Mixed ===

impl Mixed {
    /// The period of soft admissions of a node's limit is not restored when the rest of a request
    /// refuses it, so limits that have one are in common here.
    fn consistency(key: CounterKey<'_>, quota: &Quota) -> Consistency {
        if key.limit.0.is_multiple_of(2) && !quota.tracks_soft_period() {
            Consistency::Node
        } else {
            Consistency::Strict
        }
    }
}

impl Store for Mixed {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let mixed: Vec<Charge<'_>> = charges
            .iter()
            .map(|charge| Charge {
                consistency: Self::consistency(charge.key, charge.quota),
                ..*charge
            })
            .collect();
        self.store.charge(&mixed, charging, decisions).await
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        let look = Charge {
            consistency: Self::consistency(charge.key, charge.quota),
            ..*charge
        };
        self.store.peek(&look).await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        let consistency = Self::consistency(key, quota);
        self.store.refund(key, quota, cost, to, consistency).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.store
            .reset(key, quota, Self::consistency(key, quota))
            .await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.store.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.store.list(cursor, most).await
    }
}

impl Subject for Mixed {
    type Store = Self;

    fn new(now: Time) -> Self {
        let clock = OneClock(Arc::new(ManualClock::at(now)));
        let small = StoreConfig {
            max_memory: 4 << 20,
        };
        let config = SharedConfig {
            // A denial that is answered from memory tells what remained when it was made.
            leases: LeaseConfig {
                remember_denials: Duration::ZERO,
                ..LeaseConfig::default()
            },
            standby_memory: small,
            eventual: EventualConfig {
                memory: small,
                ..EventualConfig::default()
            },
            split: SplitConfig {
                store: small,
                ..SplitConfig::default()
            },
            ..SharedConfig::default()
        };
        let store = || EmbeddedStore::with_clock(small, clock.clone());
        Self {
            store: SharedStore::with_clock(store(), store(), config, clock.clone()),
            clock: clock.clone(),
        }
    }

    fn store(&self) -> &Self {
        self
    }

    fn set_time(&self, now: Time) {
        self.clock.0.set(now);
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(answer).poll(&mut context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("stores in memory wait for nothing"),
        }
    }
}

tidegate_store::conformance!(Mixed);
