//! Numbers for layouts: those of limits that are gone are given out again.
//!
//! Numbers run out only after many reloads with ever other windows, so all slots are looked at then,
//! one shard at a time, and no decision pays for it.

use std::collections::BTreeSet;

use tidegate_algorithms::{Quota, Time};

use super::core::Core;
use super::layout::{Assignment, LAYOUTS, Layout, LayoutId};
use super::shared::{shared_layouts, substitute};
use super::sync::Ordering;
use super::table::{LockedSet, WAYS};
use super::tag::Form;
use crate::{Clock, StoreError};

/// The least nanoseconds between two attempts to recycle on behalf of a request, because each looks
/// at the whole table.
const PAUSE: u64 = 1_000_000_000;

/// The error for a layout that gets no number.
const TOO_MANY: StoreError = StoreError::TooManyWindows { most: LAYOUTS - 1 };

/// Room in one store for the limits of new rules. Nobody else is given it before this is [committed](Self::commit) or
/// dropped.
#[derive(Debug)]
#[must_use = "dropped, it reserves nothing"]
pub struct LimitReservation<'s> {
    own: NewNumbers<'s>,
    shared: Option<NewNumbers<'s>>,
}

/// Layouts that have no number yet.
#[derive(Debug)]
struct NewNumbers<'c> {
    assignment: Assignment<'c>,
    /// Those for which a number is left come first.
    layouts: Vec<Layout>,
}

// === impl LimitReservation ===

impl LimitReservation<'_> {
    /// Takes the room.
    pub fn commit(self) {
        for numbers in [Some(self.own), self.shared].into_iter().flatten() {
            for layout in numbers.layouts {
                // There may be none left for those that are only useful.
                let _ = numbers.assignment.number(layout);
            }
        }
    }
}

// === impl Core ===

impl Core {
    /// The number of `layout`, given now if it has none yet. The caller holds no set.
    pub(super) fn number(
        &self,
        layout: Layout,
        clock: &impl Clock,
    ) -> Result<LayoutId, StoreError> {
        self.layouts
            .search(layout)
            .map_or_else(|| self.assign(layout, clock.now()), Ok)
    }

    #[cold]
    fn assign(&self, layout: Layout, now: Time) -> Result<LayoutId, StoreError> {
        let assignment = self.layouts.assignment();
        let number = assignment.number(layout).or_else(|| {
            let last = self.recycled_at.load(Ordering::Relaxed);
            if last != 0 && now.nanos().abs_diff(last) < PAUSE {
                return None;
            }
            self.recycle(&assignment, &BTreeSet::new(), now);
            assignment.number(layout)
        });
        number.ok_or(TOO_MANY)
    }

    /// Reserves numbers for limits with these quotas, and for their shared counters.
    pub(super) fn reserve<'q>(
        &self,
        quotas: impl Iterator<Item = &'q Quota>,
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
        let own = self.find_numbers(&own, &BTreeSet::new(), now)?;
        let shared = self.shared.as_ref();
        let shared = shared.map(|shared| shared.find_numbers(&charged, &folded, now));
        Ok(LimitReservation {
            own,
            shared: shared.transpose()?,
        })
    }

    /// Finds numbers for all `needed` layouts that have none yet and, as far as numbers are left, for the `useful`
    /// ones.
    fn find_numbers(
        &self,
        needed: &BTreeSet<Layout>,
        useful: &BTreeSet<Layout>,
        now: Time,
    ) -> Result<NewNumbers<'_>, StoreError> {
        let assignment = self.layouts.assignment();
        let is_new = |layout: &&Layout| self.layouts.search(**layout).is_none();
        if self.layouts.unused() < needed.union(useful).filter(is_new).count() {
            self.recycle(&assignment, needed, now);
        }
        let mut layouts: Vec<Layout> = needed.iter().filter(is_new).copied().collect();
        if self.layouts.unused() < layouts.len() {
            return Err(TOO_MANY);
        }
        layouts.extend(useful.iter().filter(is_new));
        Ok(NewNumbers {
            assignment,
            layouts,
        })
    }

    /// Frees the numbers that no live slot names, those of `kept` aside. Slots that have expired and
    /// name one are emptied.
    fn recycle(&self, assignment: &Assignment<'_>, kept: &BTreeSet<Layout>, now: Time) {
        self.recycled_at.store(now.nanos(), Ordering::Relaxed);
        let mut is_named = vec![false; LAYOUTS];
        for shard in 0..self.table.shards() {
            self.visit(shard, |tag, expires_at| {
                is_named[place(tag.layout())] |= now < expires_at;
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
                self.drop_expired(set, assignment, &mut is_retired, now);
            }
        }
        for number in retired {
            if is_retired[place(number)] {
                assignment.release(number);
            }
        }
    }

    /// Empties the expired slots of retired layouts, and puts the layouts of the others back in use.
    fn drop_expired(
        &self,
        set: &LockedSet<'_>,
        assignment: &Assignment<'_>,
        is_retired: &mut [bool],
        now: Time,
    ) {
        for slot in 0..WAYS {
            let number = set.tag(slot).layout();
            if set.tag(slot).is_empty() || !is_retired[place(number)] {
                continue;
            }
            if self.is_free(set, slot, now) {
                self.vacate(set, slot);
            } else {
                is_retired[place(number)] = false;
                assignment.restore(number);
            }
        }
    }
}

fn place(number: LayoutId) -> usize {
    usize::from(number.get())
}
