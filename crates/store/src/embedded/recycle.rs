//! Numbers for layouts: those of limits that are gone are given out again.
//!
//! Numbers run out only after many reloads with ever other windows, so all slots are looked at then,
//! one shard at a time, and no decision pays for it.

use std::collections::BTreeSet;
use std::mem::take;

use tidegate_algorithms::{Quota, Time};

use super::core::Core;
use super::layout::{Assignment, LAYOUTS, Layout, LayoutId, MOST_LAYOUTS, SPARE, Shape};
use super::shared::{shared_layouts, substitute};
use super::sync::Ordering;
use super::table::{LockedSet, WAYS};
use super::tag::Form;
use crate::{Clock, OldCounters, StoreError};

/// The least nanoseconds between two attempts to recycle on behalf of a request, because each looks
/// at the whole table.
const PAUSE: u64 = 1_000_000_000;

/// The error for a layout that gets no number.
const TOO_MANY: StoreError = StoreError::TooManyWindows { most: MOST_LAYOUTS };

/// Room in one store for the limits of new rules. No other thread gets it before this is [committed](Self::commit) or
/// dropped.
#[derive(Debug)]
#[must_use = "dropped, it reserves nothing"]
pub struct LimitReservation<'s> {
    own: NewNumbers<'s>,
    shared: Option<NewNumbers<'s>>,
}

/// Numbers for the layouts of new rules. Dropped, it gives those of the rules in force their numbers back.
#[derive(Debug)]
struct NewNumbers<'c> {
    assignment: Assignment<'c>,
    needed: BTreeSet<Layout>,
    useful: BTreeSet<Layout>,
}

// === impl LimitReservation ===

impl LimitReservation<'_> {
    /// Takes the room.
    pub fn commit(self) {
        for mut numbers in [Some(self.own), self.shared].into_iter().flatten() {
            let needed = take(&mut numbers.needed);
            numbers.assignment.reserve(needed);
            numbers.number_reserved();
            for &layout in &numbers.useful {
                // There may be none left for those that are only useful.
                let _ = numbers.assignment.number(layout);
            }
        }
    }
}

// === impl NewNumbers ===

impl NewNumbers<'_> {
    fn number_reserved(&self) {
        for &layout in self.assignment.reserved() {
            // There was a number for each when they were reserved.
            let _ = self.assignment.number(layout);
        }
    }
}

impl Drop for NewNumbers<'_> {
    fn drop(&mut self) {
        self.number_reserved();
    }
}

// === impl Core ===

impl Core {
    /// The number of `layout`, given now if it has none yet, and the layout that has it: the spare one for a bucket
    /// for which no number is left. The caller holds no set.
    pub(super) fn number(
        &self,
        layout: Layout,
        clock: &impl Clock,
    ) -> Result<(LayoutId, Layout), StoreError> {
        let number = self.layouts.search(layout);
        let number = number.map_or_else(|| self.assign(layout, clock.now()), Ok);
        match number {
            Err(_) if layout.shape == Shape::Instant => Ok((LayoutId::SPARE, SPARE)),
            number => Ok((number?, layout)),
        }
    }

    #[cold]
    fn assign(&self, layout: Layout, now: Time) -> Result<LayoutId, StoreError> {
        let assignment = self.layouts.assignment();
        let number = assignment.number(layout).or_else(|| {
            let last = self.recycled_at.load(Ordering::Relaxed);
            if last != 0 && now.nanos().abs_diff(last) < PAUSE {
                return None;
            }
            self.recycle(&assignment, assignment.reserved(), OldCounters::Keep, now);
            assignment.number(layout)
        });
        number.ok_or(TOO_MANY)
    }

