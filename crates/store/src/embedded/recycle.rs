//! Numbers for layouts: those of limits that are gone are given out again.
//!
//! Numbers run out only after many reloads with ever other windows, so all slots are looked at then,
//! one shard at a time, and no decision pays for it.

use tidegate_algorithms::Time;

use super::core::Core;
use super::layout::{Assignment, LAYOUTS, Layout, LayoutId};
use super::sync::Ordering;
use super::table::{LockedSet, WAYS};
use crate::{Clock, StoreError};

/// The least nanoseconds between two attempts to recycle on behalf of a request, because each looks
/// at the whole table.
const PAUSE: u64 = 1_000_000_000;

/// The error for a layout that gets no number.
const TOO_MANY: StoreError = StoreError::TooManyWindows { most: LAYOUTS - 1 };

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
            self.recycle(&assignment, &[], now);
            assignment.number(layout)
        });
        number.ok_or(TOO_MANY)
    }

    /// Gives every one of `layouts` a number, or none of those that have none yet if there are too few.
    pub(super) fn reserve(&self, layouts: &[Layout], now: Time) -> Result<(), StoreError> {
        let assignment = self.layouts.assignment();
        let mut new: Vec<Layout> = Vec::new();
        for &layout in layouts {
            if self.layouts.search(layout).is_none() && !new.contains(&layout) {
                new.push(layout);
            }
        }
        if self.layouts.unused() < new.len() {
            self.recycle(&assignment, layouts, now);
        }
        if self.layouts.unused() < new.len() {
            return Err(TOO_MANY);
        }
        let is_numbered = |&layout: &Layout| assignment.number(layout).is_some();
        if new.iter().all(is_numbered) {
            Ok(())
        } else {
            Err(TOO_MANY)
        }
    }

    /// Frees the numbers that no live slot names, those of `kept` aside. Slots that have expired and
    /// name one are emptied.
    fn recycle(&self, assignment: &Assignment<'_>, kept: &[Layout], now: Time) {
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
