//! The counters of one request, found and held.

use smallvec::SmallVec;
use tidegate_algorithms::{Quota, Time};

use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::grow::Growth;
use super::layout::Layout;
use super::locks::{Locks, Place};
use super::table::{Home, SetId};
use super::tag::Tag;
use crate::{Charge, Clock, CounterKey, StoreError};

/// One counter of a request, however many of its charges name it.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    /// The largest of the quotas that its charges go by: what is kept must have room for its counts.
    pub(super) quota: &'a Quota,
    /// What all charges that name it ask of it. If that is nothing, it needs no slot.
    pub(super) cost: u64,
    pub(super) hash: u64,
    pub(super) tag: Tag,
    pub(super) layout: Layout,
    pub(super) home: Home,
    /// Where it lies; `None` if it is not there and got no room.
    pub(super) place: Option<Place>,
    /// Whether this request put it there.
    pub(super) is_new: bool,
    /// Whether its shard could not grow although it seemed to have room: evict, or do without.
    is_at_cap: bool,
}

/// The counters of a request.
pub(super) type Claims<'a> = SmallVec<[Claim<'a>; 8]>;

/// The counters of a request, held at one instant.
#[derive(Debug)]
pub(super) struct Hold<'t> {
    pub(super) locks: Locks<'t>,
    pub(super) now: Time,
}

/// Why the counters of a request could not be held this time.
enum Obstacle {
    /// A set had to be waited for out of order.
    OutOfOrder,
    /// A shard changed its size meanwhile.
    Resized,
    /// The number of a layout was retired meanwhile.
    Retired,
    /// There is no room for this claim.
    NoRoom { claim: usize, now: Time },
}

/// Which sets to lock before looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The primary sets: most keys lie there, for a new one goes there if it can.
    Primary,
    /// Both sets of each key.
    Both,
}

// === impl Claim ===

impl<'a> Claim<'a> {
    fn new(
        core: &Core,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        key: CounterKey<'_>,
        quota: &'a Quota,
    ) -> Result<Self, StoreError> {
        Self::at(core, clock, fingerprinter.hash(key), quota)
    }

    /// A claim of the counter with that hash.
    pub(super) fn at(
        core: &Core,
        clock: &impl Clock,
        hash: u64,
        quota: &'a Quota,
    ) -> Result<Self, StoreError> {
        let (number, layout) = core.number(Layout::of(quota), clock)?;
        Ok(Self {
            quota,
            cost: 0,
            hash,
            tag: Tag::new(hash, number),
            layout,
            home: core.table.home(hash),
            place: None,
            is_new: false,
            is_at_cap: false,
        })
    }

    /// Adds the claim and its cost to those of the request, to that of the same counter if there is one, and gives
    /// its index.
    #[inline]
    pub(super) fn join(self, claims: &mut Claims<'a>, cost: u64) -> usize {
        let (tag, hash, quota) = (self.tag, self.hash, self.quota);
        let is_same = |other: &Claim<'_>| other.tag == tag && other.hash == hash;
        let index = claims.iter().position(is_same).unwrap_or_else(|| {
            claims.push(self);
            claims.len() - 1
        });
        let named = &mut claims[index];
        named.cost = named.cost.saturating_add(cost);
        if quota.limit() > named.quota.limit() {
            named.quota = quota;
        }
        index
    }

    /// Gives the claim the number that its layout has now.
    fn renumber(&mut self, core: &Core, clock: &impl Clock) -> Result<(), StoreError> {
        let (number, layout) = core.number(self.layout, clock)?;
        (self.tag, self.layout) = (Tag::new(self.hash, number), layout);
        Ok(())
    }

    fn find(&self, locks: &Locks<'_>, set: SetId) -> Option<Place> {
        let held = locks.index_of(set)?;
        let slot = locks.set(held).find(self.tag)?;
        Some(Place { held, slot })
    }
}

/// The one claim for a single counter, if it is there.
pub(super) fn claim_one<'a>(
    core: &Core,
    fingerprinter: &Fingerprinter,
    clock: &impl Clock,
    key: CounterKey<'_>,
    quota: &'a Quota,
) -> Result<Claims<'a>, StoreError> {
    let claim = Claim::new(core, fingerprinter, clock, key, quota)?;
    Ok(SmallVec::from_iter([claim]))
}

