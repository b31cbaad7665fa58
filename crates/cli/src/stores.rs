//! The store of this process: memory alone, or one in Redis that nodes have in common.

mod opening;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{ChargeStamp, Decision, Quota, RefundTo, Time};
use tidegate_share::SharedStore;
use tidegate_store::report::{RegionReport, StoreHealth, StoreReport};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, OldCounters, Page,
    Receipt, Store, StoreError,
};
use tidegate_store_redis::client::Client;
use tidegate_store_redis::{RedisMembers, RedisStore, RedisTotals, report};
use tokio::task::yield_now;
use tokio::time::{interval, timeout};
use tracing::warn;

use crate::restart::RestartFiles;

pub(crate) use opening::{memory_of, open};

/// The store of this process.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and the way to memory is to be short"
)]
pub(crate) enum AnyStore {
    /// Counters are in its memory.
    Memory(EmbeddedStore),
    /// Counters are in Redis, and nodes share them.
    Shared(Box<Shared>),
}

/// A store that nodes share, and where they find each other.
#[derive(Debug)]
pub(crate) struct Shared {
    store: SharedStore<RedisStore>,
    members: RedisMembers,
    totals: RedisTotals,
    /// Those of the other regions.
    elsewhere: Vec<RedisTotals>,
    regions: Vec<Region>,
    /// What the process that takes this one's place is to know.
    files: RestartFiles,
}

/// Another region.
#[derive(Debug)]
struct Region {
    name: Arc<str>,
    client: Client,
}

/// How long the last words to Redis may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The time between two rounds in which idle counters are recognised: at least one in every pass of the store.
const IDLE_ROUND: Duration = Duration::from_secs(1);

/// The parts of such a round.
const IDLE_PARTS: u32 = 64;

/// The time between two looks at callers that found no room.
const MEMORY_WATCH: Duration = Duration::from_secs(10);

// === impl AnyStore ===

impl AnyStore {
    /// The counters in this process's memory: all of them, or those that it keeps beside Redis.
    pub(crate) fn local(&self) -> &EmbeddedStore {
        match self {
            Self::Memory(store) => store,
            Self::Shared(shared) => shared.store.local(),
        }
    }

    /// Does what is to be done between requests, for ever.
    pub(crate) async fn run(&self) {
        let work = async {
            match self {
                Self::Memory(_) => pending().await,
                Self::Shared(shared) => shared.run().await,
            }
        };
        tokio::join!(work, self.watch_memory(), self.recognise_idle());
    }

    /// Recognises idle counters once a second while memory is full, for ever. In parts, because all of a large table
    /// would take the other tasks of this thread some tens of milliseconds.
    async fn recognise_idle(&self) {
        let mut rounds = interval(IDLE_ROUND);
        loop {
            rounds.tick().await;
            for part in 0..IDLE_PARTS {
                match self {
                    Self::Memory(store) => store.recognise_idle(part, IDLE_PARTS),
                    Self::Shared(shared) => shared.store.recognise_idle(part, IDLE_PARTS),
                }
                yield_now().await;
            }
        }
    }

    /// Logs when callers found no room for a counter, at most every ten seconds, for ever.
    async fn watch_memory(&self) {
        let mut seen = self.report().untracked();
        let mut looks = interval(MEMORY_WATCH);
        loop {
            looks.tick().await;
            self.log_full_memory(&mut seen);
        }
    }

    /// Logs if callers found no room since there were `seen` of them.
    fn log_full_memory(&self, seen: &mut u64) {
        let report = self.report();
        let untracked = report.untracked();
        if untracked > *seen {
            warn!(
                decided.count = untracked - *seen,
                store.used_bytes = report.memory.used_bytes,
                store.max_bytes = report.memory.max_bytes,
                eventual.used_bytes = report.sharing.map(|sharing| sharing.eventual.bytes),
                standby.used_bytes = report.sharing.map(|sharing| sharing.standby.used_bytes),
                "memory for counters is full; requests were decided by on_full. Raise max_memory, \
                 or look for a client that invents keys"
            );
        }
        *seen = untracked;
    }

