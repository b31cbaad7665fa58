//! A store whose clock and whose report are in the test's hands.

use std::sync::Mutex;
use std::time::Duration;

use tidegate_limiter::report::{
    Breaker, Latencies, RegionReport, ServerInfo, ServerReport, SharingReport, StoreHealth,
    StoreKind, StoreReport,
};
use tidegate_limiter::{Charging, Decision, Quota, RefundTo, Store, StoreError, Time};
use tidegate_store::{
    Charge, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, ManualClock, Page, Receipt,
    StoreConfig, StoreStats,
};

/// Decides as the embedded store does.
#[derive(Debug)]
pub(crate) struct TestStore {
    store: EmbeddedStore<ManualClock>,
    /// What it says of itself besides.
    report: Mutex<StoreReport>,
}

/// What a store says of itself that cannot reach Redis.
fn degraded() -> StoreReport {
    let mut latencies = Latencies::default();
    latencies.buckets[0] = 2;
    latencies.sum_nanos = 60_000;
    let server = ServerReport {
        address: "127.0.0.1:1".into(),
        breaker: Breaker::Open,
        fault: Some("connection refused".into()),
        latencies,
        info: Some(ServerInfo {
            max_memory: Some(7),
            cpu: Duration::from_millis(1_500),
            ..ServerInfo::default()
        }),
        ..ServerReport::default()
    };
    StoreReport {
        kind: StoreKind::Redis,
        servers: vec![server],
        regions: vec![RegionReport {
            name: "us".into(),
            servers: vec![ServerReport {
                address: "127.0.0.2:1".into(),
                ..ServerReport::default()
            }],
        }],
        sharing: Some(SharingReport {
            members: 3,
            ..SharingReport::default()
        }),
        ..StoreReport::default()
    }
}

// === impl TestStore ===

impl TestStore {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            store: EmbeddedStore::with_clock(StoreConfig::default(), clock),
            report: Mutex::default(),
        }
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        self.store.clock()
    }

    pub(crate) fn stats(&self) -> StoreStats {
        self.store.stats()
    }

    /// From now on it cannot reach Redis, and says so.
    pub(crate) fn degrade(&self) {
        *self.report.lock().unwrap() = degraded();
    }
}

impl Store for TestStore {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        if self.health() == StoreHealth::Degraded {
            return Err(StoreError::Open);
        }
        self.store.charge_now(charges, charging, decisions)
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.store.peek_now(charge)
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        self.store.refund_now(key, quota, cost, to)
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.store.reset_now(key, quota)
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.store.now().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        Ok(self.store.list_now(cursor, most))
    }

    fn report(&self) -> StoreReport {
        StoreReport {
            memory: self.stats(),
            ..self.report.lock().unwrap().clone()
        }
    }
}
