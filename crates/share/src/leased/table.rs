//! The counters that a node has in memory, in shards that each have a lock. Nothing waits while one is held.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tidegate_algorithms::Time;
use tidegate_store::report::{LeaseReport, RefusalReport};
use tidegate_store::{Charge, CounterKey, Digester};

use super::LeaseConfig;
use super::counter::LeasedCounter;
use super::demand::Demand;
use super::handle::{DrawWait, LoanRefund, Released};
use super::hot_keys::HotKeys;

/// Shards: many times the cores that may meet in one.
pub(super) const SHARDS: usize = 64;

/// Refunds that wait to be sent, for one shard. More lapse, which is sound.
const MOST_REFUNDS: usize = 1 << 12;

/// All counters.
#[derive(Debug)]
pub(super) struct CounterTable {
    shards: Box<[Mutex<Shard>]>,
    digester: Digester,
}

/// Some of the counters.
#[derive(Debug)]
pub(super) struct Shard {
    counters: HashTable<(u128, LeasedCounter)>,
    pub(super) hot_keys: HotKeys,
    pub(super) refunds: Vec<LoanRefund>,
    pub(super) leases: LeaseReport,
    pub(super) denials: RefusalReport,
    /// The counters that hold permits, by the time at which those may be due.
    due: BinaryHeap<Reverse<(Time, u128)>>,
    /// The most counters.
    most: usize,
}

// === impl CounterTable ===

impl CounterTable {
    pub(super) fn new(max_keys: usize) -> Self {
        let most = max_keys.div_ceil(SHARDS);
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(most))).collect(),
            digester: Digester::new(),
        }
    }

    #[inline]
    pub(super) fn digest(&self, key: CounterKey<'_>) -> u128 {
        self.digester.digest(key)
    }

    /// The shard of a digest, locked.
    #[inline]
    pub(super) fn shard(&self, digest: u128) -> MutexGuard<'_, Shard> {
        let place = usize::try_from(digest % SHARDS as u128).unwrap_or(0);
        lock(&self.shards[place])
    }

    /// Each shard in turn, locked.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }
}

// === impl Shard ===

impl Shard {
    fn new(most: usize) -> Self {
        Self {
            counters: HashTable::new(),
            hot_keys: HotKeys::new(),
            refunds: Vec::new(),
            leases: LeaseReport::default(),
            denials: RefusalReport::default(),
            due: BinaryHeap::new(),
            most,
        }
    }

    /// The counter of a key for the numbers of a charge. One for other numbers is released: the rules have changed.
    #[inline]
    pub(super) fn find(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        now: Time,
    ) -> Option<&mut LeasedCounter> {
        let is_it = |(other, _): &(u128, LeasedCounter)| *other == digest;
        let is_stale = match self.counters.find(tag(digest), is_it) {
            Some((_, counter)) => !counter.is_for(charge),
            None => return None,
        };
        if is_stale {
            self.renumber(digest, now);
            return None;
        }
        let found = self.counters.find_mut(tag(digest), is_it);
        found.map(|(_, counter)| counter)
    }

    /// The counter of a key, whatever its numbers.
    pub(super) fn find_any(&mut self, digest: u128) -> Option<&mut LeasedCounter> {
        let found = self
            .counters
            .find_mut(tag(digest), |(other, _)| *other == digest);
        found.map(|(_, counter)| counter)
    }

    /// The counter of a key, made if there is room for one. Those that only remember a denial leave a quarter of
    /// the room to keys that are hot.
    pub(super) fn find_or_make(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        config: &LeaseConfig,
        demand: Option<Demand>,
        now: Time,
    ) -> Option<&mut LeasedCounter> {
        let room = match demand {
            Some(_) => self.most,
            None => self.most - self.most / 4,
        };
        let is_full = self.counters.len() >= room;
        let is_it = |(other, _): &(u128, LeasedCounter)| *other == digest;
        let entry = self
            .counters
            .entry(tag(digest), is_it, |(digest, _)| tag(*digest));
        match entry {
            Entry::Occupied(entry) => Some(&mut entry.into_mut().1),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(entry) => {
                let counter = LeasedCounter::new(charge, config, demand, now);
                Some(&mut entry.insert((digest, counter)).into_mut().1)
            }
        }
    }

