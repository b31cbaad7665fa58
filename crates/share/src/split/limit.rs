//! One limit that is split: the plans that a node knows for it, and the demand of its callers.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::{LimitId, Plan, Plans, Want};

use super::cut::{Fraction, cut, memory, parts};
use super::demand::DemandEstimate;
use super::store_time::Bounds;

/// One limit that is split.
#[derive(Debug)]
pub(super) struct SplitLimit {
    /// The cost of the requests since the last heartbeat.
    asked: AtomicU64,
    plans: ArcSwap<KnownPlans>,
    demand: Mutex<Demand>,
}

/// The plans that a node knows for one limit.
#[derive(Debug, Default)]
pub(super) struct KnownPlans {
    current: Option<Arc<PlannedShare>>,
    next: Option<Arc<PlannedShare>>,
}

/// One plan, and the quotas that follow from it.
#[derive(Debug)]
pub(super) struct PlannedShare {
    plan: Plan,
    /// For the numbers that came first. Others, of a reload or of a request with numbers of its own, are
    /// worked out each time.
    usual: OnceLock<PlanQuotas>,
}

/// A quota cut as a plan says.
#[derive(Clone, Debug)]
pub(super) struct PlanQuotas {
    whole: Quota,
    /// The part that this node admits from memory; `None` if nothing.
    pub(super) own: Option<Quota>,
    /// The part that the common store admits.
    pub(super) reserve: Arc<Quota>,
}

#[derive(Debug)]
struct Demand {
    /// The numbers of the limit, as they were last seen.
    quota: Quota,
    estimate: DemandEstimate,
}

// === impl SplitLimit ===

impl SplitLimit {
    /// A limit that a node meets at `at`.
    pub(super) fn new(quota: &Quota, at: Time) -> Self {
        Self {
            asked: AtomicU64::new(0),
            plans: ArcSwap::default(),
            demand: Mutex::new(Demand {
                quota: quota.clone(),
                estimate: DemandEstimate::new(at),
            }),
        }
    }

    /// Adds to the demand.
    pub(super) fn ask(&self, cost: u64) {
        self.asked.fetch_add(cost, Ordering::Relaxed);
    }

    /// The plans that are known.
    pub(super) fn plans(&self) -> arc_swap::Guard<Arc<KnownPlans>> {
        self.plans.load()
    }

    /// Replaces the plans that are known. The first plan of an epoch stands: a store that lost it does not know what was
    /// admitted by it. So a node that read it without a share has none in that epoch, even if it was alone since and the
    /// store has added its part.
    pub(super) fn set_plans(&self, plans: Plans) {
        let before = self.plans.load();
        let epoch = |plan: &Plan| (plan.starts, plan.ends);
        let share = |plan: Plan| match before.find(|known| epoch(known) == epoch(&plan)) {
            Some(known) => Arc::clone(known),
            None => Arc::new(PlannedShare::new(plan)),
        };
        self.plans.store(Arc::new(KnownPlans {
            current: plans.current.map(share),
            next: plans.next.map(share),
        }));
    }

    /// Changes the numbers of the limit.
    pub(super) fn renumber(&self, quota: &Quota) {
        self.lock().quota.clone_from(quota);
    }

    /// The demand to send at `at`, by the node's clock.
    pub(super) fn want(&self, limit: LimitId, heartbeat: Duration, at: Time) -> Want {
        let epoch = self.plans().epoch();
        let asked = self.asked.swap(0, Ordering::Relaxed);
        let mut demand = self.lock();
        let Demand { quota, estimate } = &mut *demand;
        let memory = memory(quota);
        let window = quota.window();
        let epoch = epoch.unwrap_or_else(|| heartbeat.max(memory).max(window));
        estimate.add(asked, at, heartbeat, epoch);
        Want {
            limit,
            window,
            memory,
            parts: parts(quota).max(1),
            demand: estimate.in_parts(quota, heartbeat),
        }
    }

    /// The number of heartbeats in a row for which nothing was requested.
    pub(super) fn idle(&self) -> u32 {
        self.lock().estimate.idle()
    }

