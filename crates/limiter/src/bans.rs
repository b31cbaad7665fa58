//! Callers who are refused for a time, whatever their counters say.

use std::cmp;
use std::hash::{Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use hashbrown::{Equivalent, HashMap};
use tidegate_algorithms::{Retry, Time};
use tidegate_rules::{Entry, Rule};

use crate::KeyError;
use crate::address::{AddressText, Addresses};
use crate::bill::Values;

/// The most bans at once.
pub const MAX_BANS: usize = 10_000;

/// The most bytes of the texts of one ban, so that all of them take no more than about 20 MiB.
pub const MAX_BAN_BYTES: usize = 1_024;

/// One ban: who, why, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    domain: Box<str>,
    rule: Box<str>,
    entries: Box<[(Box<str>, Box<str>)]>,
    reason: Option<Box<str>>,
    /// When it ends, and how long it was to last; `None` for one that is only lifted.
    end: Option<(Time, Duration)>,
}

/// How long a ban lasts, or has still to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanTerm {
    /// So long.
    For(Duration),
    /// Until somebody lifts it.
    UntilLifted,
}

/// A ban in force.
#[derive(Clone, Debug)]
pub struct ActiveBan {
    /// The ban.
    pub ban: Arc<Ban>,
    /// How long it has still to last.
    pub left: BanTerm,
}

/// A ban to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewBan<'a> {
    /// How long it lasts.
    pub term: BanTerm,
    /// Why, for whoever lists the bans.
    pub reason: Option<&'a str>,
}

/// All bans. While there are none, a request pays one relaxed load for them; else a lock shared with
/// other readers, since a copy of the whole table for each change would make many bans slow.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    is_any: AtomicBool,
    table: RwLock<Table>,
}

type Table = HashMap<BanKey, Arc<Ban>, RandomState>;

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

// === impl Ban ===

impl Ban {
    /// A ban from `now` on.
    pub(crate) fn new(
        domain: &str,
        rule: &Rule,
        entries: &[Entry<'_>],
        new: NewBan<'_>,
        now: Time,
    ) -> Result<Self, KeyError> {
        let reason = new.reason.unwrap_or_default();
        let of_entries = entries.iter().map(|it| it.key.len() + it.value.len());
        if of_entries.sum::<usize>() + reason.len() > MAX_BAN_BYTES {
            return Err(KeyError::BanTooLong {
                most: MAX_BAN_BYTES,
            });
        }
        let pair = |entry: &Entry<'_>| (entry.key.into(), entry.value.into());
        Ok(Self {
            domain: domain.into(),
            rule: rule.path().into(),
            entries: entries.iter().map(pair).collect(),
            reason: new.reason.map(Into::into),
            end: match new.term {
                BanTerm::For(length) => Some((now.plus(length), length)),
                BanTerm::UntilLifted => None,
            },
        })
    }

    /// The domain.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The path of the rule when the ban was made.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The entries that the ban was made by.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        self.entries.iter().map(|(key, value)| Entry { key, value })
    }

    /// Why it was made, if that was said.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The order of a list.
    fn cmp_place(&self, other: &Self) -> cmp::Ordering {
        let place = (&self.domain, &self.rule, &self.entries);
        place.cmp(&(&other.domain, &other.rule, &other.entries))
    }

    /// What is left of it at `now`; `None` if it is over.
    pub(crate) fn left(&self, now: Time) -> Option<BanTerm> {
        match self.end {
            None => Some(BanTerm::UntilLifted),
            Some((end, _)) => (now < end).then(|| BanTerm::For(end.since(now))),
        }
    }

    /// All of it, for want of a clock.
    pub(crate) fn whole(&self) -> BanTerm {
        self.end
            .map_or(BanTerm::UntilLifted, |(_, length)| BanTerm::For(length))
    }
}

// === impl BanTerm ===

impl BanTerm {
    /// When who is banned may come again.
    pub const fn retry(self) -> Retry {
        match self {
            Self::For(left) => Retry::After(left),
            Self::UntilLifted => Retry::Never,
        }
    }
}

// === impl ActiveBan ===

impl ActiveBan {
    /// The ban, if it is not over.
    pub(crate) fn at(ban: Arc<Ban>, now: Time) -> Option<Self> {
        let left = ban.left(now)?;
        Some(Self { ban, left })
    }
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
            self.table().get(&caller).map(Arc::clone)
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
        self.change(|table| {
            if table.len() >= MAX_BANS {
                table.retain(|_, ban| ban.left(now).is_some());
            }
            if table.len() >= MAX_BANS && !table.contains_key(&key) {
                return Err(KeyError::TooManyBans { most: MAX_BANS });
            }
            table.insert(key, Arc::new(ban));
            Ok(())
        })
    }

    /// Lifts the ban on whoever ends at `rule` with `entries` and gives it back.
    pub(crate) fn remove(&self, rule: &Rule, entries: &[Entry<'_>]) -> Option<Arc<Ban>> {
        with_caller(rule, entries, |caller| {
            self.change(|table| table.remove(&caller))
        })
    }

    /// The bans in force at `now`, by domain, rule and entries. Forgets the others.
    pub(crate) fn list(&self, now: Time) -> Vec<ActiveBan> {
        self.change(|table| table.retain(|_, ban| ban.left(now).is_some()));
        let active = |ban: &Arc<Ban>| ActiveBan::at(Arc::clone(ban), now);
        let mut bans: Vec<_> = self.table().values().filter_map(active).collect();
        bans.sort_unstable_by(|one, other| one.ban.cmp_place(&other.ban));
        bans
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut table);
        self.is_any.store(!table.is_empty(), Ordering::Relaxed);
        changed
    }

    fn table(&self) -> RwLockReadGuard<'_, Table> {
        // Whoever panicked with the lock left a whole table behind: no change is made in two steps.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
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
