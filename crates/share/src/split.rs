//! `split`: each node enforces its share of a limit, in its own memory.
//!
//! Nodes send the common store their demand for each limit, and receive plans: the share of each node in this
//! epoch and in the next. A node spends its share only while the epoch of a plan that names it surely lasts.
//! The parts that no node has are the reserve, in the store: a node asks for it if it has no share, has used
//! it up or is unsure of the epoch. Shares and reserve are no more than the limit together, so no node needs
//! to know what the others do. While the store is unavailable a node decides alone ([`alone`]).

mod alone;
mod counters;
mod cut;
mod demand;
mod denied;
mod limit;
mod refund;
mod reserve;
mod spend;
mod store_time;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::report::SplitReport;
use tidegate_store::{
    Beat, Charge, Clock, LimitId, LimitReservation, MAX_WANTS, Members, Monotonic, NodeId,
    OldCounters, Pulse, StoreConfig, StoreError, Want,
};
use tokio::sync::Notify;

pub(crate) use self::alone::SplitAlone;
use self::counters::Counters;
pub(crate) use self::counters::is_aligned;
pub use self::cut::{Indivisible, LONGEST_SPLIT_WINDOW, divisible, strict_from};
use self::denied::DeniedRequests;
use self::limit::SplitLimit;
pub(crate) use self::reserve::Reserves;
pub(crate) use self::spend::whole;
use self::store_time::StoreTime;
use crate::membership::{KnownMembers, Membership};
use crate::reckoning::Heard;
use crate::replies::ReplyCache;

/// The most limits that a node has shares of. Of others it gets the least reserve of all plans.
const MOST_LIMITS: usize = 4_096;

/// A limit that nobody asks for during this many heartbeats is forgotten.
const IDLE_BEATS: u32 = 64;

/// The time for which a denial is remembered, by default: this late a node notices that another one
/// refunded something.
const REMEMBER_DENIALS: Duration = Duration::from_millis(100);

/// The membership of a node, and its memory for shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// The time between two heartbeats.
    pub heartbeat: Duration,
    /// The time for which a node stays a member without a heartbeat.
    pub expiry: Duration,
    /// The memory for counters.
    pub store: StoreConfig,
    /// The longest time that a call to the common store takes.
    pub store_timeout: Duration,
    /// The number of members before the first heartbeat is answered.
    pub members: KnownMembers,
}

/// A node's shares of limits, and its membership.
#[derive(Debug)]
pub struct Split<M = Monotonic> {
    node: NodeId,
    config: SplitConfig,
    membership: Membership,
    counters: Counters<M>,
    replies: ReplyCache,
    denied: DeniedRequests,
    /// The longest time for which a denial of the store is remembered.
    remember_denials: Duration,
    limits: ArcSwap<Limits>,
    /// Held while the set of known limits changes.
    changing: Mutex<()>,
    /// Notified when a limit is met for the first time.
    met: Notify,
    heartbeats: AtomicU64,
    failures: AtomicU64,
    /// Whether the last heartbeat failed.
    has_failed: AtomicBool,
    /// The time of the last reply to one, by the node's clock; 0 before the first.
    answered: AtomicU64,
}

type Limits = HashMap<LimitId, Arc<SplitLimit>>;

// === impl SplitConfig ===

impl Default for SplitConfig {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            expiry: Duration::from_secs(3),
            store: StoreConfig {
                max_memory: 64 << 20,
            },
            store_timeout: Duration::from_millis(50),
            members: KnownMembers::default(),
        }
    }
}

// === impl Split ===

impl Split {
    /// A node that is not a member yet and has no shares.
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

