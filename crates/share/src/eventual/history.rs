//! The admissions of all nodes for one limit, slot by slot.

use tidegate_algorithms::{Meter, Quota, Time};

use super::packed::PackedList;
use super::slots::{SlotLayout, WINDOW_SLOTS};
use super::usage::{Usage, keeps_debt, most};

/// The admissions that a counter still remembers: sums by slot, and what is left of all before them.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Slots before this one are in `state` and `debt`.
    first: u64,
    /// The sums of the slots from `first` on.
    sums: PackedList<i64, SLOTS>,
    /// Of a bucket, its state before `first`.
    state: u64,
    /// Admissions above the limit before `first` that are not paid off.
    debt: u64,
    /// Overshoot in `sums` that was reported already.
    reported: u32,
}

/// Slots that matter at one time: those of a window, and the current one.
#[expect(clippy::cast_possible_truncation, reason = "it is small")]
const SLOTS: usize = WINDOW_SLOTS as usize + 1;

/// The part of a bucket's capacity that assumptions leave free: less than 2 % of it, which is how exact the
/// overshoot is to be, whether they are wrong or right.
const ASSUMED_MARGIN: u64 = 64;

/// Admissions above a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overshoot {
    /// Those that were not reported before.
    pub(super) more: u64,
    /// The most at one time.
    pub(super) worst: u64,
}

/// A node that does not know what some others admit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone<'a> {
    /// The slot in which it was cut off.
    pub(super) since: u64,
    /// The number of nodes.
    pub(super) members: u64,
    /// This node's admissions, by slot.
    pub(super) own: &'a [(u64, i64)],
}

/// The start of a history that continues an earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// The first slot after it.
    pub(super) slot: u64,
    /// The part of the limit that was in use then.
    pub(super) used: u64,
}

// === impl History ===

impl History {
    /// The largest limit whose sums can be added up with room to spare.
    pub(super) const LARGEST_LIMIT: u64 = 1 << 45;

    /// The largest sum of a slot, either way.
    const LARGEST_SUM: i64 = 1 << 47;

    /// Continues from what was in use when a slot began.
    pub(super) fn from_base(quota: &Quota, layout: SlotLayout, base: Base) -> Self {
        let mut usage = Usage::begin(quota, layout, base.slot, 0, 0);
        let before = base.slot.saturating_sub(1);
        let used = i64::try_from(base.used).unwrap_or(i64::MAX);
        match quota.meter() {
            Meter::TokenBucket(_) | Meter::IntervalBucket(_) => {
                usage.charge(quota, before, used, layout.end(before));
            }
            _ => usage.debt = base.used,
        }
        Self {
            first: base.slot,
            state: usage.state(),
            debt: usage.debt,
            ..Self::default()
        }
    }

    /// The sum of a slot.
    pub(super) fn sum(&self, slot: u64) -> i64 {
        let sum = self.place(slot).and_then(|place| self.sums.get(place));
        sum.unwrap_or(0)
    }

    /// The first slot that is not forgotten.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// All sums but those of 0, oldest first.
    pub(super) fn sums(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        let sums = (self.first..).zip(self.sums.iter());
        sums.filter(|(_, sum)| *sum != 0)
    }

    /// The place of a slot among the sums, if it is not forgotten.
    fn place(&self, slot: u64) -> Option<usize> {
        usize::try_from(slot.checked_sub(self.first)?).ok()
    }

    /// Adds to the sum of a slot.
    pub(super) fn add(&mut self, slot: u64, amount: i64) {
        self.set(slot, self.sum(slot).saturating_add(amount));
    }

    /// Sets the sum of a slot. One that is forgotten stays so.
    pub(super) fn set(&mut self, slot: u64, sum: i64) {
        let Some(place) = self.place(slot) else {
            return;
        };
        if sum != 0 || place < self.sums.len() {
            let gap = self.sums.len()..place;
            gap.for_each(|place| self.sums.set(place, 0));
            let sum = sum.clamp(-Self::LARGEST_SUM, Self::LARGEST_SUM);
            self.sums.set(place, sum);
        }
    }

