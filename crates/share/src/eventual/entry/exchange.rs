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
    /// The slot that was current then; 0 if nothing was received yet.
    pub(super) slot: u64,
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
        let is_fresh = self.known.slot + layout.span < slot;
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
        for total in &draft.totals {
            let own = self.own.iter_mut().find(|own| own.total(first) == *total);
            if let Some(own) = own
                && bit(region) != LAST_BIT
            {
                own.unsent &= !bit(region);
            }
        }
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
            self.own.iter_mut().for_each(|own| own.unsent |= bit(0));
        }
        if draft.is_fresh {
            self.begin_from(draft, reply);
        }
        let known = self.history.sums().map(|(slot, _)| slot);
        let received = reply.sums.iter().map(|(slot, _)| *slot);
        let slots: SmallVec<[u64; 36]> = known.chain(received).collect();
        for slot in slots {
            if (draft.first..=draft.current).contains(&slot) {
                let sum = self.corrected(draft, reply, slot);
                self.history.set(slot, sum);
            }
        }
        self.known = Known {
            slot: draft.current,
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
        let Known {
            slot,
            created: then,
        } = self.known;
        let [current_then, before_then] = then;
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
        for &(slot, sum) in &reply.sums {
            stored.set(slot, sum);
        }
        stored.advance(&self.quota, layout, draft.current, None);
        self.history
            .advance(&self.quota, layout, draft.current, None);
        self.history.merge_base(&stored);
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
    u32::try_from(epoch.created & u64::from(u32::MAX)).unwrap_or_default()
}
