//! The counters that a node shares eventually: a bounded table, in parts with a lock each.

use std::collections::HashMap;
use std::collections::hash_map;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::entry::Entry;

/// A power of two, well above the number of cores.
const PARTS: usize = 64;

/// All counters.
#[derive(Debug)]
pub(super) struct Table {
    parts: Box<[Mutex<Part>]>,
    /// The most counters of one part.
    most: usize,
}

/// Some of the counters, and which of them wait to be told to which region.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) entries: HashMap<u128, Entry, BuildHasherDefault<Digest>>,
    pub(super) waiting: Box<[Vec<u128>]>,
}

/// Takes a digest for its hash: it is one already, under a secret.
#[derive(Debug, Default)]
pub(super) struct Digest(u64);

// === impl Table ===

impl Table {
    pub(super) fn new(most_counters: usize, regions: usize) -> Self {
        let part = || {
            Mutex::new(Part {
                entries: HashMap::default(),
                waiting: vec![Vec::new(); regions].into(),
            })
        };
        Self {
            parts: std::iter::repeat_with(part).take(PARTS).collect(),
            most: most_counters.div_ceil(PARTS),
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

    /// Whether a counter waits to be told to a region.
    pub(super) fn is_anything_waiting(&self, region: usize) -> bool {
        self.each().any(|part| !part.waiting[region].is_empty())
    }

    /// The most counters of one part.
    pub(super) const fn most(&self) -> usize {
        self.most
    }
}

// === impl Part ===

impl Part {
    /// The counter's entry, made by `make` if there is none; `None` if there is no room for it.
    pub(super) fn entry(
        &mut self,
        digest: u128,
        most: usize,
        make: impl FnOnce() -> Entry,
    ) -> Option<&mut Entry> {
        let is_full = self.entries.len() >= most;
        match self.entries.entry(digest) {
            hash_map::Entry::Occupied(entry) => Some(entry.into_mut()),
            hash_map::Entry::Vacant(_) if is_full => None,
            hash_map::Entry::Vacant(place) => Some(place.insert(make())),
        }
    }

    /// Has a counter wait to be told to one region.
    pub(super) fn queue_for(&mut self, digest: u128, region: usize) {
        if let Some(entry) = self.entries.get_mut(&digest)
            && !std::mem::replace(&mut entry.told[region].queued, true)
        {
            self.waiting[region].push(digest);
        }
    }

    /// Has a counter wait to be told to each region that is behind, and to the own one in any case,
    /// for there is something to hear.
    pub(super) fn queue(&mut self, digest: u128) {
        let Some(entry) = self.entries.get_mut(&digest) else {
            return;
        };
        let spent = entry.spent;
        for (region, (told, waiting)) in entry.told.iter_mut().zip(&mut self.waiting).enumerate() {
            if !told.queued && (region == 0 || told.is_behind(spent)) {
                told.queued = true;
                waiting.push(digest);
            }
        }
    }
}

// === impl Digest ===

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        self.0 = u64::try_from(digest & u128::from(u64::MAX)).unwrap_or_default();
    }
}
