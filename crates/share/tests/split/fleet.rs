//! Nodes, a common store and traffic, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Quota, Time};
use tidegate_share::{SharedStore, SplitConfig};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Decisions, EmbeddedStore, ManualClock, Store,
};

use crate::at_once;
use crate::common_store::{Common, shared, small, split};

pub(crate) const MILLI: Duration = Duration::from_millis(1);
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);

type SharedClock = Arc<ManualClock>;

/// Nodes that share one store. The clocks of the nodes show any time, but run as fast as the store's.
pub(crate) struct Fleet {
    clock: SharedClock,
    pub(crate) common: Common<SharedClock>,
    nodes: Vec<Node>,
    /// Steps of a millisecond since the start.
    steps: u64,
    /// The store's time of every admission, in order.
    pub(crate) admitted: Vec<Time>,
}

struct Node {
    clock: SharedClock,
    store: SharedStore<Common<SharedClock>, SharedClock, SharedClock>,
}

// === impl Fleet ===

impl Fleet {
    /// So many nodes, whose heartbeats are spread over a second.
    pub(crate) fn new(nodes: u64) -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_micros(1_800_000_000_000_000)));
        let common = Common::new(Arc::clone(&clock));
        let node = |number: u64| {
            // No two clocks agree on where a window begins.
            let offset = Time::from_micros(7_000_000 + number * 1_234_567);
            let own = Arc::new(ManualClock::at(offset));
            let local = EmbeddedStore::with_clock(small(), Arc::clone(&own));
            let config = shared(SplitConfig::default());
            let store = SharedStore::with_clock(common.clone(), local, config, Arc::clone(&own));
            Node { clock: own, store }
        };
        let nodes = (0..nodes).map(node).collect();
        Self {
            clock,
            common,
            nodes,
            steps: 0,
            admitted: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends `per_second` requests for a limit, to nodes in proportion to `weights`, evenly.
    pub(crate) fn drive(
        &mut self,
        quota: &Quota,
        per_second: u64,
        weights: &[u64],
        span: Duration,
    ) {
        let total: u64 = weights.iter().sum();
        let due = |step: u64| step * per_second / 1_000;
        for step in 0..span.as_millis().try_into().unwrap() {
            for request in due(step)..due(step + 1) {
                // Spread by a step that has no factor in common with the total.
                let mut place = request * 7_919 % total;
                let node = weights.iter().position(|weight| {
                    let is_it = place < *weight;
                    place = place.saturating_sub(*weight);
                    is_it
                });
                self.request(node.unwrap(), &[split(quota, 1)]);
            }
            self.pass();
        }
    }

    /// Decides one request; if the store fails, the node decides alone.
    pub(crate) fn request(&mut self, node: usize, charges: &[Charge<'_>]) -> Admission {
        let store = &self.nodes[node].store;
        let mut decisions = Decisions::new();
        let charging = Charging::AllOrNone;
        let charged = at_once(store.charge(charges, charging, &mut decisions))
            .or_else(|_| store.charge_alone(charges, charging, &mut decisions));
        let admission = charged.unwrap().admission;
        if admission == Admission::Admitted {
            self.admitted.push(self.clock.now());
        }
        admission
    }

    /// Returns how long it is until the next window begins.
    pub(crate) fn to_edge(&self, window: Duration) -> Duration {
        let since = u128::from(self.now().nanos()) % window.as_nanos();
        window.saturating_sub(Duration::from_nanos(since.try_into().unwrap()))
    }

    /// Lets a millisecond pass. Each node sends a heartbeat once in a second.
    pub(crate) fn pass(&mut self) {
        self.clock.advance(MILLI);
        self.steps += 1;
        let count = u64::try_from(self.nodes.len()).unwrap();
        for (place, node) in (0..).zip(&self.nodes) {
            node.clock.advance(MILLI);
            let second = u64::try_from(HEARTBEAT.as_millis()).unwrap();
            if self.steps % second == place * second / count {
                let _ = at_once(node.store.split().beat(&self.common));
            }
        }
    }

    /// Returns what was admitted in each window of the store's clock since `from`.
    pub(crate) fn windows(&self, window: Duration, from: Time) -> Vec<u64> {
        let number = |time: Time| u128::from(time.nanos()) / window.as_nanos();
        let first = number(from);
        let mut windows = vec![0; usize::try_from(number(self.now()) - first).unwrap()];
        for at in self.admitted.iter().filter(|at| **at >= from) {
            let place = usize::try_from(number(*at) - first).unwrap();
            if let Some(count) = windows.get_mut(place) {
                *count += 1;
            }
        }
        windows
    }

    /// Returns the most that was admitted in any span as long as `window`.
    pub(crate) fn most_in_any(&self, window: Duration) -> usize {
        let admitted = &self.admitted;
        let mut first = 0;
        let counts = (0..admitted.len()).map(|last| {
            while admitted[first].plus(window) <= admitted[last] {
                first += 1;
            }
            last + 1 - first
        });
        counts.max().unwrap_or(0)
    }
}
