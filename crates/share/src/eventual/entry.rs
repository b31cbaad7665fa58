//! The state of one counter on this node.

mod exchange;
mod own;

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_algorithms::{Quota, Time};
use tidegate_store::CounterId;

pub(super) use self::exchange::Draft;
use self::exchange::Known;
use self::own::{OwnSlot, RegionSet, bit};
use super::history::{Alone, Base, History};
use super::slots::SlotLayout;
use crate::capacity::capacity;

/// One counter.
#[derive(Debug)]
pub(super) struct Entry {
    /// The digest by which this node finds it, and its name among all nodes; in words of 64 bits, so that
    /// an entry needs no padding.
    ids: [[u64; 2]; 2],
    pub(super) quota: Arc<Quota>,
    /// The admissions of all nodes, as far as this one knows.
    pub(super) history: History,
    /// This node's admissions in slots that a region may not know, and in the last two.
    own: SmallVec<[OwnSlot; 2]>,
    /// This node's admissions that its own region may not know, less its refunds.
    pending: i64,
    /// The same for each other region.
    pending_elsewhere: Box<[i64]>,
    /// The last reply.
    known: Known,
    rare: Option<Box<Rare>>,
    /// Another number for each life of the counter. A reply to another life says nothing about this one.
    pub(super) life: u32,
    /// When it was last asked about, in seconds of the node's own clock.
    pub(super) used_at: u32,
    /// A bit for each region whose exchange it waits for.
    queued: u64,
}

/// Fields that most counters do not need.
#[derive(Debug, Default)]
struct Rare {
    /// When the node began to decide by its share, if it does.
    alone_since: Option<Time>,
    /// Since when the counter is over its limit, if that is tolerated for a while only.
    over_since: Option<Time>,
    /// The last slot of which the store lost sums.
    lost_until: u64,
    /// Whether all nodes are to forget what is received next, too.
    is_to_reset: bool,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(digest: u128, counter: CounterId, quota: Arc<Quota>, regions: usize) -> Self {
        Self {
            ids: [digest, counter.0].map(halves),
            quota,
            history: History::default(),
            own: SmallVec::new(),
            pending: 0,
            pending_elsewhere: vec![0; regions.saturating_sub(1)].into(),
            known: Known::default(),
            rare: None,
            life: 0,
            used_at: 0,
            queued: 0,
        }
    }

    pub(super) fn digest(&self) -> u128 {
        whole(self.ids[0])
    }

    fn counter(&self) -> CounterId {
        CounterId(whole(self.ids[1]))
    }

    const fn regions(&self) -> usize {
        1 + self.pending_elsewhere.len()
    }

    /// All regions.
    fn everywhere(&self) -> RegionSet {
        (0..self.regions()).map(bit).fold(0, |all, bit| all | bit)
    }

    /// Notes that the counter waits for an exchange with a region. Returns whether it did not before.
    pub(super) fn enqueue(&mut self, region: usize) -> bool {
        let was_queued = self.queued & (1 << region) != 0;
        self.queued |= 1 << region;
        !was_queued
    }

    /// Notes that the counter no longer waits for an exchange with a region.
    pub(super) fn dequeue(&mut self, region: usize) {
        self.queued &= !(1 << region);
    }

    /// Continues with another quota of the same algorithm and window. A bucket whose time is cut into other slots by
    /// it keeps its level.
    pub(super) fn change_quota(&mut self, quota: Arc<Quota>, life: u32, now: Time) {
        let (old, new) = (SlotLayout::of(&self.quota), SlotLayout::of(&quota));
        if old != new {
            let used = self.history.base(&self.quota, old, old.at(now) + 1);
            let base = Base {
                slot: new.at(now),
                used: used.min(capacity(&quota)),
            };
            self.begin_anew(&quota, new, base, life);
        }
        self.quota = quota;
    }

    /// Dates what is not known everywhere as of now, and forgets the rest, because the clock was set.
    pub(super) fn redate(&mut self, layout: SlotLayout, slot: u64, life: u32) {
        let quota = Arc::clone(&self.quota);
        let base = Base { slot, used: 0 };
        self.begin_anew(&quota, layout, base, life);
    }

