//! The store of one node among many.

use std::future::Future;

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, Page, Receipt,
    Store, StoreError,
};

/// How a node shares limits.
#[derive(Clone, Debug, Default)]
pub struct SharedConfig {}

/// The store of one node among many: a store in common, and what this node holds in memory.
#[derive(Debug)]
pub struct SharedStore<R> {
    remote: R,
    local: EmbeddedStore,
    config: SharedConfig,
}

// === impl SharedStore ===

impl<R> SharedStore<R> {
    /// Joins the store that all nodes have in common to the one in this node's memory.
    pub const fn new(remote: R, local: EmbeddedStore, config: SharedConfig) -> Self {
        Self {
            remote,
            local,
            config,
        }
    }

    /// The store in common.
    pub const fn remote(&self) -> &R {
        &self.remote
    }

    /// The store in this node's memory.
    pub const fn local(&self) -> &EmbeddedStore {
        &self.local
    }

    /// How this node shares.
    pub const fn config(&self) -> &SharedConfig {
        &self.config
    }
}

impl<R: Store> Store for SharedStore<R> {
    fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        self.remote.charge(charges, charging, decisions)
    }

    fn peek(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
        consistency: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.remote.peek(key, quota, headroom, consistency)
    }

    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        consistency: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.remote.refund(key, quota, cost, consistency)
    }

    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.remote.reset(key, quota, consistency)
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        self.remote.now()
    }

    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        self.remote.list(cursor, most)
    }
}
