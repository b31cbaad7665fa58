//! Limits whose counters are in the common store, decided from memory where that is sound.
//!
//! A **denial** of the store is remembered until it can change, but no longer than `remember_denials`, for `strict`
//! and `leased` limits alike: a caller that hammers an exhausted limit costs the store next to nothing.
//!
//! A `leased` limit that is worth it ([`lease_life`]) **lends**: a key with few requests is decided in the store; one
//! that is hot ([`demand`]) draws a loan of permits, sized by what this node has spent and by what is left, and
//! spends it until the loan's end, which the store sets and this node reckons on the safe side ([`counter`]).
//! Permits that are not spent go back ([`refund`]). The last permits of a limit are not lent.
//!
//! A permit is always charged in the common store before it is spent here, so all nodes together never admit more
//! than that store would have, but for the moment at which they do. A request may ask the store at any time: that is
//! the answer to every doubt.

mod contact;
mod counter;
mod demand;
mod draw;
mod handle;
mod hot_keys;
mod last_reply;
mod loans;
mod refund;
mod table;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_algorithms::{Decision, Time};
use tidegate_store::report::{LeaseReport, RefusalReport};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Lender, StoreError,
};

use self::counter::Step;
pub(crate) use self::draw::Taken;
use self::table::{CounterTable, Shard};
pub use self::terms::{LeaseConfig, lease_life};
use crate::memory::{FromMemory, Took};
use crate::reckoning::Heard;

/// The limits of a node whose counters are in the common store.
#[derive(Debug)]
pub(crate) struct Leases<R, M> {
    remote: Arc<R>,
    config: LeaseConfig,
    table: CounterTable,
    clock: Arc<M>,
    /// True once the node is about to end: nothing more is drawn.
    is_closed: AtomicBool,
}

// === impl Leases ===

impl<R, M: Clock> Leases<R, M> {
    pub(crate) fn new(remote: Arc<R>, config: LeaseConfig, clock: Arc<M>) -> Self {
        Self {
            remote,
            table: CounterTable::new(config.max_keys),
            config,
            clock,
            is_closed: AtomicBool::new(false),
        }
    }

    /// The time by this node's own clock, which measures spans.
    #[inline]
    pub(crate) fn own_now(&self) -> Time {
        self.clock.now()
    }

    /// A reply that is here now, by both clocks.
    pub(crate) fn heard(&self, now: Time, asked: Time) -> Heard {
        Heard {
            now,
            asked,
            answered: self.clock.now(),
        }
    }

    /// Remembers the store's reply to a charge that it decided. Of a denied request all replies are kept, so that
    /// the same request again needs no call. Only an admitted request is demand.
    pub(crate) fn hear(
        &self,
        charge: &Charge<'_>,
        decision: &Decision,
        admission: Admission,
        heard: Heard,
    ) {
        if charge.cost == 0 || logs_denials(charge) {
            return;
        }
        let digest = self.table.digest(charge.key);
        let now = heard.answered;
        let mut shard = self.table.shard(digest);
        let is_spent = decision.is_allowed() && admission == Admission::Admitted;
        let is_known = shard.find(digest, charge, now).is_some();
        let demand = if is_spent && !is_known {
            self.add_demand(&mut shard, digest, charge, now)
        } else {
            None
        };
        if !is_known && is_spent && demand.is_none() {
            return;
        }
        let counter = shard.find_or_make(digest, charge, &self.config, demand, now);
        if let Some(counter) = counter {
            if is_spent && is_known {
                counter.add_demand(charge.cost);
            }
            counter.hear(charge, *decision, heard);
        }
    }

    /// The likely decision of a limit, for a request that is denied anyway.
    pub(crate) fn look(&self, charge: &Charge<'_>) -> Option<Decision> {
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        shard.find(digest, charge, now)?.look(now)
    }

