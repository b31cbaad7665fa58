//! Making the store, with what an earlier process saved.

use std::io::{self, Write};
use std::sync::Arc;

use tidegate_store::{Clock, EmbeddedStore, Monotonic, Written};

use super::{SharedConfig, SharedStore};
use crate::eventual::Eventual;
use crate::leased::Leases;
use crate::node::Node;
use crate::noted::Noted;
use crate::reckoning::StoreClock;
use crate::saved::{self, CounterGroup, RestoreResult, SavedCounters};
use crate::split::Split;
use crate::standby::Standby;

// === impl SharedStore ===

impl<R> SharedStore<R> {
    /// Does the same, and goes on with what an earlier process saved: `saved` returns the snapshot of each
    /// group, if there is one. Also returns what became of each snapshot; a group whose snapshot cannot be
    /// restored starts empty.
    pub fn restore(
        remote: R,
        local: EmbeddedStore,
        config: SharedConfig,
        saved: impl FnMut(CounterGroup) -> Option<SavedCounters>,
    ) -> (Self, Vec<(CounterGroup, RestoreResult)>) {
        Self::build(remote, local, config, Monotonic::new(), saved)
    }
}

impl<R, W: Clock, M: Clock> SharedStore<R, W, M> {
    pub(super) fn build(
        remote: R,
        local: EmbeddedStore<W>,
        config: SharedConfig,
        clock: M,
        mut saved: impl FnMut(CounterGroup) -> Option<SavedCounters>,
    ) -> (Self, Vec<(CounterGroup, RestoreResult)>) {
        let [standby_saved, eventual_saved] = CounterGroup::ALL.map(&mut saved);
        let clock = Arc::new(clock);
        let split = Split::with_clock(config.split, Arc::clone(&clock))
            .with_denial_memory(config.leases.remember_denials);
        let (eventual, eventual_restored) =
            Eventual::with_shares(config.eventual.clone(), Arc::clone(&clock), eventual_saved);
        let reckoned = StoreClock::new(Arc::clone(&clock), local.clock().now());
        let standby = Standby::new(config.standby, split.membership().clone());
        let (alone, standby_restored) = saved::open(config.standby_memory, reckoned, standby_saved);
        let common = Arc::new(Noted::new(remote, Node::new(local), alone, standby));
        let store = Self {
            leases: Arc::new(Leases::new(Arc::clone(&common), config.leases, clock)),
            common,
            split,
            eventual,
            config,
        };
        let restored = [standby_restored, eventual_restored];
        let restored = CounterGroup::ALL.into_iter().zip(restored);
        let restored = restored.filter_map(|(group, restored)| Some((group, restored?)));
        (store, restored.collect())
    }

    /// Writes a snapshot of a group of counters, for [`restore`](SharedStore::restore).
    pub fn save(&self, group: CounterGroup, out: impl Write) -> io::Result<Written> {
        match group {
            CounterGroup::Standby => self.common.alone().write_snapshot(out),
            CounterGroup::Eventual => self.eventual.shares().write_snapshot(out),
        }
    }
}
