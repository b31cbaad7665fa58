//! What a node has of one limit, and what it wants of it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::{LimitId, Plan, Plans, Want};

use super::cut::{Fraction, cut, memory, parts};
use super::store_time::Bounds;

/// What a node has of one limit, and what it wants of it.
#[derive(Debug)]
pub(super) struct Portion {
    /// What requests have asked for since it was last told.
    asked: AtomicU64,
    held: ArcSwap<Held>,
    demand: Mutex<Demand>,
}

/// The plans that a node knows for one limit.
#[derive(Debug, Default)]
pub(super) struct Held {
    current: Option<Arc<Share>>,
    next: Option<Arc<Share>>,
}

/// One plan, and what follows from it for a quota.
#[derive(Debug)]
pub(super) struct Share {
    plan: Plan,
    /// For the numbers that were asked about first. Others, of a reload or of a request that brings its
    /// own, are worked out anew each time.
    usual: OnceLock<Cuts>,
}

/// A quota cut as a plan says.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    whole: Quota,
    /// What this node admits by itself; `None` if nothing.
    pub(super) own: Option<Quota>,
    /// What the common store admits.
    pub(super) reserve: Arc<Quota>,
}

/// How much a node could use of a limit.
#[derive(Debug)]
struct Demand {
    /// The numbers of the limit, as they were last seen.
    quota: Quota,
    /// What was asked for in about an epoch.
    asked: u64,
    /// When that was last worked out, by the node's clock.
    at: Time,
    /// How often in a row nothing was asked for.
    idle: u32,
}

// === impl Portion ===

impl Portion {
    /// A limit that a node hears of at `at`.
    pub(super) fn new(quota: &Quota, at: Time) -> Self {
        Self {
            asked: AtomicU64::new(0),
            held: ArcSwap::default(),
            demand: Mutex::new(Demand {
                quota: quota.clone(),
                asked: 0,
                at,
                idle: 0,
            }),
        }
    }

    /// Takes note that somebody asks for so much.
    pub(super) fn ask(&self, cost: u64) {
        self.asked.fetch_add(cost, Ordering::Relaxed);
    }

    /// The plans that are known.
    pub(super) fn held(&self) -> arc_swap::Guard<Arc<Held>> {
        self.held.load()
    }