    /// Reserves numbers for limits with these quotas, and for their shared counters.
    pub(super) fn reserve<'q>(
        &self,
        quotas: impl Iterator<Item = &'q Quota>,
        old: OldCounters,
        now: Time,
    ) -> Result<LimitReservation<'_>, StoreError> {
        let (mut own, mut charged, mut folded) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for quota in quotas {
            let layout = Layout::of(quota);
            own.insert(layout);
            charged.insert(Layout::of(&substitute(quota)));
            folded.extend(shared_layouts(layout, Form::Boxed));
        }
        // In this order: a request that holds sets of this core may wait for a number of the shared one.
        let own = self.find_numbers(own, BTreeSet::new(), old, now)?;
        let shared = self.shared.as_ref();
        let shared = shared.map(|shared| shared.find_numbers(charged, folded, old, now));
        Ok(LimitReservation {
            own,
            shared: shared.transpose()?,
        })
    }

    /// Finds numbers for all `needed` layouts that have none yet and, as far as numbers are left, for the `useful`
    /// ones.
    fn find_numbers(
        &self,
        needed: BTreeSet<Layout>,
        useful: BTreeSet<Layout>,
        old: OldCounters,
        now: Time,
    ) -> Result<NewNumbers<'_>, StoreError> {
        let numbers = NewNumbers {
            assignment: self.layouts.assignment(),
            needed,
            useful,
        };
        let NewNumbers {
            assignment,
            needed,
            useful,
        } = &numbers;
        let is_new = |layout: &&Layout| self.layouts.search(**layout).is_none();
        let is_room_for_needed = || needed.iter().filter(is_new).count() <= self.layouts.unused();
        if self.layouts.unused() < needed.union(useful).filter(is_new).count() {
            self.recycle(assignment, needed, OldCounters::Keep, now);
        }
        if !is_room_for_needed() && old == OldCounters::Drop {
            self.recycle(assignment, needed, OldCounters::Drop, now);
        }
        if is_room_for_needed() {
            Ok(numbers)
        } else {
            Err(TOO_MANY)
        }
    }

    /// Frees the numbers of layouts that are not `kept` and that no live slot names. Slots that name one and have
    /// expired, or whose counters are to be dropped, are emptied.
    fn recycle(
        &self,
        assignment: &Assignment<'_>,
        kept: &BTreeSet<Layout>,
        old: OldCounters,
        now: Time,
    ) {
        self.recycled_at.store(now.nanos(), Ordering::Relaxed);
        let is_live = |expires_at: Time| old == OldCounters::Keep && now < expires_at;
        let mut is_named = vec![false; LAYOUTS];
        for shard in 0..self.table.shards() {
            self.visit(shard, |tag, expires_at| {
                is_named[place(tag.layout())] |= is_live(expires_at);
            });
        }
        // Until this is over, a layout that was retired waits for the assignment to get a number.
        let retired =
            assignment.retire(|number, layout| !is_named[place(number)] && !kept.contains(&layout));
        // A key may have come since the first look. All of a shard is held at once, or a key could be
        // moved past the search.
        let mut is_retired = vec![false; LAYOUTS];
        for &number in &retired {
            is_retired[place(number)] = true;
        }
        for shard in 0..self.table.shards() {
            for set in &self.lock_shard(shard) {
                self.drop_retired(set, assignment, &mut is_retired, &is_live);
            }
        }
        for number in retired {
            if is_retired[place(number)] {
                assignment.release(number);
            }
        }
    }

    /// Empties the slots of retired layouts that are not live, and puts the layouts of the others back in use.
    fn drop_retired(
        &self,
        set: &LockedSet<'_>,
        assignment: &Assignment<'_>,
        is_retired: &mut [bool],
        is_live: &impl Fn(Time) -> bool,
    ) {
        for slot in 0..WAYS {
            let number = set.tag(slot).layout();
            if set.tag(slot).is_empty() || !is_retired[place(number)] {
                continue;
            }
            if is_live(self.expires_at(set.tag(slot), set.state(slot))) {
                is_retired[place(number)] = false;
                assignment.restore(number);
            } else {
                self.vacate(set, slot);
            }
        }
    }
}

fn place(number: LayoutId) -> usize {
    usize::from(number.get())
}
