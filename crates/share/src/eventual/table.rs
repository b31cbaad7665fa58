//! The counters of a node: a table of bounded size, in parts with a lock each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use tidegate_algorithms::Quota;

use super::entry::Entry;

/// A power of two, well above the number of cores.
const PARTS: usize = 64;

/// Counters that are looked at to find one to evict.
const CANDIDATES: usize = 16;

/// Quotas that a part keeps without looking for some that are not used any more.
const QUOTAS: usize = 64;

/// All counters.
#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Mutex<Part>]>,
}

/// Some of the counters, and which of them wait to be exchanged with which region.
#[derive(Debug)]
pub(super) struct Part {
    entries: HashTable<Box<Entry>>,
    /// For each region, half of the digest of each counter that waits.
    pub(super) queues: Box<[Vec<u64>]>,
    /// Each quota once, for the entries to share.
    quotas: Vec<Arc<Quota>>,
    /// Of all entries.
    bytes: usize,
    most_bytes: usize,
    /// Which of the entries is looked at next for an eviction.
    hand: usize,
}

/// Room for a new counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// There was none, and another counter was evicted.
    Evicted,
    None,
}

// === impl Table ===

impl Table {
    pub(super) fn new(most_bytes: usize, regions: usize) -> Self {
        let part = || {
            Mutex::new(Part {
                entries: HashTable::new(),
                queues: vec![Vec::new(); regions].into(),
                quotas: Vec::new(),
                bytes: 0,
                most_bytes: most_bytes / PARTS,
                hand: 0,
            })
        };
        Self {
            parts: std::iter::repeat_with(part).take(PARTS).collect(),
        }
    }

    /// The part of a counter, locked.
    pub(super) fn part(&self, digest: u128) -> MutexGuard<'_, Part> {
        // The high half: the map inside looks at the low one.
        let high = usize::try_from(digest >> 122).unwrap_or_default();
        self.nth(high)
    }

    /// A part by its number, which goes round.
    pub(super) fn nth(&self, number: usize) -> MutexGuard<'_, Part> {
        let part = &self.parts[number % PARTS];
        // A panic elsewhere leaves numbers that are each whole.
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All parts, one after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Part>> {
        (0..PARTS).map(|number| self.nth(number))
    }

    /// Whether a counter waits to be exchanged with a region.
    pub(super) fn is_anything_queued(&self, region: usize) -> bool {
        self.each().any(|part| !part.queues[region].is_empty())
    }
}

// === impl Part ===

impl Part {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|entry| &**entry)
    }

    pub(super) fn get(&self, digest: u128) -> Option<&Entry> {
        let found = self.entries.find(hash(digest), |it| it.digest() == digest);
        found.map(|entry| &**entry)
    }

    /// Changes a counter, and keeps account of the memory that it takes.
    pub(super) fn update<T>(
        &mut self,
        digest: u128,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Option<T> {
        let found = self
            .entries
            .find_mut(hash(digest), |it| it.digest() == digest);
        let entry = found?;
        let before = entry.bytes();
        let result = change(entry);
        self.bytes = self.bytes + entry.bytes() - before;
        Some(result)
    }

    /// Adds a counter that is not there yet. [`make_room`](Self::make_room) has found room for it.
    pub(super) fn insert(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        let hashed = hash(entry.digest());
        let entry = Box::new(entry);
        self.entries
            .insert_unique(hashed, entry, |entry| hash(entry.digest()));
    }

    /// Finds room for one more counter: if all is taken, a counter is evicted that every region knows all
    /// about, the one that was idle for longest of a few.
    pub(super) fn make_room(&mut self) -> Room {
        let mut room = Room::Free;
        while self.bytes + Entry::LEAST_BYTES > self.most_bytes {
            let Some(digest) = self.victim() else {
                return Room::None;
            };
            self.remove(digest);
            room = Room::Evicted;
        }
        room
    }

    fn victim(&mut self) -> Option<u128> {
        let buckets = self.entries.num_buckets();
        let mut seen = 0;
        let mut victim: Option<&Entry> = None;
        // Few places are empty in a table that is full.
        for step in 0..buckets.min(CANDIDATES * 8) {
            let place = (self.hand + step) % buckets;
            let Some(entry) = self.entries.get_bucket(place) else {
                continue;
            };
            seen += 1;
            let is_older = victim.is_none_or(|other| entry.used_at < other.used_at);
            if entry.is_known_everywhere() && is_older {
                victim = Some(entry);
            }
            if seen == CANDIDATES {
                break;
            }
        }
        let victim = victim.map(Entry::digest);
        self.hand = (self.hand + CANDIDATES) % buckets.max(1);
        victim
    }

    fn remove(&mut self, digest: u128) {
        let found = self
            .entries
            .find_entry(hash(digest), |it| it.digest() == digest);
        if let Ok(entry) = found {
            self.bytes -= entry.get().bytes();
            entry.remove();
        }
    }

    /// Keeps the counters of which `keep` says so, which may change them.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut Entry) -> bool) {
        let mut bytes = 0;
        self.entries.retain(|entry| {
            let keeps = keep(entry);
            bytes += if keeps { entry.bytes() } else { 0 };
            keeps
        });
        self.bytes = bytes;
        if self.entries.capacity() > 64 && self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to_fit(|entry| hash(entry.digest()));
        }
    }

    /// A quota that entries can share.
    pub(super) fn quota(&mut self, quota: &Quota) -> Arc<Quota> {
        if let Some(found) = self.quotas.iter().find(|known| ***known == *quota) {
            return Arc::clone(found);
        }
        if self.quotas.len() >= QUOTAS {
            self.quotas.retain(|quota| Arc::strong_count(quota) > 1);
        }
        let quota = Arc::new(quota.clone());
        if self.quotas.len() < QUOTAS {
            self.quotas.push(Arc::clone(&quota));
        }
        quota
    }

    /// Queues a counter for an exchange with one region.
    pub(super) fn queue_for(&mut self, digest: u128, region: usize) {
        let hash = hash(digest);
        let found = self.entries.find_mut(hash, |it| it.digest() == digest);
        if let Some(entry) = found.filter(|entry| !entry.is_queued(region)) {
            entry.set_queued(region, true);
            self.queues[region].push(hash);
        }
    }

    /// Removes all counters from the queue for a region, and calls `each` with them.
    pub(super) fn take_queue(&mut self, region: usize, mut each: impl FnMut(u128)) {
        for half in std::mem::take(&mut self.queues[region]) {
            // If two have this half in common, the queue has it twice, and the second finds the other one.
            let found = self
                .entries
                .find_mut(half, |it| hash(it.digest()) == half && it.is_queued(region));
            if let Some(entry) = found {
                entry.set_queued(region, false);
                each(entry.digest());
            }
        }
    }

    /// Queues a counter for an exchange with each region that does not know all of it, and with the own one
    /// in any case, because there is something to read.
    pub(super) fn queue(&mut self, digest: u128) {
        for region in 0..self.queues.len() {
            let is_needed = |entry: &Entry| region == 0 || entry.is_unsent(region);
            if self.get(digest).is_some_and(is_needed) {
                self.queue_for(digest, region);
            }
        }
    }
}

/// The digest is a hash already, under a secret.
fn hash(digest: u128) -> u64 {
    u64::try_from(digest & u128::from(u64::MAX)).unwrap_or_default()
}
