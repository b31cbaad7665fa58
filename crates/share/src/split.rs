//! `split`: each node enforces its share of a limit, in its own memory.
//!
//! Nodes tell the common store what they want of each limit, and hear who has what part of it in this
//! epoch and in the next. A node spends its share only while it surely is the epoch of a plan that names
//! it. What no node has lies in the store: whoever has no share, has used it up or is not sure asks for
//! that. Shares and reserve are no more than the limit together, so no node needs to know what the
//! others do.

mod cut;
mod portion;
mod reserve;
mod store_time;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_algorithms::{Decision, Headroom, Meter, Outcome, Quota, Retry, Time};
use tidegate_store::report::SplitReport;
use tidegate_store::{
    Beat, Charge, Charging, Clock, CounterKey, Decisions, EmbeddedStore, LimitId, MAX_WANTS,
    Members, Mode, Monotonic, NodeId, Pulse, StoreConfig, StoreError, Want,
};
use tokio::sync::Notify;

pub use self::cut::{Indivisible, LONGEST_SPLIT_WINDOW, divisible};
use self::portion::{Held, Portion, Share};
use self::store_time::{Bounds, StoreTime};
use crate::Membership;
use crate::memory::FromMemory;
use crate::reckoning::Heard;

/// The most limits that a node has shares of. Of others it gets what every plan leaves in the store.
const MOST_LIMITS: usize = 4_096;

/// A limit that nobody asked for in so many heartbeats in a row is forgotten.
const IDLE_BEATS: u32 = 64;

/// How long a request waits for the common store at the longest, as a rule.
const LONGEST_REQUEST: Duration = Duration::from_millis(100);

/// How a node is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// How often it says that it is there.
    pub heartbeat: Duration,
    /// How long the others believe it.
    pub expiry: Duration,
    /// How much it may remember.
    pub store: StoreConfig,
}

