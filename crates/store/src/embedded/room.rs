//! Finding a slot for a new key: a free one, one made free by moving its key to that key's other
//! set, or, when memory is at its cap, the one whose state is worth least.

use tidegate_algorithms::Time;

use super::claim::Claim;
use super::core::Core;
use super::locks::{Locks, Place};
use super::sync::Ordering;
use super::table::{Home, LockedSet, SetId, WAYS, choices};
use super::tag::{EvictionRank, Pass, Tag};

/// Searches for an idle counter further off that fail in a row before most of them are left out. With 97 % of all
/// counters in use, four in ten fail.
const MOST_IN_VAIN: u32 = 64;

/// The evictions for each search after that.
const SEARCH_PERIOD: u64 = 16;

// === impl Core ===

impl Core {
    /// A free slot in one of the sets of `home`, both held. Slots in `taken` stay as they are.
    pub(super) fn free_room(
        &self,
        locks: &Locks<'_>,
        home: &Home,
        taken: &[Place],
        now: Time,
    ) -> Option<Place> {
        let is_free = |at: &Place| self.is_free(locks.set(at.held), at.slot, now);
        let at = untaken(locks, home, taken).find(is_free)?;
        self.vacate(locks.set(at.held), at.slot);
        Some(at)
    }

    /// A slot in one of the sets of `home` whose key could be moved to that key's other set.
    pub(super) fn moved_room(
        &self,
        locks: &Locks<'_>,
        home: &Home,
        taken: &[Place],
        now: Time,
    ) -> Option<Place> {
        untaken(locks, home, taken).find(|&at| self.move_away(locks, at, home.size, None, now))
    }

    /// A slot in one of the sets of `home`, by evicting a live counter: one of these sets or, if they have none of the
    /// same rank, one in the other set of a key, which is moved there.
    pub(super) fn evicted_room(
        &self,
        locks: &Locks<'_>,
        home: &Home,
        taken: &[Place],
        now: Time,
    ) -> Option<Place> {
        let here = |most| {
            let slots = untaken(locks, home, taken).map(|at| (locks.set(at.held), at.slot));
            let (set, slot) = self.evict_for_slot(slots, most, now)?;
            let held = locks.index_of(set.id())?;
            Some(Place { held, slot })
        };
        let elsewhere = |most| {
            let is_moved = |at: &Place| self.move_away(locks, *at, home.size, Some(most), now);
            untaken(locks, home, taken).find(is_moved)
        };
        here(EvictionRank::Idle)
            .or_else(|| self.search_idle(|| elsewhere(EvictionRank::Idle)))
            .or_else(|| here(EvictionRank::OnceNow))
            .or_else(|| elsewhere(EvictionRank::OnceNow))
    }

    /// Searches for an idle counter in other sets, while there are some to be found. It costs a cache line for each of
    /// eight sets, which a flood so fast that nothing becomes idle would pay for every key.
    fn search_idle(&self, search: impl FnOnce() -> Option<Place>) -> Option<Place> {
        // Relaxed: it is a guess in any case.
        let in_vain = self.idle_searches_in_vain.load(Ordering::Relaxed);
        let is_due = self.evicted.get().is_multiple_of(SEARCH_PERIOD);
        if in_vain >= MOST_IN_VAIN && !is_due {
            return None;
        }
        let place = search();
        let in_vain = place.map_or(in_vain.saturating_add(1), |_| 0);
        self.idle_searches_in_vain.store(in_vain, Ordering::Relaxed);
        place
    }

    /// Evicts the first counter among `slots` whose rank is at most `most`, to have its slot.
    fn evict_for_slot<'s, 't>(
        &self,
        slots: impl Iterator<Item = (&'s LockedSet<'t>, usize)>,
        most: EvictionRank,
        now: Time,
    ) -> Option<(&'s LockedSet<'t>, usize)>
    where
        't: 's,
    {
        let (rank, place) = self.evict(slots, most, now)?;
        self.take_from_arena(rank, now);
        Some(place)
    }

    /// A slot for a new key in one of its two sets, which are held: a free one or, at the cap, that of an idle
    /// counter. `None` if it takes more than that.
    pub(super) fn slot_in<'s, 't>(
        &self,
        sets: [&'s LockedSet<'t>; 2],
        now: Time,
    ) -> Option<(&'s LockedSet<'t>, usize)> {
        let free = |set: &'s LockedSet<'t>| Some((set, self.free_slot(set, now)?));
        sets.into_iter().find_map(free).or_else(|| {
            let slots = sets
                .into_iter()
                .flat_map(|set| (0..WAYS).map(move |slot| (set, slot)));
            let is_at_cap = !self.can_grow(sets[0].id().shard);
            is_at_cap
                .then(|| self.evict_for_slot(slots, EvictionRank::Idle, now))
                .flatten()
        })
    }

