//! The store of one node among many.

mod alone;
mod charge;
mod refund;
mod reserve;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{ChargeStamp, Decision, Outcome, Quota, RefundTo, Standing, Time};
use tidegate_store::report::{SharingReport, StoreHealth, StoreReport};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore, Lender,
    MAX_CHARGES, Monotonic, OldCounters, Page, Receipt, Store, StoreConfig, StoreError, StoreStats,
    SystemClock,
};

use self::charge::{Mixed, Route};
use crate::Membership;
use crate::eventual::{Eventual, EventualConfig};
use crate::leased::{LeaseConfig, Leases, Taken};
use crate::memory::FromMemory;
use crate::node::Node;
use crate::noted::Noted;
use crate::request::Ways;
use crate::split::{self, Split, SplitConfig};
use crate::standby::{Standby, StandbyLimit};

/// Settings of a node that shares limits.
#[derive(Clone, Debug, Default)]
pub struct SharedConfig {
    /// Settings of leases, and of remembered denials.
    pub leases: LeaseConfig,
    /// The part of a limit that this node enforces while the common store is unavailable.
    pub standby: StandbyLimit,
    /// The memory for its counters at that time.
    pub standby_memory: StoreConfig,
    /// Settings of its membership and its shares.
    pub split: SplitConfig,
    /// Settings of the exchange of totals.
    pub eventual: EventualConfig,
}

/// The store of one node among many: a store in common, and what this node holds in memory.
///
/// `W` is the wall clock of the store in memory, `M` the clock that measures spans: how long ago the
/// common store said something.
#[derive(Debug)]
pub struct SharedStore<R, W = SystemClock, M = Monotonic> {
    common: Arc<Noted<R, W, M>>,
    split: Split<M>,
    eventual: Eventual<Arc<M>>,
    config: SharedConfig,
    leases: Arc<Leases<Noted<R, W, M>, M>>,
}

/// The part of a [`Cursor`] that says that the listing has got to this node's own counters. A common
/// store's cursor does not use it.
const OWN: u64 = 1 << 63;

// === impl SharedStore ===

impl<R> SharedStore<R> {
    /// Joins the store that all nodes have in common to the one in this node's memory.
    pub fn new(remote: R, local: EmbeddedStore, config: SharedConfig) -> Self {
        Self::with_clock(remote, local, config, Monotonic::new())
    }
}

impl<R, W: Clock, M: Clock> SharedStore<R, W, M> {
    /// The same with another clock to measure spans by.
    ///
    /// # Panics
    ///
    /// If the system does not give out the memory for what this node counts when it is alone.
    pub fn with_clock(remote: R, local: EmbeddedStore<W>, config: SharedConfig, clock: M) -> Self {
        Self::build(remote, local, config, clock, |_| None).0
    }
}

impl<R, W, M> SharedStore<R, W, M> {
    /// The store in common.
    pub fn remote(&self) -> &R {
        self.common.remote()
    }

    /// The store in this node's memory.
    pub fn local(&self) -> &EmbeddedStore<W> {
        self.common.node().store()
    }

    /// Decides while the common store is unavailable.
    fn standby(&self) -> &Standby {
        self.common.standby()
    }

    /// The number of nodes.
    pub const fn membership(&self) -> &Membership {
        self.split.membership()
    }

    /// The node's shares of split limits, and its place among the members.
    pub const fn split(&self) -> &Split<M> {
        &self.split
    }

    /// The limits that this node shares eventually.
    pub const fn eventual(&self) -> &Eventual<Arc<M>> {
        &self.eventual
    }

    /// The settings of this node.
    pub const fn config(&self) -> &SharedConfig {
        &self.config
    }
}

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> SharedStore<R, W, M> {
    /// Gives back, again and again, permits that are not spent. Shares and totals have loops of their own.
    pub async fn run(&self) {
        self.leases.run().await;
    }

    /// Looks through the permits that are held once, as [`run`](Self::run) does again and again.
    pub async fn sweep(&self) {
        self.leases.sweep().await;
    }

    /// Gives back all permits that are held and draws no more: for the end of a node. Requests go on, strictly.
    pub async fn finish(&self) {
        self.leases.finish().await;
    }
}