    /// Gives back what this node holds for itself. To be called when nothing is charged any more.
    pub(crate) async fn finish(&self) {
        let Self::Shared(shared) = self else {
            return;
        };
        if timeout(LAST_WORDS, shared.finish()).await.is_err() {
            warn!(
                "Redis does not answer: what this node held of limits is free again when it expires"
            );
        }
        shared.files.finish(&shared.store).await;
    }
}

/// What has to wait is in boxes, so that the future of a request that is decided from memory is small.
impl Store for AnyStore {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        match self {
            Self::Memory(store) => store.charge_now(charges, charging, decisions),
            Self::Shared(shared) => shared.store.charge(charges, charging, decisions).await,
        }
    }

    fn charge_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        match self {
            Self::Memory(store) => store.charge_alone(charges, charging, decisions),
            Self::Shared(shared) => shared.store.charge_alone(charges, charging, decisions),
        }
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        match self {
            Self::Memory(store) => store.peek(charge).await,
            Self::Shared(shared) => Box::pin(shared.store.peek(charge)).await,
        }
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.refund(key, quota, cost, to, consistency).await,
            Self::Shared(shared) => {
                Box::pin(shared.store.refund(key, quota, cost, to, consistency)).await
            }
        }
    }

    fn refund_alone(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        stamp: ChargeStamp,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.refund_alone(key, quota, cost, stamp, consistency),
            Self::Shared(shared) => {
                let store = &shared.store;
                store.refund_alone(key, quota, cost, stamp, consistency)
            }
        }
    }

    fn counts_denials(&self, consistency: Consistency) -> bool {
        match self {
            Self::Memory(store) => store.counts_denials(consistency),
            Self::Shared(shared) => shared.store.counts_denials(consistency),
        }
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        match self {
            Self::Memory(store) => store.reset(key, quota, consistency).await,
            Self::Shared(shared) => Box::pin(shared.store.reset(key, quota, consistency)).await,
        }
    }

    fn reserve(
        &self,
        limits: &mut dyn Iterator<Item = (&Quota, Consistency)>,
        old: OldCounters,
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(store) => store.reserve(limits, old),
            Self::Shared(shared) => shared.store.reserve(limits, old),
        }
    }

    async fn now(&self) -> Result<Time, StoreError> {
        match self {
            Self::Memory(store) => store.now().await,
            Self::Shared(shared) => Box::pin(shared.store.now()).await,
        }
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        match self {
            Self::Memory(store) => store.list(cursor, most).await,
            Self::Shared(shared) => Box::pin(shared.store.list(cursor, most)).await,
        }
    }

    fn health(&self) -> StoreHealth {
        match self {
            Self::Memory(store) => store.health(),
            Self::Shared(shared) => shared.store.health(),
        }
    }

    fn report(&self) -> StoreReport {
        match self {
            Self::Memory(store) => store.report(),
            Self::Shared(shared) => shared.report(),
        }
    }
}

// === impl Shared ===

impl Shared {
    async fn run(&self) {
        let store = &self.store;
        tokio::join!(
            store.run(),
            store.split().run(&self.members),
            store.eventual().run(&self.totals, &self.elsewhere),
            report::watch(store.remote().client()),
            self.files.run(store),
        );
    }

    fn report(&self) -> StoreReport {
        let regions = self
            .regions
            .iter()
            .map(|Region { name, client }| RegionReport {
                name: Arc::clone(name),
                servers: report::report(client).servers,
            });
        StoreReport {
            regions: regions.collect(),
            ..self.store.report()
        }
    }

    /// Tells the others what they do not know yet, gives back permits, and says farewell.
    async fn finish(&self) {
        let store = &self.store;
        // Whoever is not reached notices by itself, later.
        let _ = tokio::join!(
            store.finish(),
            store.eventual().finish(&self.totals, &self.elsewhere),
            store.split().leave(&self.members),
        );
    }
}

#[cfg(test)]
mod tests;
