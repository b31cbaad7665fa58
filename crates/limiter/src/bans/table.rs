//! The table of bans.
//!
//! Read by every request while there is a ban, on every core, so reading takes no lock: a change copies the
//! part of the table that it is in.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::{Equivalent, HashMap};
use tidegate_algorithms::Time;
use tidegate_rules::{Entry, Rule};

use super::{ActiveBan, Ban, MAX_BANS};
use crate::KeyError;
use crate::address::{AddressText, Addresses};
use crate::bill::Values;

/// All bans. While there are none, a request pays one relaxed load for them.
#[derive(Debug)]
pub(crate) struct Bans {
    is_any: AtomicBool,
    hasher: RandomState,
    parts: Box<[ArcSwap<Part>]>,
    /// How many there are; held by whoever changes them.
    count: Mutex<usize>,
}

/// Some of the bans.
type Part = HashMap<BanKey, Arc<Ban>, RandomState>;

/// In so many parts the table is cut: a change then copies about 160 bans at most.
const N_PARTS: usize = 64;

/// Who is banned: everybody who shares the counters of a rule. It goes by the rule's identity, so it
/// outlives a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BanKey {
    rule: u128,
    values: Box<[Box<str>]>,
}

/// The same, borrowed from a request.
struct Caller<'a> {
    rule: u128,
    values: &'a [&'a str],
}

// === impl Bans ===

impl Bans {
    /// Whether there is any. A ban made just now may go unseen for a moment.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// The ban on whoever ends at `rule` with `entries`, over or not.
    pub(crate) fn find(&self, rule: &Rule, entries: &[Entry<'_>]) -> Option<Arc<Ban>> {
        with_caller(rule, entries, |caller| {
            self.part(&caller).load().get(&caller).map(Arc::clone)
        })
    }

    /// Bans whoever ends at `rule` with `entries`, instead of the ban that there was.
    pub(crate) fn insert(
        &self,
        rule: &Rule,
        entries: &[Entry<'_>],
        ban: Ban,
        now: Time,
    ) -> Result<(), KeyError> {
        let key = with_caller(rule, entries, |caller| caller.to_key());
        let mut count = self.count();
        if *count >= MAX_BANS {
            *count = self.forget_over(now);
        }
        let part = self.part(&key);
        let is_new = !part.load().contains_key(&key);
        if is_new && *count >= MAX_BANS {
            return Err(KeyError::TooManyBans { most: MAX_BANS });
        }
        change(part, |part| part.insert(key, Arc::new(ban)));
        *count += usize::from(is_new);
        self.is_any.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Lifts the ban on whoever ends at `rule` with `entries` and gives it back.
    pub(crate) fn remove(&self, rule: &Rule, entries: &[Entry<'_>]) -> Option<Arc<Ban>> {
        let mut count = self.count();
        let removed = with_caller(rule, entries, |caller| {
            change(self.part(&caller), |part| part.remove(&caller))
        })?;
        *count -= 1;
        self.is_any.store(*count > 0, Ordering::Relaxed);
        Some(removed)
    }

    /// The bans in force at `now`, by domain, rule and entries. Forgets the others.
    pub(crate) fn list(&self, now: Time) -> Vec<ActiveBan> {
        let mut count = self.count();
        *count = self.forget_over(now);
        self.is_any.store(*count > 0, Ordering::Relaxed);
        let mut bans = Vec::with_capacity(*count);
        drop(count);
        for part in &self.parts {
            let part = part.load();
            bans.extend(
                part.values()
                    .filter_map(|ban| ActiveBan::at(Arc::clone(ban), now)),
            );
        }
        bans.sort_unstable_by(|one, other| one.ban.cmp_place(&other.ban));
        bans
    }

    /// Forgets the bans that are over and says how many are left.
    fn forget_over(&self, now: Time) -> usize {
        let is_over = |ban: &Arc<Ban>| ban.left(now).is_none();
        for part in &self.parts {
            if part.load().values().any(is_over) {
                change(part, |part| part.retain(|_, ban| !is_over(ban)));
            }
        }
        self.parts.iter().map(|part| part.load().len()).sum()
    }

    /// The part that a ban on `who` is in.
    fn part(&self, who: &impl Hash) -> &ArcSwap<Part> {
        // The remainder is smaller than the number of parts.
        let parts = u64::try_from(self.parts.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(self.hasher.hash_one(who) % parts).unwrap_or(0);
        &self.parts[index]
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        // Nothing panics between a change and its count.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Bans {
    fn default() -> Self {
        Self {
            is_any: AtomicBool::new(false),
            hasher: RandomState::new(),
            parts: (0..N_PARTS).map(|_| ArcSwap::default()).collect(),
            count: Mutex::new(0),
        }
    }
}

/// Changes a copy and puts it in place. Whoever calls holds the count.
fn change<T>(part: &ArcSwap<Part>, change: impl FnOnce(&mut Part) -> T) -> T {
    let mut changing = Part::clone(&part.load());
    let changed = change(&mut changing);
    part.store(Arc::new(changing));
    changed
}

// === impl BanKey ===

impl Hash for BanKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.rule, self.values.iter().map(|value| &**value), state);
    }
}

// === impl Caller ===

impl Caller<'_> {
    fn to_key(&self) -> BanKey {
        BanKey {
            rule: self.rule,
            values: self.values.iter().map(|value| (*value).into()).collect(),
        }
    }
}

impl Hash for Caller<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.rule, self.values.iter().copied(), state);
    }
}

impl Equivalent<BanKey> for Caller<'_> {
    fn equivalent(&self, key: &BanKey) -> bool {
        let known = key.values.iter().map(|value| &**value);
        self.rule == key.rule && self.values.iter().copied().eq(known)
    }
}

/// One hash for both forms of a key. Every text ends in a mark, so lists that differ look different.
fn hash<'a, H: Hasher>(rule: u128, values: impl Iterator<Item = &'a str>, state: &mut H) {
    rule.hash(state);
    for value in values {
        value.hash(state);
    }
}

fn with_caller<T>(rule: &Rule, entries: &[Entry<'_>], then: impl FnOnce(Caller<'_>) -> T) -> T {
    let counted = |index: &usize| entries[*index].value;
    let addresses = rule.counted_addresses();
    let spelt: Addresses = addresses.iter().map(counted).map(AddressText::of).collect();
    let value = |index: &usize| match addresses.binary_search(index) {
        Ok(place) => spelt[place].as_str(),
        Err(_) => counted(index),
    };
    let values: Values<'_> = rule.counted_values().iter().map(value).collect();
    then(Caller {
        rule: rule.identity(),
        values: &values,
    })
}
