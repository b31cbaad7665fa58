//! One node and its common store in memory, on one clock.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Decision, Quota, QuotaSpec, RefundTo, Time};
use tidegate_share::{EventualConfig, LeaseConfig, SharedConfig, SharedStore, SplitConfig};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore,
    ManualClock, Page, Receipt, Store, StoreConfig, StoreError,
};

/// One clock for the common store and the node.
#[derive(Clone)]
pub(crate) struct OneClock(Arc<ManualClock>);

/// One node and its common store.
pub(crate) struct LoneNode {
    pub(crate) store: SharedStore<EmbeddedStore<OneClock>, OneClock, OneClock>,
    clock: OneClock,
}

/// A node that chooses the consistency of each limit.
pub(crate) struct SharedSubject<W>(LoneNode, PhantomData<W>);

/// A choice of consistencies.
pub(crate) trait Way: Send + Sync {
    fn consistency(key: CounterKey<'_>, quota: &Quota) -> Consistency;

    /// The number of cases of a property.
    fn cases(many: u32) -> u32 {
        many / 10
    }
}

// === impl OneClock ===

impl Clock for OneClock {
    fn now(&self) -> Time {
        self.0.now()
    }
}

// === impl LoneNode ===

impl LoneNode {
    const SMALL: StoreConfig = StoreConfig {
        max_memory: 4 << 20,
    };

    pub(crate) fn at(now: Time) -> Self {
        Self::with_eventual_memory(now, Self::SMALL)
    }

    pub(crate) fn with_eventual_memory(now: Time, memory: StoreConfig) -> Self {
        let clock = OneClock(Arc::new(ManualClock::at(now)));
        let small = Self::SMALL;
        let config = SharedConfig {
            // A denial that is answered from memory tells what remained when it was made.
            leases: LeaseConfig {
                remember_denials: Duration::ZERO,
                ..LeaseConfig::default()
            },
            standby_memory: small,
            eventual: EventualConfig {
                memory,
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
            clock,
        }
    }

    pub(crate) fn set(&self, now: Time) {
        self.clock.0.set(now);
    }
}

// === impl SharedSubject ===

impl<W: Way> Store for SharedSubject<W> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let shared = charges.iter().map(|charge| Charge {
            consistency: W::consistency(charge.key, charge.quota),
            ..*charge
        });
        let charges: Vec<_> = shared.collect();
        self.0.store.charge(&charges, charging, decisions).await
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        let look = Charge {
            consistency: W::consistency(charge.key, charge.quota),
            ..*charge
        };
        self.0.store.peek(&look).await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        let consistency = W::consistency(key, quota);
        let store = &self.0.store;
        store.refund(key, quota, cost, to, consistency).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        let consistency = W::consistency(key, quota);
        self.0.store.reset(key, quota, consistency).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.0.store.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.0.store.list(cursor, most).await
    }
}

impl<W: Way> Subject for SharedSubject<W> {
    type Store = Self;

    fn new(now: Time) -> Self {
        Self(LoneNode::at(now), PhantomData)
    }

    fn store(&self) -> &Self {
        self
    }

    fn set_time(&self, now: Time) {
        self.0.set(now);
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        at_once(answer)
    }

    fn cases(many: u32) -> u32 {
        W::cases(many)
    }
}

pub(crate) fn at_once<T>(answer: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(answer).poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("stores in memory wait for nothing"),
    }
}

pub(crate) fn per_day(limit: u64) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(24),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .unwrap()
}