    /// Forgets a key whose numbers have changed, and gives its permits back.
    fn renumber(&mut self, digest: u128, now: Time) {
        if let Some(mut counter) = self.remove(digest) {
            let mut released = Released::default();
            counter.release_all(now, &mut released);
            self.release(released);
        }
    }

    /// Forgets a key whose counter is reset, and its permits with it.
    pub(super) fn reset(&mut self, digest: u128, now: Time) {
        if let Some(counter) = self.remove(digest) {
            self.leases.lapsed += counter.permits(now);
            counter.reset();
        }
    }

    fn remove(&mut self, digest: u128) -> Option<LeasedCounter> {
        let is_it = |(other, _): &(u128, LeasedCounter)| *other == digest;
        let entry = self.counters.find_entry(tag(digest), is_it).ok()?;
        let ((_, counter), _) = entry.remove();
        Some(counter)
    }

    /// Keeps released permits until they are given back.
    pub(super) fn release(&mut self, released: Released) {
        self.leases.lapsed += released.lapsed;
        for refund in released.refunds {
            if self.refunds.len() >= MOST_REFUNDS {
                self.leases.lapsed += refund.permits;
            } else if refund.permits > 0 {
                self.refunds.push(refund);
            }
        }
    }

    /// Has the permits of a counter looked at when they may be due. A counter is in the queue once at most.
    pub(super) fn schedule(&mut self, digest: u128, now: Time) {
        let Some(counter) = self.find_any(digest) else {
            return;
        };
        if counter.scheduled.is_some() {
            return;
        }
        if let Some(at) = counter.next_due(now) {
            counter.scheduled = Some(at);
            self.due.push(Reverse((at, digest)));
        }
    }

    /// Releases the permits that are due.
    pub(super) fn release_due(&mut self, now: Time) {
        while let Some(Reverse((at, digest))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            // The counter of this entry may have been reset since, and the key have another one with its own entry.
            let counter = self.find_any(digest);
            let Some(counter) = counter.filter(|counter| counter.scheduled == Some(at)) else {
                continue;
            };
            let mut released = Released::default();
            counter.scheduled = None;
            counter.release_due(now, &mut released);
            self.release(released);
            self.schedule(digest, now);
        }
    }

    /// The wait for each draw that is under way.
    pub(super) fn draws(&self) -> Vec<DrawWait> {
        let counters = self.counters.iter();
        counters
            .filter_map(|(_, counter)| counter.drawing())
            .collect()
    }

    /// Forgets the counters of which nothing needs to be known any more.
    pub(super) fn forget_idle(&mut self, now: Time) {
        self.counters
            .retain(|(_, counter)| !counter.is_forgettable(now));
    }

    /// Releases the permits of all counters.
    pub(super) fn release_all(&mut self, now: Time) {
        let mut released = Released::default();
        for (_, counter) in &mut self.counters {
            counter.release_all(now, &mut released);
        }
        self.release(released);
    }

    /// Counts since the start, and of the present.
    pub(super) fn report(&self, now: Time) -> (LeaseReport, RefusalReport) {
        let counters = || self.counters.iter().map(|(_, counter)| counter);
        let count = |is_it: &dyn Fn(&LeasedCounter) -> bool| {
            u64::try_from(counters().filter(|counter| is_it(counter)).count()).unwrap_or(u64::MAX)
        };
        let leases = LeaseReport {
            keys: count(&|counter| counter.permits(now) > 0),
            ..self.leases
        };
        let denials = RefusalReport {
            remembered: count(&|counter| counter.is_denying(now)),
            ..self.denials
        };
        (leases, denials)
    }
}

/// The part of a digest by which it is found in its shard: none of the bits that chose the shard.
#[inline]
fn tag(digest: u128) -> u64 {
    u64::try_from(digest >> 64).unwrap_or(u64::MAX)
}

/// A shard is whole after every step, so one that a panic left is as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