    fn lock(&self) -> MutexGuard<'_, Demand> {
        // Nothing under this lock panics half-way.
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl KnownPlans ===

impl KnownPlans {
    /// The plan of the present epoch, if it is known and the node is sure of the epoch.
    pub(super) fn at(&self, bounds: Bounds) -> Option<&PlannedShare> {
        let is_now = |plan: &Plan| bounds.are_within(plan.starts, plan.ends);
        self.find(is_now).map(|share| &**share)
    }

    /// Whether a plan may be in force.
    pub(super) fn may_apply(&self, bounds: Bounds) -> bool {
        let is_in = |plan: &Plan, time| (plan.starts..plan.ends).contains(&time);
        self.find(|plan| is_in(plan, bounds.earliest) || is_in(plan, bounds.latest))
            .is_some()
    }

    /// The part of a quota that the common store admits at any of those times.
    pub(super) fn reserve(&self, bounds: Bounds, quota: &Quota) -> Arc<Quota> {
        let first = self.reserve_at(bounds.earliest, quota);
        if self.at(bounds).is_some() {
            return first;
        }
        let last = self.reserve_at(bounds.latest, quota);
        // Parts of one quota are as their limits are.
        if first.limit() <= last.limit() {
            first
        } else {
            last
        }
    }

    /// The part of a quota that the common store admits at that time: as the plan says or, if none is
    /// known, the least of all plans.
    pub(super) fn reserve_at(&self, time: Time, quota: &Quota) -> Arc<Quota> {
        match self.find(|plan| (plan.starts..plan.ends).contains(&time)) {
            Some(share) => Arc::clone(&share.quotas(quota).reserve),
            None => least_reserve(quota),
        }
    }

    /// The reserve of the last plan that is known.
    pub(super) fn last_reserve(&self, quota: &Quota) -> Arc<Quota> {
        match self.next.as_ref().or(self.current.as_ref()) {
            Some(share) => Arc::clone(&share.quotas(quota).reserve),
            None => least_reserve(quota),
        }
    }

    fn find(&self, is_it: impl Fn(&Plan) -> bool) -> Option<&Arc<PlannedShare>> {
        let known = self.current.iter().chain(&self.next);
        known.into_iter().find(|share| is_it(&share.plan))
    }

    /// The length of an epoch, if it is known.
    fn epoch(&self) -> Option<Duration> {
        let share = self.current.as_ref().or(self.next.as_ref())?;
        Some(share.plan.ends.since(share.plan.starts))
    }
}

// === impl PlannedShare ===

impl PlannedShare {
    const fn new(plan: Plan) -> Self {
        Self {
            plan,
            usual: OnceLock::new(),
        }
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The quota cut as the plan says.
    pub(super) fn quotas(&self, quota: &Quota) -> Cow<'_, PlanQuotas> {
        let usual = self
            .usual
            .get_or_init(|| PlanQuotas::new(quota, &self.plan));
        if usual.whole == *quota {
            Cow::Borrowed(usual)
        } else {
            Cow::Owned(PlanQuotas::new(quota, &self.plan))
        }
    }

    /// Whether the plan was made for other numbers.
    pub(super) fn is_for_others(&self, quota: &Quota) -> bool {
        self.plan.parts != parts(quota).max(1)
    }
}

// === impl PlanQuotas ===

impl PlanQuotas {
    fn new(quota: &Quota, plan: &Plan) -> Self {
        let part = |of| {
            let parts = plan.parts;
            cut(quota, Fraction { of, parts })
        };
        let whole = quota.clone();
        // A request's own numbers may be too small for the plan's shares: then the store decides all. All
        // nodes come to the same, because they have the same plan.
        let numbers = parts(quota);
        let is_too_small = numbers < plan.parts && Plan::is_too_small(numbers, plan.members);
        match part(plan.reserve) {
            Some(reserve) if !is_too_small => Self {
                whole,
                own: part(plan.share),
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

/// The part of a quota that every plan leaves in the common store.
pub(super) fn least_reserve(quota: &Quota) -> Arc<Quota> {
    let parts = parts(quota);
    let of = Plan::least_reserve(parts);
    let reserve = cut(quota, Fraction { of, parts });
    Arc::new(reserve.unwrap_or_else(|| quota.clone()))
}