impl<R: Store, W: Clock, M: Clock> SharedStore<R, W, M> {
    /// Whether `on_full` decided in the last minute on a limit that is not eventual.
    fn is_full(&self) -> bool {
        self.local().is_full() || self.split.is_full() || self.common.alone().is_full()
    }

    /// [`EmbeddedStore::recognise_idle`] for all stores in this node's memory.
    pub fn recognise_idle(&self, part: u32, parts: u32) {
        self.local().recognise_idle(part, parts);
        self.eventual.shares().recognise_idle(part, parts);
        self.common.alone().recognise_idle(part, parts);
        self.split.recognise_idle(part, parts);
    }

    /// Charges that found no room in a store of this node and were decided by `on_full`.
    fn untracked(&self) -> u64 {
        let stores = [
            self.local().stats(),
            self.eventual.shares().stats(),
            self.common.alone().stats(),
        ];
        let untracked = stores.iter().map(|stats| stats.untracked).sum::<u64>();
        untracked + self.split.untracked()
    }

    /// Looks at this node's share or, if that has no room, at the reserve in the common store.
    async fn peek_split(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        let share = self.split.peek_share(charge);
        if let Some(decision) = share.filter(Decision::is_allowed) {
            return Ok(decision);
        }
        let reserve = self.split.reserve(charge.key.limit, charge.quota);
        let look = Charge {
            quota: reserve.as_deref().unwrap_or(charge.quota),
            ..*charge
        };
        match (self.remote().peek(&look).await, share) {
            (Ok(decision), _) => Ok(split::whole(charge.quota, 1, decision)),
            // Without the store, the share is all that this node has.
            (Err(_), Some(share)) => Ok(share),
            (Err(error), None) => Err(error),
        }
    }
}

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> Ways for SharedStore<R, W, M> {
    type Wall = W;

    fn node(&self) -> &Node<W> {
        self.common.node()
    }

    fn way(&self, consistency: Consistency) -> Option<&dyn FromMemory> {
        match consistency {
            Consistency::Node => None,
            Consistency::Strict | Consistency::Leased => Some(&self.leases),
            Consistency::Eventual => Some(&self.eventual),
            Consistency::Split => Some(&self.split),
        }
    }

    fn tell(&self, charge: &Charge<'_>) -> Option<Decision> {
        match charge.consistency {
            Consistency::Strict | Consistency::Leased => self.leases.look(charge),
            Consistency::Split => self.split.look(charge),
            _ => None,
        }
    }
}

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> Store for SharedStore<R, W, M> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        within_bounds(charges)?;
        match Route::of(charges) {
            Route::Node => self.local().charge_now(charges, charging, decisions),
            Route::Single(charge) => match self.leases.take_alone(charge, charging) {
                Taken::Decided(took) => Ok(self.settle_single(charge, took, decisions)),
                // In a box, so that the future of a request that does not wait is small.
                taken => Box::pin(self.charge_single(charge, charging, taken, decisions)).await,
            },
            Route::Mixed => match self.begin_mixed(charges, charging, decisions)? {
                Mixed::Decided(receipt) => Ok(receipt),
                Mixed::Later(receipt) => receipt.await,
            },
        }
    }

    fn charge_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        within_bounds(charges)?;
        self.decide_alone(charges, charging, decisions)
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        match charge.consistency {
            Consistency::Node => self.local().peek_now(charge),
            Consistency::Split => self.peek_split(charge).await,
            Consistency::Eventual if self.eventual.suits(charge.quota) => {
                Ok(self.eventual.peek(charge.key, charge.quota))
            }
            Consistency::Leased => {
                let looked = self.remote().peek(charge);
                let mut decision = looked.await?;
                let held = self.leases.held(charge.key);
                if held > 0 {
                    let remaining = decision.remaining.saturating_add(held);
                    decision.remaining = remaining.min(decision.limit);
                    decision.outcome = Outcome::Allowed {
                        standing: Standing::Within,
                        delay: Duration::ZERO,
                    };
                }
                Ok(decision)
            }
            _ => self.remote().peek(charge).await,
        }
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        if self.refund_here(key, quota, cost, to, consistency)? {
            return Ok(());
        }
        if consistency == Consistency::Split {
            return self.refund_reserve(key, quota, cost, to).await;
        }
        let refunded = self.common.refund(key, quota, cost, to, consistency).await;
        self.leases.forgive(key);
        refunded
    }

    fn refund_alone(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        stamp: ChargeStamp,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        let to = RefundTo::Charge(stamp);
        if self.refund_here(key, quota, cost, to, consistency)? {
            return Ok(());
        }
        if consistency == Consistency::Split {
            let divided_by = self.standby().divided_by();
            self.split.refund_alone(key, quota, cost, to, divided_by);
        } else {
            let alone = self.common.alone();
            self.standby().refund(alone, key, quota, cost, to);
        }
        Ok(())
    }

    fn counts_denials(&self, consistency: Consistency) -> bool {
        matches!(consistency, Consistency::Node | Consistency::Strict)
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> Result<bool, StoreError> {
        if consistency == Consistency::Node {
            return self.local().reset_now(key, quota);
        }
        if consistency == Consistency::Eventual && self.eventual.suits(quota) {
            return Ok(self.eventual.reset(key, quota));
        }
        self.leases.forget(key);
        let was_here = consistency == Consistency::Split && self.split.reset_share(key, quota);
        let was_there = self.common.reset(key, quota, consistency).await;
        // Again: permits drawn while the reset was on its way are charged nowhere either.
        self.leases.forget(key);
        Ok(was_there? || was_here)
    }

    fn reserve(
        &self,
        limits: &mut dyn Iterator<Item = (&Quota, Consistency)>,
        old: OldCounters,
    ) -> Result<(), StoreError> {
        self.reserve_room(limits, old)
    }

    /// The common store's time or, if it does not answer, as far as it is known: whoever is banned stays
    /// so, and others can be.
    async fn now(&self) -> Result<Time, StoreError> {
        let asked = self.common.now().await;
        Ok(asked.unwrap_or_else(|_| self.common.clock().now()))
    }

    /// First what the nodes have in common, then what this one counts by itself.
    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        let own = |cursor: Cursor| Cursor(cursor.0 | OWN);
        if cursor.0 & OWN != 0 {
            let mut page = self.local().list_now(Cursor(cursor.0 & !OWN), most);
            page.next = page.next.map(own);
            return Ok(page);
        }
        let mut page = self.remote().list(cursor, most).await?;
        page.next = page.next.or(Some(own(Cursor::default())));
        Ok(page)
    }

    fn health(&self) -> StoreHealth {
        match self.remote().health() {
            StoreHealth::Degraded if self.standby().is_unshared() => StoreHealth::Unshared,
            health => health.or_full(self.is_full() || self.eventual.is_full()),
        }
    }

    fn report(&self) -> StoreReport {
        let (leases, refusals) = self.leases.report();
        StoreReport {
            memory: StoreStats {
                untracked: self.untracked(),
                is_full: self.is_full(),
                ..self.local().stats()
            },
            sharing: Some(SharingReport {
                members: u64::from(self.membership().members()),
                leases,
                refusals,
                eventual: self.eventual.report(),
                split: self.split.report(),
                standby: self.standby().report(self.common.alone()),
            }),
            ..self.remote().report()
        }
    }
}

fn within_bounds(charges: &[Charge<'_>]) -> Result<(), StoreError> {
    if charges.len() > MAX_CHARGES {
        return Err(StoreError::TooManyCharges {
            asked: charges.len(),
            most: MAX_CHARGES,
        });
    }
    Ok(())
}