    /// Continues from a base, of which what is not known everywhere is sent once more.
    fn begin_anew(&mut self, quota: &Quota, layout: SlotLayout, base: Base, life: u32) {
        let pending = self.pending();
        let used = base.used.saturating_sub(pending);
        self.history = History::from_base(quota, layout, Base { used, ..base });
        self.own.clear();
        self.known = Known::default();
        self.rare = None;
        self.life = life;
        self.pending = 0;
        self.pending_elsewhere.fill(0);
        if pending > 0 {
            self.spend(base.slot, pending);
        }
    }

    /// Whether the clock was set back so far that what is remembered lies in the future.
    pub(super) const fn is_ahead(&self, layout: SlotLayout, slot: u64) -> bool {
        slot.saturating_add(layout.span) < self.history.first()
    }

    /// Whether nothing was received about it yet.
    pub(super) const fn is_unknown(&self) -> bool {
        self.known.slot == 0
    }

    /// Notes that this node admitted `cost`.
    pub(super) fn spend(&mut self, slot: u64, cost: u64) {
        let signed = i64::try_from(cost).unwrap_or(i64::MAX);
        // A clock that was set back a little finds its slot forgotten.
        let slot = slot.max(self.history.first());
        self.change(slot, signed);
        let unsent = self.everywhere();
        let own = self.own_slot(slot);
        own.admitted = own.admitted.saturating_add(cost);
        own.unsent = unsent;
    }

    /// Notes that `cost` is refunded that this node admitted in a slot. If that is long ago, its last total
    /// that has as much is reduced instead.
    pub(super) fn put_back(&mut self, slot: u64, cost: u64) {
        let first = self.history.first();
        let has_it = |own: &&OwnSlot| own.net() >= i64::try_from(cost).unwrap_or(i64::MAX);
        let mut able = self.own.iter().filter(has_it);
        let exact = able.find(|own| own.slot(first) == slot);
        let found = exact.or_else(|| self.own.iter().rev().find(has_it));
        if let Some(slot) = found.map(|own| own.slot(first)) {
            self.refund(slot, cost);
        }
    }

    /// Notes that `cost` is refunded in a slot, whoever admitted it.
    pub(super) fn refund(&mut self, slot: u64, cost: u64) {
        let unsent = self.everywhere();
        let slot = slot.max(self.history.first());
        // What does not fit the field stays charged.
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        let own = self.own_slot(slot);
        let cost = cost.min(u32::MAX - own.refunded);
        own.refunded += cost;
        own.unsent = unsent;
        self.change(slot, -i64::from(cost));
    }

    /// Changes what is used in a slot.
    fn change(&mut self, slot: u64, by: i64) {
        self.history.add(slot, by);
        let elsewhere = self.pending_elsewhere.iter_mut();
        for pending in elsewhere.chain([&mut self.pending]) {
            *pending = pending.saturating_add(by);
        }
    }

    fn own_slot(&mut self, slot: u64) -> &mut OwnSlot {
        let first = self.history.first();
        let place = self.own.iter().position(|own| own.slot(first) == slot);
        let place = place.unwrap_or_else(|| {
            self.own.push(OwnSlot::new(slot));
            self.own.len() - 1
        });
        &mut self.own[place]
    }

    /// This node's admissions that some region may not know.
    pub(super) fn pending(&self) -> u64 {
        let elsewhere = self.pending_elsewhere.iter().copied();
        let most = elsewhere.fold(self.pending, i64::max);
        u64::try_from(most).unwrap_or(0)
    }

    /// Whether a region may not know all totals of this node.
    pub(super) fn is_unsent(&self, region: usize) -> bool {
        self.own.iter().any(|own| own.unsent & bit(region) != 0)
    }

    /// Whether every region knows all totals of this node.
    pub(super) fn is_known_everywhere(&self) -> bool {
        self.own.iter().all(|own| own.unsent == 0)
    }

    fn pending_mut(&mut self, region: usize) -> Option<&mut i64> {
        match region.checked_sub(1) {
            None => Some(&mut self.pending),
            Some(elsewhere) => self.pending_elsewhere.get_mut(elsewhere),
        }
    }

