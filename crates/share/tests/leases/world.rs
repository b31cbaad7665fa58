//! A world of nodes that share limits, in which time is moved from event to event.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{Headroom, Quota, Time};
use tidegate_share::{EventualConfig, SharedConfig, SharedStore, SplitConfig};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    Mode, OnFull, Store, StoreConfig,
};
use tokio::task::JoinHandle;

use crate::lender::CommonStore;
use crate::time::{NodeClock, TrueTime};
use crate::wire::{DECIDED, Events, Weather, Wire};

/// An edge of minutes and hours in the year 2027.
pub(crate) const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// How often nodes look through what they have in hand.
const SWEEP_EVERY: Duration = Duration::from_millis(10);

pub(crate) type Shared = SharedStore<Wire, NodeClock, NodeClock>;

pub(crate) struct World {
    pub(crate) clock: TrueTime,
    pub(crate) store: Arc<CommonStore>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) admitted: Arc<Mutex<Vec<Admitted>>>,
    /// Requests that could not be decided.
    pub(crate) failed: Arc<Mutex<u64>>,
    next_sweep: Time,
}

/// A request that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Admitted {
    /// When it was decided: by the store if that was asked, else when the node said so.
    pub(crate) at: Time,
    pub(crate) cost: u64,
}

pub(crate) struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) wire: Wire,
    tasks: Vec<JoinHandle<()>>,
}

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        Self::with_store(CommonStore::new)
    }

    /// A world whose store is a real Redis with the product's scripts.
    pub(crate) fn on_redis() -> Self {
        Self::with_store(CommonStore::in_redis)
    }

    fn with_store(start: impl FnOnce(&TrueTime) -> CommonStore) -> Self {
        let clock = TrueTime::at(START);
        Self {
            store: Arc::new(start(&clock)),
            clock,
            nodes: Vec::new(),
            admitted: Arc::default(),
            failed: Arc::default(),
            next_sweep: START,
        }
    }

    /// Lets a node come, and gives its place.
    pub(crate) fn join(&mut self, clock: (u64, i64), weather: Weather) -> usize {
        self.nodes.push(self.node(clock, weather));
        self.nodes.len() - 1
    }

    /// Ends a node at once, whatever it has in hand, and puts another in its place.
    pub(crate) fn kill(&mut self, place: usize, clock: (u64, i64), weather: Weather) {
        for task in self.nodes[place].tasks.drain(..) {
            task.abort();
        }
        self.nodes[place] = self.node(clock, weather);
    }

    /// Sends a request for the one leased limit of a world to a node.
    pub(crate) fn ask(&mut self, place: usize, quota: &Arc<Quota>, cost: u64) {
        let quota = Arc::clone(quota);
        let limits = [(LimitId(1), quota, Consistency::Leased)];
        self.ask_all(place, limits.into(), cost, |_| {});
    }

    /// Sends a request for several limits to a node. `learn` is told the decisions of an answered one.
    pub(crate) fn ask_all(
        &mut self,
        place: usize,
        limits: Vec<(LimitId, Arc<Quota>, Consistency)>,
        cost: u64,
        learn: impl FnOnce(&Decisions) + Send + 'static,
    ) {
        let clock = self.clock.clone();
        let (admitted, failed) = (Arc::clone(&self.admitted), Arc::clone(&self.failed));
        let node = &mut self.nodes[place];
        let shared = Arc::clone(&node.shared);
        let task = DECIDED.scope(Cell::new(None), async move {
            let mut charges = Vec::new();
            for (limit, quota, consistency) in &limits {
                let mut charge = leased(quota, cost);
                charge.key.limit = *limit;
                charge.consistency = *consistency;
                charges.push(charge);
            }
            let mut decisions = Decisions::new();
            let asked = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
            let answer = asked.await;
            if answer.is_ok() {
                learn(&decisions);
            }
            match answer {
                Ok(receipt) if receipt.admission == Admission::Admitted => {
                    let decided = DECIDED.with(Cell::get);
                    let at = decided.unwrap_or_else(|| clock.now());
                    let mut admitted = admitted.lock().expect("no test goes on after a panic");
                    admitted.push(Admitted { at, cost });
                }
                Ok(_) => {}
                Err(_) => *failed.lock().expect("no test goes on after a panic") += 1,
            }
        });
        node.tasks.push(tokio::spawn(task));
    }

    /// Moves time on, through everything that happens meanwhile.
    pub(crate) async fn advance(&mut self, by: Duration) {
        let end = self.clock.now().plus(by);
        self.settle().await;
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            self.clock.set(at.max(self.clock.now()));
            self.wake();
            self.sweep();
            self.settle().await;
        }
        self.clock.set(end);
    }

    /// Lets every task go on as far as it can at this instant.
    async fn settle(&self) {
        settle().await;
        while let Some(redis) = self.store.busy_redis() {
            redis.next_reply().await;
            settle().await;
        }
    }

    /// Calls of all nodes that went out so far.
    pub(crate) fn calls(&self) -> u64 {
        let calls = |node: &Node| node.wire.with_events(|events| events.calls);
        self.nodes.iter().map(calls).sum()
    }

    /// What was admitted, in order of time.
    pub(crate) fn history(&self) -> Vec<Admitted> {
        let mut admitted = self.admitted.lock().expect("no panic").clone();
        admitted.sort_unstable();
        admitted
    }

    fn node(&self, (ahead_nanos, drift_ppm): (u64, i64), weather: Weather) -> Node {
        let clock = NodeClock::new(&self.clock, ahead_nanos, drift_ppm);
        let wire = Wire::new(Arc::clone(&self.store), &self.clock, weather);
        let small = StoreConfig {
            max_memory: 1 << 20,
        };
        let config = SharedConfig {
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
        let local = EmbeddedStore::with_clock(small, clock.clone());
        let shared = SharedStore::with_clock(wire.clone(), local, config, clock);
        Node {
            shared: Arc::new(shared),
            wire,
            tasks: Vec::new(),
        }
    }

    fn next_event(&self) -> Option<Time> {
        let first = |events: &mut Events| events.wakes.iter().map(|(at, _)| *at).min();
        let wakes = self.nodes.iter();
        let wakes = wakes.filter_map(|node| node.wire.with_events(first));
        wakes.chain([self.next_sweep]).min()
    }

    fn wake(&self) {
        let now = self.clock.now();
        for node in &self.nodes {
            node.wire.with_events(|events| {
                for (_, wake) in events.wakes.extract_if(.., |(at, _)| *at <= now) {
                    // Whoever waited may be gone.
                    let _ = wake.send(());
                }
            });
        }
    }

    fn sweep(&mut self) {
        if self.clock.now() < self.next_sweep {
            return;
        }
        self.next_sweep = self.clock.now().plus(SWEEP_EVERY);
        for node in &mut self.nodes {
            node.tasks.retain(|task| !task.is_finished());
            let shared = Arc::clone(&node.shared);
            node.tasks
                .push(tokio::spawn(async move { shared.sweep().await }));
        }
    }
}

/// The charge of the one limit of these worlds.
pub(crate) fn leased(quota: &Quota, cost: u64) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &["ann"],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Leased,
    }
}

/// Lets every task go on as far as it can at this instant.
pub(crate) async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}
