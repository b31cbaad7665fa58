//! The store of one node among many.

use std::sync::Arc;

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_store::report::{SharingReport, StoreReport};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, EmbeddedStore,
    MAX_CHARGES, Monotonic, Page, Receipt, Store, StoreError, SystemClock,
};

use crate::Membership;
use crate::memory::FromMemory;
use crate::node::Node;
use crate::reckoning::{Heard, Reckoning};
use crate::request::{Request, Ways};
use crate::split::{self, Split, SplitConfig};
use crate::standby::{Standby, StandbyLimit};

/// How a node shares limits.
#[derive(Clone, Debug, Default)]
pub struct SharedConfig {
    /// How much of a limit this node enforces while the common store cannot decide.
    pub standby: StandbyLimit,
    /// How it is a member, and has shares.
    pub split: SplitConfig,
}

/// The store of one node among many: a store in common, and what this node holds in memory.
///
/// `W` is the wall clock of the store in memory, `M` the clock that measures spans: how long ago the
/// common store said something.
#[derive(Debug)]
pub struct SharedStore<R, W = SystemClock, M = Monotonic> {
    remote: Arc<R>,
    node: Node<W>,
    split: Split<Arc<M>>,
    config: SharedConfig,
    clock: Arc<M>,
    reckoning: Reckoning,
    standby: Standby,
}

/// How a request is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// By this node alone.
    Node,
    /// By the common store alone.
    Strict,
    /// From memory where that can be, the rest by the common store.
    Mixed,
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
    pub fn with_clock(remote: R, local: EmbeddedStore<W>, config: SharedConfig, clock: M) -> Self {
        let clock = Arc::new(clock);
        let split = Split::with_clock(config.split, Arc::clone(&clock));
        Self {
            remote: Arc::new(remote),
            reckoning: Reckoning::new(local.clock().now(), clock.now()),
            node: Node::new(local),
            standby: Standby::new(config.standby, split.membership().clone()),
            split,
            config,
            clock,
        }
    }
}

impl<R, W, M> SharedStore<R, W, M> {
    /// The store in common.
    pub fn remote(&self) -> &R {
        &self.remote
    }

    /// The store in this node's memory.
    pub const fn local(&self) -> &EmbeddedStore<W> {
        self.node.store()
    }

    /// How many nodes there are.
    pub const fn membership(&self) -> &Membership {
        self.split.membership()
    }

    /// The node's shares of split limits, and its place among the members.
    pub const fn split(&self) -> &Split<Arc<M>> {
        &self.split
    }

    /// How this node shares.
    pub const fn config(&self) -> &SharedConfig {
        &self.config
    }
}

impl<R: Store, W: Clock, M: Clock> SharedStore<R, W, M> {
    /// Decides a request of limits that are shared in several ways.
    async fn charge_mixed(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let mut request = Request::take(charges, charging, self)?;
        let rest = request.rest();
        let now = if rest.is_empty() {
            self.reckoning.at(self.clock.now())
        } else {
            let asked = self.clock.now();
            match self.charge_rest(&rest, charging, decisions).await {
                Ok(now) => {
                    request.fill(decisions);
                    self.hear(now, asked);
                    now
                }
                Err(error) => {
                    let Some(refusals) = self.split.refusals(&rest) else {
                        request.put_back(self);
                        return Err(error);
                    };
                    request.fill(&refusals);
                    self.reckoning.at(asked)
                }
            }
        };
        let admission = request.close(self, decisions);
        Ok(Receipt { now, admission })
    }

    /// Asks the common store: for whole limits, and for what it keeps of split ones.
    async fn charge_rest(
        &self,
        rest: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Time, StoreError> {
        let reserves = self.split.reserves(rest);
        let asked = reserves.apply(rest);
        let receipt = self.remote.charge(&asked, charging, decisions).await?;
        self.split.settle(rest, &reserves, receipt.now, decisions)?;
        Ok(receipt.now)
    }

    /// What this node's share says or, if it has none, what the common store keeps.
    async fn peek_split(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
    ) -> Result<Decision, StoreError> {
        if let Some(decision) = self.split.peek_share(key, quota, headroom) {
            return Ok(decision);
        }
        let reserve = self.split.reserve(key.limit, quota);
        let reserve = reserve.as_deref().unwrap_or(quota);
        let consistency = Consistency::Split;
        let decision = self.remote.peek(key, reserve, headroom, consistency);
        Ok(split::whole(quota, 0, decision.await?))
    }

    /// Gives back to this node's share or, if it has none, to what the common store keeps.
    async fn refund_split(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
    ) -> Result<(), StoreError> {
        if self.split.refund_share(key, quota, cost) {
            return Ok(());
        }
        let reserve = self.split.reserve(key.limit, quota);
        let reserve = reserve.as_deref().unwrap_or(quota);
        let consistency = Consistency::Split;
        self.remote.refund(key, reserve, cost, consistency).await
    }

    /// Learns from a reply what the store's time is.
    fn hear(&self, now: Time, asked: Time) {
        self.reckoning.learn(Heard {
            now,
            asked,
            answered: self.clock.now(),
        });
    }
}

impl<R, W: Clock, M: Clock> Ways for SharedStore<R, W, M> {
    type Wall = W;