    /// Forgets slots that no longer matter at the slot `now`, all but what they leave behind. To the level of
    /// a bucket each other node is assumed to have added as much as this one did while it was alone.
    pub(super) fn advance(
        &mut self,
        quota: &Quota,
        layout: SlotLayout,
        now: u64,
        alone: Option<Alone<'_>>,
    ) {
        let first = now.saturating_sub(layout.span);
        if first <= self.first {
            return;
        }
        let gone = self.sums().take_while(|(slot, _)| *slot < first).count();
        if gone > 0 || self.debt > 0 || self.state > 0 {
            let last = layout.end(first.saturating_sub(1));
            let mut usage = Usage::begin(quota, layout, self.first, self.state, self.debt);
            for (slot, sum) in self.sums().take(gone) {
                usage.charge(quota, slot, sum, last);
                let alone = alone.filter(|alone| slot >= alone.since && usage.state() > 0);
                if let Some(alone) = alone {
                    let assumed = alone.assumed(slot).saturating_sub(sum);
                    // A little below the capacity: what is only assumed is no overshoot.
                    let left = usage.decide(quota, 0, 0, layout.end(slot)).remaining;
                    let room = left.saturating_sub(most(quota) / ASSUMED_MARGIN);
                    let room = i64::try_from(room).unwrap_or(i64::MAX);
                    usage.charge(quota, slot, assumed.clamp(0, room), last);
                }
            }
            usage.settle(quota, last);
            self.state = usage.state();
            self.debt = usage.debt;
        }
        let mut slots = self.first..;
        self.sums.keep(|_| slots.next() >= Some(first));
        self.first = first;
        self.reported = saturate(self.count_overshoot(quota, layout).0);
    }

    /// The use of the limit at `now`.
    pub(super) fn usage(&self, quota: &Quota, layout: SlotLayout, now: Time) -> Usage {
        let mut usage = Usage::begin(quota, layout, self.first, self.state, self.debt);
        for (slot, sum) in self.sums() {
            usage.charge(quota, slot, sum, now);
        }
        usage.settle(quota, now);
        usage
    }

    /// The use of the limit when a slot began, apart from what windows that are not over say: the base of
    /// [`from_base`](Self::from_base).
    pub(super) fn base(&self, quota: &Quota, layout: SlotLayout, slot: u64) -> u64 {
        let end = layout.end(slot.saturating_sub(1));
        let mut usage = Usage::begin(quota, layout, self.first, self.state, self.debt);
        for (slot, sum) in self.sums().take_while(|(at, _)| *at < slot) {
            usage.charge(quota, slot, sum, end);
        }
        match quota.meter() {
            Meter::TokenBucket(_) | Meter::IntervalBucket(_) => usage.used(quota, end),
            _ => usage.debt,
        }
    }

    /// Takes over what another history of the same counter says, and of what is forgotten whichever says
    /// more.
    pub(super) fn merge_base(&mut self, other: &Self) {
        self.state = self.state.max(other.state);
        self.debt = self.debt.max(other.debt);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.sums = PackedList::default();
        (self.state, self.debt, self.reported) = (0, 0, 0);
    }

    /// Counts the overshoot that was not reported before.
    pub(super) fn report_overshoot(&mut self, quota: &Quota, layout: SlotLayout) -> Overshoot {
        let (seen, worst) = self.count_overshoot(quota, layout);
        let more = seen.saturating_sub(u64::from(self.reported));
        self.reported = saturate(seen);
        Overshoot { more, worst }
    }

    /// Admissions above the limit in the slots, in all and the most at one time. What is above it for
    /// several slots on end counts once.
    fn count_overshoot(&self, quota: &Quota, layout: SlotLayout) -> (u64, u64) {
        if !keeps_debt(quota) {
            return (0, 0);
        }
        let is_bucket = matches!(
            quota.meter(),
            Meter::TokenBucket(_) | Meter::IntervalBucket(_)
        );
        let (mut seen, mut worst) = (0_u64, 0);
        let mut usage = Usage::begin(quota, layout, self.first, self.state, self.debt);
        for (slot, sum) in self.sums() {
            let (before, over) = if is_bucket {
                let before = usage.debt;
                usage.charge(quota, slot, sum, layout.end(slot));
                (before, usage.debt)
            } else if layout.span == 1 {
                (0, self.excess(quota, layout, slot))
            } else {
                let before = self.excess(quota, layout, slot.saturating_sub(1));
                (before, self.excess(quota, layout, slot))
            };
            worst = worst.max(over);
            seen = seen.saturating_add(over.saturating_sub(before));
        }
        (seen, worst)
    }

    /// Admissions above the limit in the window that ends with a slot.
    fn excess(&self, quota: &Quota, layout: SlotLayout, last: u64) -> u64 {
        let window = self.sums().filter(|(slot, _)| *slot <= last);
        let window = window.filter(|(slot, _)| *slot + layout.span > last);
        let used: i64 = window.map(|(_, sum)| sum).sum();
        u64::try_from(used).unwrap_or(0).saturating_sub(most(quota))
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.sums.heap_bytes()
    }
}

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

// === impl Alone ===

impl Alone<'_> {
    /// The admissions of all nodes in a slot, if each admitted as much as this one.
    fn assumed(&self, slot: u64) -> i64 {
        let own = self.own.iter().find(|(at, _)| *at == slot);
        let members = i64::try_from(self.members).unwrap_or(1);
        own.map_or(0, |(_, own)| own.saturating_mul(members))
    }
}
