//! `split`: each node enforces its share of a limit, in its own memory.
//!
//! Nodes tell the common store what they want of each limit, and hear who has what part of it in this
//! epoch and in the next. A node spends its share only while it surely is the epoch of a plan that names
//! it. What no node has lies in the store: whoever has no share, has used it up or is not sure asks for
//! that. Shares and reserve are no more than the limit together, so no node needs to know what the
//! others do.

mod counters;
mod cut;
mod portion;
mod reserve;
mod spend;
mod store_time;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_algorithms::Time;
use tidegate_store::report::SplitReport;
use tidegate_store::{
    Beat, Charge, Clock, LimitId, MAX_WANTS, Members, Monotonic, NodeId, Pulse, StoreConfig,
    StoreError, Want,
};
use tokio::sync::Notify;

use self::counters::Counters;
pub use self::cut::{Indivisible, LONGEST_SPLIT_WINDOW, divisible, strict_from};
use self::portion::Portion;
pub(crate) use self::spend::whole;
pub(crate) use self::store_time::Bounds;
use self::store_time::StoreTime;
use crate::membership::{KnownMembers, Membership};
use crate::reckoning::Heard;
use crate::refusals::Refusals;

/// The most limits that a node has shares of. Of others it gets what every plan leaves in the store.
const MOST_LIMITS: usize = 4_096;

/// A limit that nobody asked for in so many heartbeats in a row is forgotten.
const IDLE_BEATS: u32 = 64;

/// How a node is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// How often it says that it is there.
    pub heartbeat: Duration,
    /// How long the others believe it.
    pub expiry: Duration,
    /// How much it may remember.
    pub store: StoreConfig,
    /// The number of members before the first heartbeat is answered.
    pub members: KnownMembers,
}

/// A node's shares of limits, and its place among the members.
#[derive(Debug)]
pub struct Split<M = Monotonic> {
    node: NodeId,
    config: SplitConfig,
    membership: Membership,
    counters: Counters<M>,
    refusals: Refusals,
    limits: ArcSwap<Limits>,
    /// Held by whoever changes which limits are known.
    changing: Mutex<()>,
    /// Told when a limit is met for the first time.
    met: Notify,
    heartbeats: AtomicU64,
    failures: AtomicU64,
    /// When the store last answered one, by the node's clock; 0 before.
    answered: AtomicU64,
}

type Limits = HashMap<LimitId, Arc<Portion>>;

// === impl SplitConfig ===

impl Default for SplitConfig {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            expiry: Duration::from_secs(3),
            store: StoreConfig {
                max_memory: 64 << 20,
            },
            members: KnownMembers::default(),
        }
    }
}

// === impl Split ===

impl Split {
    /// A node that is no member yet and has no shares.
    ///
    /// # Panics
    ///
    /// If the system does not give out the memory.
    pub fn new(config: SplitConfig) -> Self {
        Self::with_clock(config, Arc::new(Monotonic::new()))
    }
}

impl<M> Split<M> {
    /// The name of this node.
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// How many nodes there are.
    pub const fn membership(&self) -> &Membership {
        &self.membership
    }
}

