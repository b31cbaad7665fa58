//! A common store that can be lost, for nodes in one process.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, RefundTo, Time,
};
use tidegate_share::{EventualConfig, SharedConfig, SplitConfig};
use tidegate_store::members::model::ModelMembers;
use tidegate_store::{
    Beat, Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, Draw, EmbeddedStore,
    Lender, LimitId, Loan, Members, Mode, NodeId, OnFull, Page, Pulse, Receipt, Store, StoreConfig,
    StoreError,
};

/// Counters and members that several nodes have in common.
#[derive(Clone)]
pub(crate) struct Common<C> {
    clock: C,
    data: Arc<Mutex<Arc<Data<C>>>>,
    is_gone: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    /// The time that a charge or a refund takes, by tokio's clock.
    delay: Arc<Mutex<Duration>>,
    before_charge: Arc<Mutex<Option<Act>>>,
}

struct Data<C> {
    counters: EmbeddedStore<C>,
    members: ModelMembers,
}

type Act = Box<dyn FnOnce() + Send>;

// === impl Common ===

impl<C: Clock + Clone> Common<C> {
    pub(crate) fn new(clock: C) -> Self {
        Self {
            data: Arc::new(Mutex::new(Arc::new(Data::new(clock.clone())))),
            clock,
            is_gone: Arc::default(),
            calls: Arc::default(),
            delay: Arc::default(),
            before_charge: Arc::default(),
        }
    }

    pub(crate) fn lose(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Forgets everything.
    pub(crate) fn flush(&self) {
        *self.data.lock().unwrap() = Arc::new(Data::new(self.clock.clone()));
    }

    pub(crate) fn find(&self) {
        self.is_gone.store(false, Ordering::Relaxed);
    }

    /// Returns how many requests the store was asked to decide since the last call.
    pub(crate) fn take_calls(&self) -> u64 {
        self.calls.swap(0, Ordering::Relaxed)
    }

    /// Does something before the next request is decided, while it is on its way.
    pub(crate) fn before_next_charge(&self, act: impl FnOnce() + Send + 'static) {
        *self.before_charge.lock().unwrap() = Some(Box::new(act));
    }

    /// Sets the time that a charge or a refund takes.
    pub(crate) fn slow_down(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    async fn wait(&self) {
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            let _ = tokio::time::timeout(delay, pending::<()>()).await;
        }
    }

    fn reach(&self) -> Result<Arc<Data<C>>, StoreError> {
        if self.is_gone.load(Ordering::Relaxed) {
            Err(StoreError::Open)
        } else {
            Ok(Arc::clone(&self.data.lock().unwrap()))
        }
    }
}

// === impl Data ===

impl<C: Clock> Data<C> {
    fn new(clock: C) -> Self {
        Self {
            counters: EmbeddedStore::with_clock(small(), clock),
            members: ModelMembers::default(),
        }
    }
}

impl<C: Clock + Clone> Store for Common<C> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(act) = self.before_charge.lock().unwrap().take() {
            act();
        }
        self.wait().await;
        self.reach()?
            .counters
            .charge_now(charges, charging, decisions)
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.reach()?.counters.peek_now(charge)
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        self.wait().await;
        self.reach()?.counters.refund_now(key, quota, cost, to)
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.reach()?.counters.reset_now(key, quota)
    }

    async fn now(&self) -> Result<Time, StoreError> {
        Ok(self.reach()?.counters.clock().now())
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        Ok(self.reach()?.counters.list_now(cursor, most))
    }
}

impl<C: Clock + Clone> Lender for Common<C> {
    async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        self.reach()?.counters.draw(key, quota, draw).await
    }

    async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        self.reach()?
            .counters
            .give_back(key, quota, loan, permits)
            .await
    }
}

impl<C: Clock + Clone> Members for Common<C> {
    async fn beat(&self, beat: &Beat<'_>) -> Result<Pulse, StoreError> {
        let data = self.reach()?;
        Ok(data.members.beat(beat, data.counters.clock().now()))
    }

    async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        self.reach()?.members.leave(node);
        Ok(())
    }
}

pub(crate) fn small() -> StoreConfig {
    StoreConfig {
        max_memory: 2 << 20,
    }
}

/// How a node with little memory shares.
pub(crate) fn shared(split: SplitConfig) -> SharedConfig {
    SharedConfig {
        standby_memory: small(),
        eventual: EventualConfig {
            memory: small(),
            ..EventualConfig::default()
        },
        split: SplitConfig {
            store: small(),
            ..split
        },
        ..SharedConfig::default()
    }
}

pub(crate) fn fixed_window(limit: u64, window: Duration) -> Quota {
    quota(Algorithm::FixedWindow, limit, window)
}

pub(crate) fn quota(algorithm: Algorithm, limit: u64, window: Duration) -> Quota {
    let spec = QuotaSpec {
        limit,
        window,
        algorithm,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).unwrap()
}

pub(crate) fn split(quota: &Quota, cost: u64) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(7),
            values: &["caller"],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Allow,
        consistency: Consistency::Split,
    }
}