    fn node(&self) -> &Node<W> {
        &self.node
    }

    fn way(&self, consistency: Consistency) -> Option<&dyn FromMemory> {
        match consistency {
            Consistency::Node
            | Consistency::Strict
            | Consistency::Leased
            | Consistency::Eventual => None,
            Consistency::Split => Some(&self.split),
        }
    }

    fn tell(&self, _charge: &Charge<'_>) -> Option<Decision> {
        None
    }
}

impl<R: Store, W: Clock, M: Clock> Store for SharedStore<R, W, M> {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        within_bounds(charges)?;
        match Route::of(charges) {
            Route::Node => self.local().charge_now(charges, charging, decisions),
            Route::Strict => self.remote.charge(charges, charging, decisions).await,
            // In a box, so that the future of every other request stays small.
            Route::Mixed => Box::pin(self.charge_mixed(charges, charging, decisions)).await,
        }
    }

    fn charge_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        within_bounds(charges)?;
        let mut request = Request::take(charges, charging, self)?;
        let rest = request.rest();
        if !rest.is_empty() {
            let decided = self
                .standby
                .charge(self.local(), &rest, charging, decisions);
            if let Err(error) = decided {
                request.put_back(self);
                return Err(error);
            }
            request.fill(decisions);
        }
        let admission = request.close(self, decisions);
        self.standby.decided(admission);
        let now = self.reckoning.at(self.clock.now());
        Ok(Receipt { now, admission })
    }

    async fn peek(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
        consistency: Consistency,
    ) -> Result<Decision, StoreError> {
        match consistency {
            Consistency::Node => self.local().peek_now(key, quota, headroom),
            Consistency::Split => self.peek_split(key, quota, headroom).await,
            _ => self.remote.peek(key, quota, headroom, consistency).await,
        }
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        let refunded = match consistency {
            Consistency::Node => return self.local().refund_now(key, quota, cost),
            Consistency::Split => self.refund_split(key, quota, cost).await,
            _ => self.remote.refund(key, quota, cost, consistency).await,
        };
        if refunded.is_err() {
            // Who is charged alone is given back alone.
            self.standby.refund(self.local(), key, quota, cost);
        }
        refunded
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
        self.standby.reset(self.local(), key, quota);
        let was_here = consistency == Consistency::Split && self.split.reset_share(key, quota);
        let was_there = self.remote.reset(key, quota, consistency).await?;
        Ok(was_here || was_there)
    }

    /// The common store's time or, if it does not answer, as far as it is known: whoever is banned stays
    /// so, and others can be.
    async fn now(&self) -> Result<Time, StoreError> {
        let asked = self.clock.now();
        match self.remote.now().await {
            Ok(now) => {
                self.hear(now, asked);
                Ok(now)
            }
            Err(_) => Ok(self.reckoning.at(self.clock.now())),
        }
    }

    /// First what the nodes have in common, then what this one counts by itself.
    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        let own = |cursor: Cursor| Cursor(cursor.0 | OWN);
        if cursor.0 & OWN != 0 {
            let mut page = self.local().list_now(Cursor(cursor.0 & !OWN), most);
            page.next = page.next.map(own);
            return Ok(page);
        }
        let mut page = self.remote.list(cursor, most).await?;
        page.next = page.next.or(Some(own(Cursor::default())));
        Ok(page)
    }

    fn report(&self) -> StoreReport {
        StoreReport {
            memory: self.local().stats(),
            sharing: Some(SharingReport {
                members: u64::from(self.membership().members()),
                split: self.split.report(),
                standby: self.standby.report(),
                ..SharingReport::default()
            }),
            ..self.remote.report()
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

// === impl Route ===

impl Route {
    #[inline]
    fn of(charges: &[Charge<'_>]) -> Self {
        let all = |consistency| {
            charges
                .iter()
                .all(|charge| charge.consistency == consistency)
        };
        if all(Consistency::Node) {
            Self::Node
        } else if all(Consistency::Strict) {
            Self::Strict
        } else {
            Self::Mixed
        }
    }
}
