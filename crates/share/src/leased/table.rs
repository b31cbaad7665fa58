//! The purses of a node, in shards that each have a lock. Nothing waits while one is held.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::report::{LeaseReport, RefusalReport};
use tidegate_store::{CounterKey, Digester};
use tokio::sync::futures::OwnedNotified;

use super::LeaseConfig;
use super::borrower::{Out, Return};
use super::demand::Demand;
use super::heat::Heat;
use super::purse::Purse;

/// Shards: many times the cores that may meet in one.
const SHARDS: usize = 64;

/// Permits that wait to be given back, for one shard. More are lost, which is sound.
const MOST_RETURNS: usize = 1 << 12;

/// All purses.
#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    digester: Digester,
}

/// Some of the purses.
#[derive(Debug)]
pub(super) struct Shard {
    purses: HashTable<(u128, Purse)>,
    pub(super) heat: Heat,
    pub(super) returns: Vec<Return>,
    pub(super) leases: LeaseReport,
    pub(super) refusals: RefusalReport,
    /// How many purses there may be.
    most: usize,
}

// === impl Table ===

impl Table {
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

    /// The shard of a digest, held.
    #[inline]
    pub(super) fn shard(&self, digest: u128) -> MutexGuard<'_, Shard> {
        let place = usize::try_from(digest % SHARDS as u128).unwrap_or(0);
        lock(&self.shards[place])
    }

    /// Each shard in turn, held.
    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.part(0, 1)
    }

    /// One shard in `parts`, from the one numbered `part` on, held in turn.
    pub(super) fn part(
        &self,
        part: usize,
        parts: usize,
    ) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().skip(part).step_by(parts).map(lock)
    }
}

// === impl Shard ===

impl Shard {
    fn new(most: usize) -> Self {
        Self {
            purses: HashTable::new(),
            heat: Heat::new(),
            returns: Vec::new(),
            leases: LeaseReport::default(),
            refusals: RefusalReport::default(),
            most,
        }
    }

    /// The purse for these numbers of a key. One for other numbers is emptied: the rules have changed.
    #[inline]
    pub(super) fn find(&mut self, digest: u128, quota: &Quota, now: Time) -> Option<&mut Purse> {
        let is_it = |(other, _): &(u128, Purse)| *other == digest;
        let is_stale = match self.purses.find(tag(digest), is_it) {
            Some((_, purse)) => !purse.is_for(quota),
            None => return None,
        };
        if is_stale {
            self.renumber(digest, now);
            return None;
        }
        let found = self.purses.find_mut(tag(digest), is_it);
        found.map(|(_, purse)| purse)
    }

    /// The purse of a key, whatever its numbers.
    pub(super) fn find_any(&mut self, digest: u128) -> Option<&mut Purse> {
        let found = self
            .purses
            .find_mut(tag(digest), |(other, _)| *other == digest);
        found.map(|(_, purse)| purse)
    }

    /// The purse of a key, made if there is room for one. Those that are only to remember a refusal leave
    /// a quarter of the room to keys that are hot.
    pub(super) fn find_or_make(
        &mut self,
        digest: u128,
        quota: &Quota,
        config: &LeaseConfig,
        demand: Option<Demand>,
        now: Time,
    ) -> Option<&mut Purse> {
        let room = match demand {
            Some(_) => self.most,
            None => self.most - self.most / 4,
        };
        let is_full = self.purses.len() >= room;
        let is_it = |(other, _): &(u128, Purse)| *other == digest;
        let entry = self
            .purses
            .entry(tag(digest), is_it, |(digest, _)| tag(*digest));
        match entry {
            Entry::Occupied(entry) => Some(&mut entry.into_mut().1),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(entry) => {
                let demand = demand.unwrap_or(Demand::new(now));
                let purse = Purse::new(quota, config, demand, now);
                Some(&mut entry.insert((digest, purse)).into_mut().1)
            }
        }
    }

    /// Forgets a key whose numbers are others now, and gives its permits back.
    fn renumber(&mut self, digest: u128, now: Time) {
        if let Some(mut purse) = self.remove(digest) {
            let mut out = Out::default();
            purse.empty(now, &mut out);
            self.take_out(out);
        }
    }

    /// Forgets a key whose counter is reset, and its permits with it.
    pub(super) fn reset(&mut self, digest: u128, now: Time) {
        if let Some(purse) = self.remove(digest) {
            self.leases.lapsed += purse.permits(now);
            purse.reset();
        }
    }

    fn remove(&mut self, digest: u128) -> Option<Purse> {
        let is_it = |(other, _): &(u128, Purse)| *other == digest;
        let entry = self.purses.find_entry(tag(digest), is_it).ok()?;
        let ((_, purse), _) = entry.remove();
        Some(purse)
    }

    /// Keeps what was taken out of purses until it is given back.
    pub(super) fn take_out(&mut self, out: Out) {
        self.leases.lapsed += out.lapsed;
        for returned in out.returns {
            if self.returns.len() >= MOST_RETURNS {
                self.leases.lapsed += returned.permits;
            } else if returned.permits > 0 {
                self.returns.push(returned);
            }
        }
    }

    /// Waits for the draws that are under way.
    pub(super) fn drawing(&self) -> Vec<OwnedNotified> {
        let purses = self.purses.iter();
        purses.filter_map(|(_, purse)| purse.drawing()).collect()
    }

    /// Takes out of all purses what is to be given back, and forgets those that hold nothing.
    pub(super) fn sweep(&mut self, now: Time) {
        let mut out = Out::default();
        self.purses.retain(|(_, purse)| {
            purse.lapse(now, &mut out);
            !purse.is_spent(now)
        });
        self.take_out(out);
    }

    /// Takes everything out of all purses.
    pub(super) fn empty(&mut self, now: Time) {
        let mut out = Out::default();
        for (_, purse) in &mut self.purses {
            purse.empty(now, &mut out);
        }
        self.take_out(out);
    }

    /// What the shard has been through, and what it holds now.
    pub(super) fn report(&self, now: Time) -> (LeaseReport, RefusalReport) {
        let purses = || self.purses.iter().map(|(_, purse)| purse);
        let count = |is_it: &dyn Fn(&Purse) -> bool| {
            u64::try_from(purses().filter(|purse| is_it(purse)).count()).unwrap_or(u64::MAX)
        };
        let leases = LeaseReport {
            keys: count(&|purse| purse.permits(now) > 0),
            ..self.leases
        };
        let refusals = RefusalReport {
            remembered: count(&|purse| purse.is_refusing(now)),
            ..self.refusals
        };
        (leases, refusals)
    }
}

/// What a digest is found by in its shard: none of the bits that chose that.
#[inline]
fn tag(digest: u128) -> u64 {
    u64::try_from(digest >> 64).unwrap_or(u64::MAX)
}

/// A shard is whole after every step, so one that a panic left is as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