    /// The number of nodes.
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
            replies: ReplyCache::new(),
            denied: DeniedRequests::new(),
            remember_denials: REMEMBER_DENIALS,
            limits: ArcSwap::default(),
            changing: Mutex::new(()),
            met: Notify::new(),
            heartbeats: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            answered: AtomicU64::new(0),
        }
    }

    /// Sets how long denials of the store are remembered at the longest.
    #[must_use]
    pub(crate) fn with_denial_memory(self, span: Duration) -> Self {
        Self {
            remember_denials: span,
            ..self
        }
    }

    /// Reserves room for shares of limits with these quotas.
    pub(crate) fn reserve_limits(
        &self,
        quotas: &[&Quota],
        old: OldCounters,
    ) -> Result<[LimitReservation<'_>; 2], StoreError> {
        self.counters.reserve_limits(quotas, old)
    }

    /// Charges to shares that found no room and were decided by `on_full`.
    pub(crate) fn untracked(&self) -> u64 {
        self.counters.untracked()
    }

    pub(crate) fn recognise_idle(&self, part: u32, parts: u32) {
        self.counters.recognise_idle(part, parts);
    }

    /// Whether `on_full` decided on a share in the last minute.
    pub(crate) fn is_full(&self) -> bool {
        self.counters.is_full()
    }

    /// Counts for metrics.
    pub fn report(&self) -> SplitReport {
        let bounds = self.time().bounds();
        let limits = self.limits.load();
        let has_share = |limit: &&Arc<SplitLimit>| {
            let plans = limit.plans();
            let share = bounds.and_then(|bounds| plans.at(bounds));
            share.is_some_and(|share| share.plan().share > 0)
        };
        SplitReport {
            counters: limits.values().filter(has_share).count() as u64,
            heartbeats: self.heartbeats.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            age: self.age(),
        }
    }

    /// Sends heartbeats for ever, and one at once when the node meets a limit.
    pub async fn run(&self, members: &impl Members) {
        loop {
            // A failure is counted; the next heartbeat follows anyway, and plans end by themselves.
            let _ = self.beat(members).await;
            let _ = tokio::time::timeout(self.config.heartbeat, self.met.notified()).await;
        }
    }

    /// Sends the node's demand, and records its shares.
    pub async fn beat(&self, members: &impl Members) -> Result<(), StoreError> {
        let wants = self.wants();
        let mut chunks = wants.chunks(MAX_WANTS);
        // A heartbeat is sent without any demand, too.
        let mut next = Some(chunks.next().unwrap_or_default());
        while let Some(wants) = next {
            let asked = self.time().own().now();
            let beat = self.beat_of(wants);
            let pulse = members.beat(&beat).await;
            let pulse = pulse.inspect_err(|_| {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.has_failed.store(true, Ordering::Relaxed);
                self.membership.doubt(self.time().own().now());
            })?;
            self.heartbeats.fetch_add(1, Ordering::Relaxed);
            self.hear(asked, wants, &pulse);
            next = chunks.next();
        }
        self.has_failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the membership. The node may spend its shares until their plans end.
    pub async fn leave(&self, members: &impl Members) -> Result<(), StoreError> {
        members.leave(self.node).await
    }

    /// The demand for all known limits. Limits that nobody asked for in a long while are forgotten.
    fn wants(&self) -> Vec<Want> {
        let at = self.time().own().now();
        let mut wants: Vec<Want> = Vec::new();
        let mut is_stale = false;
        for (id, limit) in &**self.limits.load() {
            wants.push(limit.want(*id, self.config.heartbeat, at));
            is_stale |= limit.idle() >= IDLE_BEATS;
        }
        if is_stale {
            self.change(|limits| limits.retain(|_, limit| limit.idle() < IDLE_BEATS));
        }
        wants
    }

    fn beat_of<'a>(&self, wants: &'a [Want]) -> Beat<'a> {
        let has_failed = self.has_failed.load(Ordering::Relaxed);
        Beat {
            node: self.node,
            expiry: self.config.expiry,
            pace: self.config.heartbeat,
            alone_among: if has_failed {
                self.membership.members()
            } else {
                0
            },
            wants,
        }
    }

    /// Records the reply to a heartbeat that was sent at `asked`.
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
            if let Some(limit) = limits.get(&want.limit) {
                limit.set_plans(*plans);
            }
        }
    }

    fn time(&self) -> &StoreTime<Arc<M>> {
        self.counters.time()
    }

    /// The time by the node's own clock, which measures spans.
    fn own_now(&self) -> Time {
        self.time().own().now()
    }

    /// The time since the last reply to a heartbeat; `None` before the first.
    fn age(&self) -> Option<Duration> {
        match self.answered.load(Ordering::Relaxed) {
            0 => None,
            answered => Some(self.time().own().now().since(Time::from_nanos(answered))),
        }
    }

    /// Adds a limit to those that the node asks shares of, if it can be split.
    #[cold]
    fn meet(&self, charge: &Charge<'_>) {
        if divisible(charge.quota).is_err() || self.limits.load().len() >= MOST_LIMITS {
            return;
        }
        let at = self.time().own().now();
        self.change(|limits| {
            let new = || Arc::new(SplitLimit::new(charge.quota, at));
            limits.entry(charge.key.limit).or_insert_with(new);
        });
        self.met.notify_one();
    }

    /// Changes the set of known limits.
    fn change(&self, make: impl FnOnce(&mut Limits)) {
        // Nothing under this lock can be left half done.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut limits = Limits::clone(&self.limits.load());
        make(&mut limits);
        self.limits.store(Arc::new(limits));
    }
}

#[cfg(test)]
mod tests;