/// A node's shares of limits, and its place among the members.
#[derive(Debug)]
pub struct Split<M = Monotonic> {
    node: NodeId,
    config: SplitConfig,
    membership: Membership,
    store: EmbeddedStore<StoreTime<M>>,
    limits: ArcSwap<Limits>,
    /// Held by whoever changes which limits are known.
    changing: Mutex<()>,
    /// Told when a limit is met for the first time.
    met: Notify,
    heartbeats: AtomicU64,
    failures: AtomicU64,
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
        Self::with_clock(config, Monotonic::new())
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
    pub fn with_clock(config: SplitConfig, clock: M) -> Self {
        Self {
            node: NodeId::random(),
            config,
            membership: Membership::default(),
            store: EmbeddedStore::with_clock(config.store, StoreTime::new(clock)),
            limits: ArcSwap::default(),
            changing: Mutex::new(()),
            met: Notify::new(),
            heartbeats: AtomicU64::new(0),
            failures: AtomicU64::new(0),
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
            age: self.time().age(),
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
            self.heartbeats.fetch_add(1, Ordering::Relaxed);
            let pulse = members.beat(&beat).await;
            let pulse = pulse.inspect_err(|_| {
                self.failures.fetch_add(1, Ordering::Relaxed);
            })?;
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
        self.membership.hear(pulse.members);
        self.time().hear(Heard {
            now: pulse.now,
            asked,
            answered: self.time().own().now(),
        });
        let limits = self.limits.load();
        for (want, plans) in wants.iter().zip(&pulse.plans) {
            if let Some(portion) = limits.get(&want.limit) {
                portion.hold(*plans);
            }
        }
    }

    fn time(&self) -> &StoreTime<M> {
        self.store.clock()
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

impl<M: Clock> FromMemory for Split<M> {
    /// `None` if the store is to be asked for the [reserve](reserve::Reserves).
    fn take(
        &self,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Option<Decision>, StoreError> {
        let limits = self.limits.load();
        let Some(portion) = limits.get(&charge.key.limit) else {
            self.meet(charge);
            return Ok(None);
        };
        portion.ask(charge.cost);
        let held = portion.held();
        let Some(share) = self.share(&held, charge.quota) else {
            return Ok(None);
        };
        if share.is_for_others(charge.quota) {
            portion.renumber(charge.quota);
        }
        let cuts = share.cuts(charge.quota);
        let Some(own) = &cuts.own else {
            return Ok(None);
        };
        let decision = self.charge_share(charge, own, charging)?;
        if !decision.is_allowed() {
            return Ok(None);
        }
        // The thread may have slept since it looked at the time.
        if self.is_still(share, charge.quota) {
            return Ok(Some(whole(charge.quota, charge.cost, decision)));
        }
        self.put_back(charge);
        Ok(None)
    }

    fn put_back(&self, charge: &Charge<'_>) {
        let quota = self.quota_taken_from(charge);
        // Cannot fail: the store could tell the counter's window from others when it was charged.
        let _ = self.store.refund_now(charge.key, &quota, charge.cost);
    }

    fn correct(&self, charge: &Charge<'_>, decision: &mut Decision) {
        if let Some(untouched) = self.peek_share(charge.key, charge.quota, charge.headroom) {
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }
}

impl<M: Clock> Split<M> {
    /// What the node's own share of a counter says; `None` if it has none.
    pub(crate) fn peek_share(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
    ) -> Option<Decision> {
        let own = self.own_quota(key.limit, quota)?;
        let decision = self.store.peek_now(key, &own, headroom).ok()?;
        Some(whole(quota, 0, decision))
    }

    /// Gives back to the node's own share of a counter; says whether it has one.
    pub(crate) fn refund_share(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) -> bool {
        let own = self.own_quota(key.limit, quota);
        own.is_some_and(|own| self.store.refund_now(key, &own, cost).is_ok())
    }

    /// Forgets what the node itself has counted.
    pub(crate) fn reset_share(&self, key: CounterKey<'_>, quota: &Quota) -> bool {
        self.store.reset_now(key, quota).unwrap_or(false)
    }

    fn charge_share(
        &self,
        charge: &Charge<'_>,
        own: &Quota,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        let alone = Charge {
            quota: own,
            // What its word counts for is weighed over the request.
            mode: Mode::Enforce,
            ..*charge
        };
        let mut decisions = Decisions::new();
        self.store.charge_now(&[alone], charging, &mut decisions)?;
        Ok(decisions[0])
    }

    /// The plan that it surely is the time of.
    fn share<'a>(&self, held: &'a Held, quota: &Quota) -> Option<&'a Share> {
        let bounds = self.time().bounds()?;
        held.at(bounds).filter(|_| is_one_window(bounds, quota))
    }

    /// What the node admits by itself of a limit now; `None` if nothing.
    fn own_quota(&self, limit: LimitId, quota: &Quota) -> Option<Quota> {
        let limits = self.limits.load();
        let held = limits.get(&limit)?.held();
        let share = self.share(&held, quota)?;
        share.cuts(quota).own.clone()
    }

    /// The quota that a charge was taken from a moment ago, or one that gives back less. A bucket fills
    /// the faster the more it has, and so gives back the less for a request: just after an edge, when it
    /// may have had more before, the whole quota stands in.
    fn quota_taken_from<'a>(&self, charge: &Charge<'a>) -> Cow<'a, Quota> {
        let limits = self.limits.load();
        let held = limits.get(&charge.key.limit).map(|portion| portion.held());
        let share = held
            .as_ref()
            .and_then(|held| self.share(held, charge.quota));
        let bounds = self.time().bounds();
        match share.zip(bounds) {
            Some((share, bounds))
                if bounds.earliest.since(share.plan().starts) > LONGEST_REQUEST =>
            {
                let own = share.cuts(charge.quota).own.clone();
                own.map_or(Cow::Borrowed(charge.quota), Cow::Owned)
            }
            _ => Cow::Borrowed(charge.quota),
        }
    }

    fn is_still(&self, share: &Share, quota: &Quota) -> bool {
        let plan = share.plan();
        self.time().bounds().is_some_and(|bounds| {
            bounds.are_within(plan.starts, plan.ends) && is_one_window(bounds, quota)
        })
    }
}

/// Whether all of those times count for the same window of a quota that counts by windows.
fn is_one_window(bounds: Bounds, quota: &Quota) -> bool {
    match quota.meter() {
        Meter::FixedWindow(_) | Meter::IntervalBucket(_) => bounds.are_in_one(quota.window()),
        _ => true,
    }
}

/// A decision on a part of a limit, as one on the whole.
pub(crate) fn whole(quota: &Quota, cost: u64, decision: Decision) -> Decision {
    let capacity = cut::capacity(quota);
    let most = capacity.saturating_add(quota.most_extra());
    let outcome = match decision.outcome {
        // It does not fit this part, and may fit what the next epoch brings.
        Outcome::Denied {
            retry: Retry::Never,
        } if cost <= most => Outcome::Denied {
            retry: Retry::After(quota.window()),
        },
        outcome => outcome,
    };
    Decision {
        outcome,
        limit: capacity,
        ..decision
    }
}