    /// Evicts the first counter among `slots` in the order of their [rank](Tag::rank), if that is at most `most`;
    /// within a rank the one that expires first, so that an almost full bucket goes before a half-empty one. Where
    /// several expire together, as windows do, chance decides: the first one would always be the newest.
    pub(super) fn evict<'s, 't>(
        &self,
        slots: impl Iterator<Item = (&'s LockedSet<'t>, usize)>,
        most: EvictionRank,
        now: Time,
    ) -> Option<(EvictionRank, (&'s LockedSet<'t>, usize))>
    where
        't: 's,
    {
        let pass = self.evicting_pass(now);
        let turn = self.evicted.get().wrapping_mul(2).wrapping_add(1);
        let worth = |(set, slot): (&'s LockedSet<'t>, usize)| {
            let tag = set.age(slot, pass);
            let rank = tag.rank(pass);
            if rank > most && !self.is_last_resort() {
                return None;
            }
            let expires_at = self.expires_at(tag, set.state(slot));
            let chance = tag.fingerprint().wrapping_mul(turn) >> u32::BITS;
            Some(((rank, expires_at, chance), (set, slot)))
        };
        let ((rank, ..), place) = slots.filter_map(worth).min_by_key(|(worth, _)| *worth)?;
        self.evict_slot(place.0, place.1, now);
        Some((rank, place))
    }

    /// Evicts a live counter: what it says goes to its shared counter.
    pub(super) fn evict_slot(&self, set: &LockedSet<'_>, slot: usize, now: Time) {
        self.fold(set.tag(slot), set.state(slot), now);
        self.vacate(set, slot);
        self.evicted.add_one();
    }

    /// When the first slot in the sets of a claim will be free or evictable or, if one is and only a
    /// block is wanting, when the claim's own window will have passed over all that is there now.
    pub(super) fn room_at(&self, locks: &Locks<'_>, claim: &Claim<'_>, now: Time) -> Time {
        let whole = || now.plus(claim.quota.window());
        if claim.place.is_some() {
            return whole();
        }
        locks
            .places([claim.home.primary, claim.home.secondary])
            .map(|at| {
                let set = locks.set(at.held);
                let tag = set.tag(at.slot);
                let expires_at = self.expires_at(tag, set.state(at.slot));
                expires_at.min(tag.evictable_at(Pass::at(now)))
            })
            .min()
            .unwrap_or_else(whole)
    }

    /// Whether [`free_room`](Self::free_room) or [`evicted_room`](Self::evicted_room) would find a slot. Changes nothing.
    pub(super) fn finds_room(&self, locks: &Locks<'_>, home: &Home, now: Time) -> bool {
        let is_available = |set: &LockedSet<'_>, slot| {
            let rank = set.tag(slot).rank(self.evicting_pass(now));
            rank < EvictionRank::InUse || self.is_free(set, slot, now)
        };
        let is_here = |at: Place| is_available(locks.set(at.held), at.slot);
        let is_elsewhere = |at: Place| {
            let set = locks.set(at.held);
            let other = other_set(set.tag(at.slot), set.id(), home.size);
            let other = self.table.try_lock(other);
            other.is_some_and(|set| (0..WAYS).any(|slot| is_available(&set, slot)))
        };
        let places = || locks.places([home.primary, home.secondary]);
        places().any(is_here) || places().any(is_elsewhere)
    }

    /// Moves the key at a place to its other set, if that is to be had at once and has a free slot, or one whose
    /// counter has at most the rank `evicted`. Both sets of the moved key are then held, as the table demands.
    fn move_away(
        &self,
        locks: &Locks<'_>,
        at: Place,
        size: u32,
        evicted: Option<EvictionRank>,
        now: Time,
    ) -> bool {
        let set = locks.set(at.held);
        let tag = set.tag(at.slot);
        let other = other_set(tag, set.id(), size);
        if locks.index_of(other).is_some() {
            return false;
        }
        let Some(target) = self.table.try_lock(other) else {
            return false;
        };
        let slot = self.free_slot(&target, now).or_else(|| {
            let slots = (0..WAYS).map(|slot| (&target, slot));
            let (_, slot) = self.evict_for_slot(slots, evicted?, now)?;
            Some(slot)
        });
        let Some(slot) = slot else {
            return false;
        };
        self.vacate(&target, slot);
        target.put_state(slot, set.state(at.slot));
        target.put_tag(slot, tag);
        set.put_tag(at.slot, Tag::EMPTY);
        true
    }

    /// The first slot of a set that is free at `now`.
    pub(super) fn free_slot(&self, set: &LockedSet<'_>, now: Time) -> Option<usize> {
        (0..WAYS).find(|&slot| self.is_free(set, slot, now))
    }
}

/// The slots in the sets of `home`, without those in `taken`.
fn untaken(locks: &Locks<'_>, home: &Home, taken: &[Place]) -> impl Iterator<Item = Place> {
    let places = locks.places([home.primary, home.secondary]);
    places.filter(|at| !taken.contains(at))
}

/// The other set of the key of `tag`, which lies in `set`. The fingerprint alone chooses the sets.
fn other_set(tag: Tag, set: SetId, size: u32) -> SetId {
    let (primary, secondary) = choices(tag.fingerprint(), size);
    SetId {
        shard: set.shard,
        set: if set.set == primary {
            secondary
        } else {
            primary
        },
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