impl<M: Clock> Split<M> {
    /// The same with another clock to measure spans by.
    pub fn with_clock(config: SplitConfig, clock: Arc<M>) -> Self {
        let settling = config.expiry + 2 * config.heartbeat;
        Self {
            node: NodeId::random(),
            config,
            membership: Membership::new(config.members, settling, clock.now()),
            counters: Counters::new(config.store, clock),
            refusals: Refusals::new(),
            limits: ArcSwap::default(),
            changing: Mutex::new(()),
            met: Notify::new(),
            heartbeats: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// How it is doing.
    pub fn report(&self) -> SplitReport {
        let bounds = self.time().bounds();
        let limits = self.limits.load();
        let has_share =
            |portion: &&Arc<Portion>| bounds.is_some_and(|it| portion.held().has_share(it));
        SplitReport {
            counters: limits.values().filter(has_share).count() as u64,
            heartbeats: self.heartbeats.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            age: self.age(),
        }
    }

    /// Says that the node is there, again and again, and at once when it meets a limit. Never ends.
    pub async fn run(&self, members: &impl Members) {
        loop {
            // Counted; the next one comes anyway, and plans end by themselves.
            let _ = self.beat(members).await;
            let _ = tokio::time::timeout(self.config.heartbeat, self.met.notified()).await;
        }
    }

    /// Says that the node is there and what it wants, and takes note of what it is given.
    pub async fn beat(&self, members: &impl Members) -> Result<(), StoreError> {
        let wants = self.wants();
        let mut said = wants.chunks(MAX_WANTS);
        // Also when there is nothing to say.
        let mut next = Some(said.next().unwrap_or_default());
        while let Some(wants) = next {
            let asked = self.time().own().now();
            let beat = self.beat_of(wants);
            let pulse = members.beat(&beat).await;
            let pulse = pulse.inspect_err(|_| {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.membership.doubt(self.time().own().now());
            })?;
            self.heartbeats.fetch_add(1, Ordering::Relaxed);
            self.hear(asked, wants, &pulse);
            next = said.next();
        }
        Ok(())
    }

    /// Says that the node is no longer there. It may spend what plans have given it until they end.
    pub async fn leave(&self, members: &impl Members) -> Result<(), StoreError> {
        members.leave(self.node).await
    }

    /// What the node wants now. Forgets limits that nobody asked for in a long while.
    fn wants(&self) -> Vec<Want> {
        let at = self.time().own().now();
        let mut wants: Vec<Want> = Vec::new();
        let mut is_stale = false;
        for (limit, portion) in &**self.limits.load() {
            wants.push(portion.want(*limit, self.config.heartbeat, at));
            is_stale |= portion.idle() >= IDLE_BEATS;
        }
        if is_stale {
            self.change(|limits| limits.retain(|_, portion| portion.idle() < IDLE_BEATS));
        }
        wants
    }

    const fn beat_of<'a>(&self, wants: &'a [Want]) -> Beat<'a> {
        Beat {
            node: self.node,
            expiry: self.config.expiry,
            pace: self.config.heartbeat,
            wants,
        }
    }

    /// Takes note of what the store said to a heartbeat that was sent at `asked`.
    fn hear(&self, asked: Time, wants: &[Want], pulse: &Pulse) {
        let answered = self.time().own().now();
        let &Pulse {
            now,
            members,
            previous,
            ..
        } = pulse;
        self.membership
            .check_store(now, previous, members, answered);
        self.membership.receive(members, answered);
        self.answered
            .store(answered.nanos().max(1), Ordering::Relaxed);
        self.time().hear(Heard {
            now: pulse.now,
            asked,
            answered,
        });
        let limits = self.limits.load();
        for (want, plans) in wants.iter().zip(&pulse.plans) {
            if let Some(portion) = limits.get(&want.limit) {
                portion.hold(*plans);
            }
        }
    }

    fn time(&self) -> &StoreTime<Arc<M>> {
        self.counters.time()
    }

    /// How long ago the store answered a heartbeat; `None` if it never did.
    fn age(&self) -> Option<Duration> {
        match self.answered.load(Ordering::Relaxed) {
            0 => None,
            answered => Some(self.time().own().now().since(Time::from_nanos(answered))),
        }
    }

    /// Begins to want a limit, if it is one to have a share of.
    #[cold]
    fn meet(&self, charge: &Charge<'_>) {
        if divisible(charge.quota).is_err() || self.limits.load().len() >= MOST_LIMITS {
            return;
        }
        let at = self.time().own().now();
        self.change(|limits| {
            let new = || Arc::new(Portion::new(charge.quota, at));
            let portion = limits.entry(charge.key.limit).or_insert_with(new);
            portion.ask(charge.cost);
        });
        self.met.notify_one();
    }

    /// Changes which limits are known.
    fn change(&self, make: impl FnOnce(&mut Limits)) {
        // Nothing is under this lock that could be left half done.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut limits = Limits::clone(&self.limits.load());
        make(&mut limits);
        self.limits.store(Arc::new(limits));
    }
}

#[cfg(test)]
mod tests;
