//! One counter in an exchange: what is sent, and what becomes of the reply.

use smallvec::SmallVec;
use tidegate_store::{CounterId, CounterSums, CounterUpdate, EpochInfo, SlotTotal};

use super::Entry;
use super::own::{LAST_BIT, bit};
use crate::eventual::history::{Base, History};
use crate::eventual::slots::SlotLayout;

/// The last reply about a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The last bits of the slot that was current then, at least 1; 0 if nothing was received yet.
    slot: u32,
    /// The last bits of [`EpochInfo::created`] of that epoch and of the one before.
    created: [u32; 2],
}

/// The part of one exchange that is about one counter.
#[derive(Clone, Debug)]
pub(in crate::eventual) struct Draft {
    pub(in crate::eventual) life: u32,
    pub(in crate::eventual) counter: CounterId,
    pub(in crate::eventual) digest: u128,
    pub(in crate::eventual) layout: SlotLayout,
    pub(in crate::eventual) current: u64,
    pub(in crate::eventual) first: u64,
    pub(in crate::eventual) base: u64,
    pub(in crate::eventual) totals: SmallVec<[SlotTotal; 1]>,
    /// This node's totals when it was made, by slot.
    own: SmallVec<[(u64, i64); 2]>,
    /// This node's admissions that the region did not know then.
    pending: i64,
    /// Whether the base that was received counts, because this node does not know enough.
    is_fresh: bool,
}

// === impl Entry ===

impl Entry {
    /// Prepares an exchange with a region.
    pub(in crate::eventual) fn draft(
        &mut self,
        layout: SlotLayout,
        slot: u64,
        region: usize,
    ) -> Draft {
        let first = self.history.first();
        let unsent = self.own.iter().filter(|own| own.unsent & bit(region) != 0);
        let totals: SmallVec<[SlotTotal; 1]> = unsent.map(|own| own.total(first)).collect();
        let pending = self.pending_mut(region).map_or(0, |pending| {
            // From now on the region may know as little as is sent.
            *pending = (*pending).max(0);
            *pending
        });
        let epoch = layout.epoch_start(slot);
        let known = self.known.slot(slot);
        let is_fresh = known.is_none_or(|known| known + layout.span < slot);
        Draft {
            life: self.life,
            counter: self.counter(),
            digest: self.digest(),
            layout,
            current: slot,
            first: if is_fresh {
                epoch.saturating_sub(layout.span)
            } else {
                slot.saturating_sub(layout.span)
            },
            base: if totals.is_empty() {
                0
            } else {
                self.history.base(&self.quota, layout, epoch)
            },
            totals,
            own: self.own_sums().collect(),
            pending,
            is_fresh,
        }
    }

    /// Notes that a region has the totals of a draft.
    pub(in crate::eventual) fn acknowledge(&mut self, draft: &Draft, region: usize) {
        let first = self.history.first();
        self.own.update(|own| {
            if bit(region) != LAST_BIT && draft.totals.contains(&own.total(first)) {
                own.unsent &= !bit(region);
            }
        });
        if let Some(pending) = self.pending_mut(region) {
            *pending = pending.saturating_sub(draft.pending);
        }
    }

    /// Takes over the sums of all nodes, which answer a draft.
    pub(in crate::eventual) fn receive(&mut self, draft: &Draft, reply: &CounterSums) {
        let layout = draft.layout;
        if self.is_lost(layout, draft.current, reply) {
            let rare = self.rare_mut();
            rare.lost_until = rare.lost_until.max(draft.current);
            // As far as it is known here, the store gets it back.
            self.own.update(|own| own.unsent |= bit(0));
        }
        if draft.is_fresh {
            self.begin_from(draft, reply);
        }
        for slot in draft.first.max(self.history.first())..=draft.current {
            let sum = self.corrected(draft, reply, slot);
            self.history.set(slot, sum);
        }
        self.known = Known {
            slot: last_bits(draft.current).max(1),
            created: [reply.current, reply.before].map(created),
        };
    }

    /// The sum of a slot: what was received, with what this node did since it sent its totals. Of what the
    /// store lost, what this node knew stays.
    fn corrected(&self, draft: &Draft, reply: &CounterSums, slot: u64) -> i64 {
        let of = |sums: &[(u64, i64)]| {
            let found = sums.iter().find(|(at, _)| *at == slot);
            found.map_or(0, |(_, sum)| *sum)
        };
        let first = self.history.first();
        let own = self.own.iter().find(|own| own.slot(first) == slot);
        let since = own.map_or(0, |own| own.net() - of(&draft.own));
        let sum = of(&reply.sums).saturating_add(since);
        let lost_until = self.rare.as_ref().map_or(0, |rare| rare.lost_until);
        if slot <= lost_until {
            sum.max(self.history.sum(slot))
        } else {
            sum
        }
    }

    /// Whether the store has lost what it had when it was last read.
    fn is_lost(&self, layout: SlotLayout, current: u64, reply: &CounterSums) -> bool {
        let Some(slot) = self.known.slot(current) else {
            return false;
        };
        let [current_then, before_then] = self.known.created;
        let is_other = |then: u32, now: EpochInfo| then != 0 && then != created(now);
        match layout
            .epoch_start(current)
            .checked_sub(layout.epoch_start(slot))
        {
            Some(0) => is_other(current_then, reply.current) || is_other(before_then, reply.before),
            Some(slots) if slots == layout.span => is_other(current_then, reply.before),
            _ => false,
        }
    }

    /// Continues from what the store says was in use, or from what this node remembers if that is more.
    fn begin_from(&mut self, draft: &Draft, reply: &CounterSums) {
        let layout = draft.layout;
        let epoch = layout.epoch_start(draft.current);
        let base = if reply.before.created == 0 {
            Base {
                slot: epoch,
                used: reply.current.base,
            }
        } else {
            Base {
                slot: epoch.saturating_sub(layout.span),
                used: reply.before.base,
            }
        };
        let mut stored = History::from_base(&self.quota, layout, base);
        for &(slot, sum) in reply.sums.iter().filter(|(at, _)| *at <= draft.current) {
            stored.set(slot, sum);
        }
        stored.advance(&self.quota, layout, draft.current, None);
        self.history
            .advance(&self.quota, layout, draft.current, None);
        self.history.merge_base(&stored);
    }
}

// === impl Known ===

impl Known {
    /// The slot that was current then, if something was received: the one next to `now` with the same last bits.
    pub(super) fn slot(&self, now: u64) -> Option<u64> {
        let after = self.slot.wrapping_sub(last_bits(now)).cast_signed();
        (self.slot != 0).then(|| now.saturating_add_signed(after.into()))
    }

    /// Whether nothing was received yet.
    pub(super) const fn is_unknown(&self) -> bool {
        self.slot == 0
    }
}

// === impl Draft ===

impl Draft {
    /// The message to send.
    pub(in crate::eventual) fn update(&self) -> CounterUpdate<'_> {
        CounterUpdate {
            counter: self.counter,
            slot_nanos: self.layout.nanos,
            epoch_slots: self.layout.span,
            current: self.current,
            first: self.first,
            totals: &self.totals,
            base: self.base,
        }
    }
}

/// The last bits of when an epoch's first total was written.
fn created(epoch: EpochInfo) -> u32 {
    last_bits(epoch.created)
}

fn last_bits(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
