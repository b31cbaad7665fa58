//! `leased`: permits are drawn from the common store ahead of need and spent from memory.
//!
//! A key that is asked for now and then is asked for strictly. One that is hot ([`demand`]) draws a loan,
//! sized by what it takes and by what is left, and spends it until the loan's end, which the store sets
//! and this node reckons on the safe side ([`purse`]). Before a loan runs out the next one is drawn; what
//! is left of one goes back ([`sweep`]). What the store refuses is remembered until it can change.
//!
//! Whatever happens, a permit was charged in the common store before it is spent here, so all nodes
//! together never admit more than that store would have, but for the moment at which they do. A strict
//! charge of the same counter is always sound too, and so is the answer to every doubt.

mod borrower;
mod demand;
mod draw;
mod heat;
mod purse;
mod sweep;
mod table;
mod terms;
mod word;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_algorithms::{Decision, Time};
use tidegate_store::report::{LeaseReport, RefusalReport};
use tidegate_store::{Admission, Charge, Charging, Clock, CounterKey, Lender, StoreError};

pub(crate) use self::draw::Taken;
use self::purse::Step;
use self::table::Table;
pub use self::terms::{LeaseConfig, lease_life};
use crate::memory::{FromMemory, Took};
use crate::reckoning::Heard;

/// The leased limits of a node.
#[derive(Debug)]
pub(crate) struct Leased<R, M> {
    remote: Arc<R>,
    config: LeaseConfig,
    table: Table,
    clock: Arc<M>,
    /// Whether nothing more is drawn, for the node is about to end.
    is_closed: AtomicBool,
}

// === impl Leased ===

impl<R, M: Clock> Leased<R, M> {
    pub(crate) fn new(remote: Arc<R>, config: LeaseConfig, clock: Arc<M>) -> Self {
        Self {
            remote,
            table: Table::new(config.max_keys),
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

    /// Remembers what the store said to a charge that it decided on itself. Of a request that is refused
    /// all answers are kept, so that the same again needs no asking.
    pub(crate) fn hear(
        &self,
        charge: &Charge<'_>,
        decision: &Decision,
        admission: Admission,
        heard: Heard,
    ) {
        if charge.cost == 0 || logs_refusals(charge) {
            return;
        }
        let digest = self.table.digest(charge.key);
        let mut shard = self.table.shard(digest);
        let is_news = !decision.is_allowed() || admission == Admission::Refused;
        let purse = match shard.find(digest, charge.quota, heard.answered) {
            None if is_news => {
                let now = heard.answered;
                shard.find_or_make(digest, charge.quota, &self.config, None, now)
            }
            found => found,
        };
        if let Some(purse) = purse {
            purse.hear(charge, *decision, heard);
        }
    }

    /// What a limit said lately, for a request that is refused anyway.
    pub(crate) fn tell(&self, charge: &Charge<'_>) -> Option<Decision> {
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        shard.find(digest, charge.quota, now)?.tell(now)
    }

    /// Permits of a counter that are in hand, and so no longer in the store.
    pub(crate) fn in_hand(&self, key: CounterKey<'_>) -> u64 {
        let digest = self.table.digest(key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        shard.find_any(digest).map_or(0, |purse| purse.permits(now))
    }

    /// The counter got something back: what was refused may fit now.
    pub(crate) fn forgive(&self, key: CounterKey<'_>) {
        let digest = self.table.digest(key);
        if let Some(purse) = self.table.shard(digest).find_any(digest) {
            purse.forgive();
        }
    }

    /// The counter was forgotten. Permits drawn from it go too: nobody counts them any more.
    pub(crate) fn forget(&self, key: CounterKey<'_>) {
        let digest = self.table.digest(key);
        let now = self.clock.now();
        self.table.shard(digest).reset(digest, now);
    }

    /// What leases and refusals have come to.
    pub(crate) fn report(&self) -> (LeaseReport, RefusalReport) {
        let now = self.clock.now();
        let (mut leases, mut refusals) = (LeaseReport::default(), RefusalReport::default());
        for shard in self.table.shards() {
            let (lease, refusal) = shard.report(now);
            leases.keys += lease.keys;
            leases.draws += lease.draws;
            leases.drawn += lease.drawn;
            leases.spent += lease.spent;
            leases.given_back += lease.given_back;
            leases.lapsed += lease.lapsed;
            refusals.remembered += refusal.remembered;
            refusals.answered += refusal.answered;
        }
        (leases, refusals)
    }

    /// One step of a request for one limit, from memory.
    #[inline]
    fn step(&self, charge: &Charge<'_>, charging: Charging) -> Step {
        if self.is_closed.load(Ordering::Relaxed) {
            return Step::Ask;
        }
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        let step = match shard.find(digest, charge.quota, now) {
            Some(purse) => purse.take(digest, charge, charging, now),
            None => self.first_step(&mut shard, digest, charge, charging, now),
        };
        match &step {
            Step::Spent(..) => shard.leases.spent += charge.cost,
            Step::Refused(_) => shard.refusals.answered += 1,
            Step::Wait(_) | Step::Draw(_) | Step::Ask => {}
        }
        step
    }

    /// The step of a key of which nothing is known but how often it was seen.
    fn first_step(
        &self,
        shard: &mut table::Shard,
        digest: u128,
        charge: &Charge<'_>,
        charging: Charging,
        now: Time,
    ) -> Step {
        let Some(life) = lease_life(charge.quota, self.config.life) else {
            return Step::Ask;
        };
        if charge.cost == 0 {
            return Step::Ask;
        }
        let tag = u64::try_from(digest >> 64).unwrap_or(u64::MAX);
        let Some(demand) = shard.heat.note(tag, charge.cost, now, life) else {
            return Step::Ask;
        };
        let demand = Some(demand);
        match shard.find_or_make(digest, charge.quota, &self.config, demand, now) {
            Some(purse) => purse.take(digest, charge, charging, now),
            None => Step::Ask,
        }
    }
}

impl<R: Lender + 'static, M: Clock + 'static> FromMemory for Arc<Leased<R, M>> {
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        Ok(match self.step(charge, charging) {
            Step::Spent(took, plan) => {
                self.draw_ahead(plan);
                Some(took)
            }
            Step::Refused(decision) => Some(decision.into()),
            // The request is asked for strictly along with its other limits; the next one finds permits.
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
            (Some(purse), Some(lent)) => purse.put_back(charge.cost, lent),
            _ => false,
        };
        shard.leases.spent = shard.leases.spent.saturating_sub(charge.cost);
        if !is_back {
            shard.leases.lapsed += charge.cost;
        }
    }

    fn correct(&self, charge: &Charge<'_>, decision: &mut Decision) {
        let digest = self.table.digest(charge.key);
        let now = self.clock.now();
        let mut shard = self.table.shard(digest);
        let look = shard.find_any(digest).and_then(|purse| purse.tell(now));
        if let Some(look) = look {
            decision.remaining = look.remaining;
            decision.reset_after = look.reset_after;
        }
    }
}

/// Whether a refusal is to be told to the store each time, for the limit counts it.
fn logs_refusals(charge: &Charge<'_>) -> bool {
    use tidegate_algorithms::Algorithm;
    matches!(
        charge.quota.algorithm(),
        Algorithm::SlidingLog { log_refused: true }
    )
}