    /// Forgets what no longer matters at a slot.
    pub(super) fn advance(&mut self, layout: SlotLayout, slot: u64, members: u64) {
        let first = slot.saturating_sub(layout.span);
        let then = self.history.first();
        let own: SmallVec<[(u64, i64); 18]> = match self.alone_since() {
            Some(_) => self.own_sums().collect(),
            None => SmallVec::new(),
        };
        let alone = self.alone_since().map(|since| Alone {
            since: layout.at(since),
            members,
            own: &own,
        });
        self.history.advance(&self.quota, layout, slot, alone);
        let matters = |own: &OwnSlot| {
            let at = own.slot(then);
            at >= first && (own.unsent != 0 || at + 1 >= slot)
        };
        if !self.own.iter().all(matters) {
            self.own.retain(|own| matters(own));
            self.own.shrink_to_fit();
        }
        let is_over = |rare: &Rare| rare.is_over(first);
        if self.rare.as_deref().is_some_and(is_over) {
            self.rare = None;
        }
    }

    /// This node's admissions, by slot.
    fn own_sums(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        let first = self.history.first();
        self.own.iter().map(move |own| (own.slot(first), own.net()))
    }

    /// Makes all nodes forget what is used: refunds, slot by slot, what is known now, and what is received
    /// next.
    pub(super) fn reset(&mut self, layout: SlotLayout, now: Time) {
        self.refund_all(layout, now);
        self.rare_mut().is_to_reset = true;
    }

    fn refund_all(&mut self, layout: SlotLayout, now: Time) {
        let slot = layout.at(now);
        let carried = self.history.base(&self.quota, layout, self.history.first());
        let sums: SmallVec<[(u64, i64); 18]> = self.history.sums().collect();
        for (slot, sum) in sums {
            if let Ok(cost @ 1..) = u64::try_from(sum) {
                self.refund(slot, cost);
            }
        }
        if carried > 0 {
            self.refund(slot, carried);
        }
        self.history.clear();
    }

    /// Completes a reset with what was received since. Returns whether there was one.
    pub(super) fn complete_reset(&mut self, layout: SlotLayout, now: Time) -> bool {
        let rare = self.rare.as_mut();
        let is_reset = rare.is_some_and(|rare| std::mem::take(&mut rare.is_to_reset));
        if is_reset {
            self.refund_all(layout, now);
        }
        is_reset
    }

    /// When the node began to decide by its share, if it does.
    pub(super) fn alone_since(&self) -> Option<Time> {
        self.rare.as_ref()?.alone_since
    }

    /// Decides by the node's share from then on, or no longer.
    pub(super) fn set_alone_since(&mut self, since: Option<Time>) {
        if since != self.alone_since() {
            self.rare_mut().alone_since = since;
        }
    }

    pub(super) fn over_since(&self) -> Option<Time> {
        self.rare.as_ref()?.over_since
    }

    pub(super) fn set_over_since(&mut self, over_since: Option<Time>) {
        if over_since != self.over_since() {
            self.rare_mut().over_since = over_since;
        }
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Bytes that it takes, the table's part included.
    pub(super) fn bytes(&self) -> usize {
        let own = if self.own.spilled() {
            self.own.capacity() * size_of::<OwnSlot>()
        } else {
            0
        };
        let rare = self.rare.as_ref().map_or(0, |_| size_of::<Rare>());
        Self::LEAST_BYTES + own + rare + self.history.heap_bytes()
    }

    /// Bytes of an entry without anything on the heap: with what the allocator adds, at most 16, with its
    /// place in a table that is half full, and in the queue.
    pub(super) const LEAST_BYTES: usize =
        size_of::<Self>() + 16 + 2 * (size_of::<usize>() + 1) + 16;
}

// === impl Rare ===

impl Rare {
    /// Whether nothing here matters from a slot on.
    const fn is_over(&self, first: u64) -> bool {
        self.alone_since.is_none()
            && self.over_since.is_none()
            && self.lost_until < first
            && !self.is_to_reset
    }
}

fn halves(id: u128) -> [u64; 2] {
    let low = u128::from(u64::MAX);
    [id >> 64, id & low].map(|half| u64::try_from(half).unwrap_or_default())
}

fn whole([high, low]: [u64; 2]) -> u128 {
    (u128::from(high) << 64) | u128::from(low)
}