/// Adds the distinct counters of `charges` to `claims`, and for each charge which one it is to `claim_of`. Filled in
/// place: returned, both would be copied whole.
pub(super) fn claim_all<'a>(
    core: &Core,
    fingerprinter: &Fingerprinter,
    clock: &impl Clock,
    charges: &[Charge<'a>],
    claims: &mut Claims<'a>,
    claim_of: &mut SmallVec<[usize; 8]>,
) -> Result<(), StoreError> {
    for charge in charges {
        let claim = Claim::new(core, fingerprinter, clock, charge.key, charge.quota)?;
        claim_of.push(claim.join(claims, charge.cost));
    }
    Ok(())
}

// === impl Core ===

impl Core {
    /// Finds all `claims`, makes room for the absent ones that want it, and holds them at one
    /// instant of `clock`.
    pub(super) fn hold(
        &self,
        claims: &mut [Claim<'_>],
        clock: &impl Clock,
    ) -> Result<Hold<'_>, StoreError> {
        let mut reach = Reach::Primary;
        loop {
            match self.try_hold(claims, reach, clock) {
                Ok(hold) => return Ok(hold),
                Err(Obstacle::OutOfOrder) => reach = Reach::Both,
                Err(Obstacle::Resized) => {}
                Err(Obstacle::Retired) => {
                    for claim in &mut *claims {
                        claim.renumber(self, clock)?;
                    }
                }
                Err(Obstacle::NoRoom { claim, now }) => {
                    let claim = &mut claims[claim];
                    let growth = self.grow(claim.home.primary.shard, claim.home.size, now);
                    claim.is_at_cap = growth == Growth::AtCap;
                }
            }
            for claim in &mut *claims {
                claim.home = self.table.home(claim.hash);
                claim.place = None;
                claim.is_new = false;
            }
        }
    }

    fn try_hold(
        &self,
        claims: &mut [Claim<'_>],
        reach: Reach,
        clock: &impl Clock,
    ) -> Result<Hold<'_>, Obstacle> {
        let locks = Locks::take(&self.table, &sets_of(claims, reach));
        let mut locks = locks.ok_or(Obstacle::Resized)?;
        // Under the locks a size stands still; before them it may have changed.
        if claims
            .iter()
            .any(|claim| self.table.size(claim.home.primary.shard) != claim.home.size)
        {
            return Err(Obstacle::Resized);
        }
        let is_current = |it: &Claim<'_>| self.layouts.is_current(it.tag.layout(), it.layout);
        if !claims.iter().all(is_current) {
            return Err(Obstacle::Retired);
        }
        for claim in &mut *claims {
            claim.place = claim.find(&locks, claim.home.primary);
            if claim.place.is_none() {
                locks
                    .also(&self.table, claim.home.secondary)
                    .ok_or(Obstacle::OutOfOrder)?;
                claim.place = claim.find(&locks, claim.home.secondary);
            }
        }
        let now = clock.now();
        self.place_absent(claims, &locks, now)?;
        Ok(Hold { locks, now })
    }

    /// Gives each absent claim a slot. If one finds none, the others give theirs up again.
    fn place_absent(
        &self,
        claims: &mut [Claim<'_>],
        locks: &Locks<'_>,
        now: Time,
    ) -> Result<(), Obstacle> {
        if claims.iter().all(|claim| claim.place.is_some()) {
            return Ok(());
        }
        let mut taken: SmallVec<[Place; 8]> = claims.iter().filter_map(|it| it.place).collect();
        for index in 0..claims.len() {
            let claim = &claims[index];
            if claim.place.is_some() || claim.cost == 0 {
                continue;
            }
            let home = &claim.home;
            let is_at_cap = claim.is_at_cap || !self.can_grow(home.primary.shard);
            let room = self.free_room(locks, home, &taken, now).or_else(|| {
                if is_at_cap {
                    self.evicted_room(locks, home, &taken, now)
                } else {
                    self.moved_room(locks, home, &taken, now)
                }
            });
            if room.is_none() && !is_at_cap {
                for claim in claims.iter().filter(|claim| claim.is_new) {
                    claim
                        .place
                        .iter()
                        .for_each(|at| self.vacate(locks.set(at.held), at.slot));
                }
                return Err(Obstacle::NoRoom { claim: index, now });
            }
            let claim = &mut claims[index];
            if let Some(at) = room {
                locks.set(at.held).put_tag(at.slot, claim.tag);
                locks.set(at.held).put_state(at.slot, 0);
                taken.push(at);
                claim.is_new = true;
            }
            claim.place = room;
        }
        Ok(())
    }
}

/// The sets to lock for `claims`, in order.
fn sets_of(claims: &[Claim<'_>], reach: Reach) -> SmallVec<[SetId; 8]> {
    let mut ids = SmallVec::new();
    for claim in claims {
        ids.push(claim.home.primary);
        if reach == Reach::Both {
            ids.push(claim.home.secondary);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}