    /// The permits of a counter that this node holds, and the store no longer has.
    pub(crate) fn held(&self, key: CounterKey<'_>) -> u64 {
        let digest = self.table.digest(key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        shard
            .find_any(digest)
            .map_or(0, |counter| counter.permits(now))
    }

    /// Refunds permits to the loan that was made at `lent`. Returns false if that is gone.
    pub(crate) fn refund_loan(&self, key: CounterKey<'_>, cost: u64, lent: Time) -> bool {
        let digest = self.table.digest(key);
        let mut shard = self.table.shard(digest);
        let counter = shard.find_any(digest);
        let is_back = counter.is_some_and(|counter| counter.refund(cost, lent));
        if is_back {
            shard.leases.spent = shard.leases.spent.saturating_sub(cost);
        }
        is_back
    }

    /// Forgets the denial of a counter that got permits back.
    pub(crate) fn forgive(&self, key: CounterKey<'_>) {
        let digest = self.table.digest(key);
        if let Some(counter) = self.table.shard(digest).find_any(digest) {
            counter.forgive();
        }
    }

    /// Forgets a counter that was reset. Permits drawn from it go too: they are charged nowhere any more.
    pub(crate) fn forget(&self, key: CounterKey<'_>) {
        let digest = self.table.digest(key);
        let now = self.clock.now();
        self.table.shard(digest).reset(digest, now);
    }

    /// Counts of leases and denials.
    pub(crate) fn report(&self) -> (LeaseReport, RefusalReport) {
        let now = self.clock.now();
        let (mut leases, mut denials) = (LeaseReport::default(), RefusalReport::default());
        for shard in self.table.shards() {
            let (lease, denial) = shard.report(now);
            leases.keys += lease.keys;
            leases.draws += lease.draws;
            leases.drawn += lease.drawn;
            leases.spent += lease.spent;
            leases.given_back += lease.given_back;
            leases.lapsed += lease.lapsed;
            denials.remembered += denial.remembered;
            denials.answered += denial.answered;
        }
        (leases, denials)
    }

    /// One step of a request for one limit, from memory.
    #[inline]
    fn step(&self, charge: &Charge<'_>, charging: Charging) -> Step {
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        // Under the lock: the end of a node takes it too, and so sees every draw that begins before.
        if self.is_closed.load(Ordering::Relaxed) {
            return Step::Ask;
        }
        let step = match shard.find(digest, charge, now) {
            Some(counter) => counter.take(digest, charge, charging, now),
            None => Step::Ask,
        };
        match &step {
            Step::Spent(..) => shard.leases.spent += charge.cost,
            Step::Denied(_) => shard.denials.answered += 1,
            Step::Wait(_) | Step::Draw(_) | Step::Ask => {}
        }
        step
    }

    /// Counts a request for a key that is not in memory. Returns its demand once it is hot.
    fn add_demand(
        &self,
        shard: &mut Shard,
        digest: u128,
        charge: &Charge<'_>,
        now: Time,
    ) -> Option<demand::Demand> {
        if charge.consistency != Consistency::Leased {
            return None;
        }
        let life = lease_life(charge.quota, self.config.life)?;
        let tag = u64::try_from(digest >> 64).unwrap_or(u64::MAX);
        shard.hot_keys.add(tag, charge.cost, now, life)
    }
}

impl<R: Lender + 'static, M: Clock + 'static> FromMemory for Arc<Leases<R, M>> {
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        Ok(match self.step(charge, charging) {
            Step::Spent(took, plan) => {
                self.draw_ahead(plan);
                Some(took)
            }
            Step::Denied(decision) => Some(decision.into()),
            // The store decides on the request along with its other limits; the next one finds permits.
            Step::Draw(plan) => {
                self.draw_ahead(Some(plan));
                None
            }
            Step::Wait(_) | Step::Ask => None,
        })
    }

    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        let digest = self.table.digest(charge.key);
        let mut shard = self.table.shard(digest);
        let is_back = match (shard.find_any(digest), took.charged) {
            (Some(counter), Some(lent)) => counter.put_back(charge.cost, lent),
            _ => false,
        };
        shard.leases.spent = shard.leases.spent.saturating_sub(charge.cost);
        if !is_back {
            shard.leases.lapsed += charge.cost;
        }
    }

    fn correct(&self, charge: &Charge<'_>, _: &Took, decision: &mut Decision) {
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        let look = shard.find_any(digest).and_then(|counter| counter.look(now));
        if let Some(look) = look {
            decision.remaining = look.remaining;
            decision.reset_after = look.reset_after;
        }
    }
}

/// Whether the limit counts its denials, so that the store must be sent each request.
fn logs_denials(charge: &Charge<'_>) -> bool {
    use tidegate_algorithms::Algorithm;
    matches!(
        charge.quota.algorithm(),
        Algorithm::SlidingLog { log_refused: true }
    )
}