    /// Takes note of plans.
    pub(super) fn hold(&self, plans: Plans) {
        let before = self.held.load();
        let share = |plan: Plan| match before.find(|known| *known == plan) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Share::new(plan)),
        };
        self.held.store(Arc::new(Held {
            current: plans.current.map(share),
            next: plans.next.map(share),
        }));
    }

    /// Takes note that the limit has other numbers now.
    pub(super) fn renumber(&self, quota: &Quota) {
        self.lock().quota.clone_from(quota);
    }

    /// What the node wants at `at`, by its own clock, if epochs are no shorter than `pace`.
    pub(super) fn want(&self, limit: LimitId, pace: Duration, at: Time) -> Want {
        let epoch = self.held().epoch();
        let fresh = self.asked.swap(0, Ordering::Relaxed);
        let mut demand = self.lock();
        let memory = memory(&demand.quota);
        let window = demand.quota.window();
        let epoch = epoch.unwrap_or_else(|| pace.max(memory).max(window));
        demand.learn(fresh, epoch, at);
        Want {
            limit,
            window,
            memory,
            parts: parts(&demand.quota),
            demand: demand.in_parts(epoch),
        }
    }

    /// How often in a row nothing was asked for when the node was about to tell.
    pub(super) fn idle(&self) -> u32 {
        self.lock().idle
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Demand> {
        // Nothing under this lock panics half-way.
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Held ===

impl Held {
    /// The plan of the epoch that it surely is, if it is known.
    pub(super) fn at(&self, bounds: Bounds) -> Option<&Share> {
        let is_now = |plan: &Plan| bounds.are_within(plan.starts, plan.ends);
        self.find(is_now).map(|share| &**share)
    }

    /// What of a quota the common store admits, whatever of those times it is.
    pub(super) fn reserve(&self, bounds: Bounds, quota: &Quota) -> Arc<Quota> {
        let first = self.reserve_at(bounds.earliest, quota);
        if self.at(bounds).is_some() {
            return first;
        }
        let last = self.reserve_at(bounds.latest, quota);
        if first.limit() <= last.limit() {
            first
        } else {
            last
        }
    }

    /// What of a quota the common store admits at that time: what the plan says or, if none is known,
    /// what every plan leaves there.
    pub(super) fn reserve_at(&self, time: Time, quota: &Quota) -> Arc<Quota> {
        match self.find(|plan| (plan.starts..plan.ends).contains(&time)) {
            Some(share) => Arc::clone(&share.cuts(quota).reserve),
            None => least_reserve(quota),
        }
    }

    /// Whether the node has a part by itself in the epoch that it surely is.
    pub(super) fn has_share(&self, bounds: Bounds) -> bool {
        self.at(bounds).is_some_and(|share| share.plan.share > 0)
    }

    fn find(&self, is_it: impl Fn(&Plan) -> bool) -> Option<&Arc<Share>> {
        let known = self.current.iter().chain(&self.next);
        known.into_iter().find(|share| is_it(&share.plan))
    }

    /// How long an epoch is, if that is known.
    fn epoch(&self) -> Option<Duration> {
        let share = self.current.as_ref().or(self.next.as_ref())?;
        Some(share.plan.ends.since(share.plan.starts))
    }
}

// === impl Share ===

impl Share {
    const fn new(plan: Plan) -> Self {
        Self {
            plan,
            usual: OnceLock::new(),
        }
    }

    /// Its epoch.
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The quota cut as the plan says.
    pub(super) fn cuts(&self, quota: &Quota) -> Cow<'_, Cuts> {
        let usual = self.usual.get_or_init(|| Cuts::new(quota, &self.plan));
        if usual.whole == *quota {
            Cow::Borrowed(usual)
        } else {
            Cow::Owned(Cuts::new(quota, &self.plan))
        }
    }

    /// Whether the plan was made for other numbers.
    pub(super) fn is_for_others(&self, quota: &Quota) -> bool {
        self.plan.parts != parts(quota)
    }
}

// === impl Cuts ===

impl Cuts {
    fn new(quota: &Quota, plan: &Plan) -> Self {
        let part = |of| {
            let parts = plan.parts;
            cut(quota, Fraction { of, parts })
        };
        let whole = quota.clone();
        // Of numbers so small that somebody would have nothing, all is asked of the store. All nodes find
        // the same, for they have the same plan.
        match (part(plan.least), part(plan.reserve)) {
            (Some(_), Some(reserve)) => Self {
                whole,
                own: part(plan.share),
                reserve: Arc::new(reserve),
            },
            (None, Some(reserve)) if plan.least == 0 => Self {
                whole,
                own: None,
                reserve: Arc::new(reserve),
            },
            _ => Self {
                own: None,
                reserve: Arc::new(whole.clone()),
                whole,
            },
        }
    }
}

// === impl Demand ===

impl Demand {
    /// Lets go of what was asked for an epoch ago, evenly, and adds what is fresh.
    fn learn(&mut self, fresh: u64, epoch: Duration, at: Time) {
        let since = at.since(self.at).min(epoch);
        let gone = u128::from(self.asked) * since.as_nanos() / epoch.as_nanos().max(1);
        let gone = u64::try_from(gone).unwrap_or(u64::MAX);
        self.asked = self.asked.saturating_sub(gone).saturating_add(fresh);
        self.at = at;
        self.idle = if fresh == 0 {
            self.idle.saturating_add(1)
        } else {
            0
        };
    }

    /// How many parts of the limit would do, no more than there are.
    fn in_parts(&self, epoch: Duration) -> u32 {
        let parts = parts(&self.quota);
        let windows = |span: Duration| span.as_nanos().max(1);
        let in_window = u128::from(self.asked).saturating_mul(windows(self.quota.window()));
        let of_limit = u128::from(self.quota.limit().max(1)).saturating_mul(windows(epoch));
        let wanted = in_window
            .saturating_mul(u128::from(parts))
            .div_ceil(of_limit);
        u32::try_from(wanted).unwrap_or(parts).min(parts)
    }
}

/// What every plan leaves in the common store.
pub(super) fn least_reserve(quota: &Quota) -> Arc<Quota> {
    let parts = parts(quota);
    let of = Plan::least_reserve(parts);
    let reserve = cut(quota, Fraction { of, parts });
    Arc::new(reserve.unwrap_or_else(|| quota.clone()))
}
