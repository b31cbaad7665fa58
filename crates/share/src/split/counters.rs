//! What a node has counted of its shares.

use std::sync::Arc;

use tidegate_algorithms::{Decision, Headroom, Meter, Quota};
use tidegate_store::{
    Charge, Charging, Clock, CounterKey, Decisions, EmbeddedStore, Mode, StoreConfig, StoreError,
};

use super::store_time::StoreTime;

/// What a node has counted of its shares.
///
/// What is counted by aligned windows goes by the store's time, for all nodes must mean the same window.
/// All else only measures spans, and goes by the node's own clock: it never jumps when the store is heard.
#[derive(Debug)]
pub(super) struct Counters<M> {
    aligned: EmbeddedStore<StoreTime<Arc<M>>>,
    measured: EmbeddedStore<Arc<M>>,
}

// === impl Counters ===

impl<M: Clock> Counters<M> {
    pub(super) fn new(config: StoreConfig, clock: Arc<M>) -> Self {
        let half = StoreConfig {
            max_memory: config.max_memory / 2,
        };
        Self {
            aligned: EmbeddedStore::with_clock(half, StoreTime::new(Arc::clone(&clock))),
            measured: EmbeddedStore::with_clock(half, clock),
        }
    }

    /// What is known of the store's time.
    pub(super) fn time(&self) -> &StoreTime<Arc<M>> {
        self.aligned.clock()
    }

    /// Decides on one limit and charges it if it admits, whatever its mode: what its word counts for is
    /// weighed over the request.
    pub(super) fn charge(
        &self,
        charge: &Charge<'_>,
        quota: &Quota,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        let alone = [Charge {
            quota,
            mode: Mode::Enforce,
            ..*charge
        }];
        let mut decisions = Decisions::new();
        if is_aligned(quota) {
            self.aligned.charge_now(&alone, charging, &mut decisions)?;
        } else {
            self.measured.charge_now(&alone, charging, &mut decisions)?;
        }
        Ok(decisions[0])
    }

    pub(super) fn peek(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
    ) -> Result<Decision, StoreError> {
        if is_aligned(quota) {
            self.aligned.peek_now(key, quota, headroom)
        } else {
            self.measured.peek_now(key, quota, headroom)
        }
    }

    pub(super) fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
    ) -> Result<(), StoreError> {
        if is_aligned(quota) {
            self.aligned.refund_now(key, quota, cost)
        } else {
            self.measured.refund_now(key, quota, cost)
        }
    }

    pub(super) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> Result<bool, StoreError> {
        if is_aligned(quota) {
            self.aligned.reset_now(key, quota)
        } else {
            self.measured.reset_now(key, quota)
        }
    }
}

/// Whether it matters which window it is.
pub(super) const fn is_aligned(quota: &Quota) -> bool {
    matches!(
        quota.meter(),
        Meter::FixedWindow(_) | Meter::IntervalBucket(_)
    )
}
