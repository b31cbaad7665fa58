//! The state of one counter on this node.

mod exchange;
mod own;
mod rare;
mod refund;

use std::sync::Arc;

use smallvec::SmallVec;
use tidegate_algorithms::{Quota, SoftPeriod, Time};
use tidegate_store::CounterId;

pub(super) use self::exchange::Draft;
use self::exchange::Known;
use self::own::{OwnSlot, RegionSet, bit};
use self::rare::Rare;
use super::history::{Alone, Base, History};
use super::packed::PackedList;
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
    own: PackedList<OwnSlot, 4>,
    /// This node's admissions that its own region may not know, less its refunds.
    pending: i64,
    /// The same for the other regions, if there are any.
    elsewhere: Option<Box<Elsewhere>>,
    /// The last reply.
    known: Known,
    rare: Option<Box<Rare>>,
    /// Another number for each life of the counter. A reply to another life says nothing about this one.
    pub(super) life: u32,
    /// When it was last asked about, in seconds of the node's own clock.
    pub(super) used_at: u32,
    /// Whether it waits for the exchange with its own region.
    is_queued: bool,
}

/// What a counter has to send to other regions.
#[derive(Debug)]
struct Elsewhere {
    /// This node's admissions that each of them may not know, less its refunds.
    pending: SmallVec<[i64; 2]>,
    /// A bit for each of them whose exchange the counter waits for.
    queued: u64,
}

/// A place in the queue for the exchange with one region.
const QUEUE_BYTES: usize = size_of::<u64>();

// === impl Entry ===

impl Entry {
    pub(super) fn new(digest: u128, counter: CounterId, quota: Arc<Quota>, regions: usize) -> Self {
        let elsewhere = |others| Elsewhere {
            pending: SmallVec::from_elem(0, others),
            queued: 0,
        };
        let others = regions.checked_sub(1).filter(|others| *others > 0);
        Self {
            ids: [digest, counter.0].map(halves),
            quota,
            history: History::default(),
            own: PackedList::default(),
            pending: 0,
            elsewhere: others.map(|others| Box::new(elsewhere(others))),
            known: Known::default(),
            rare: None,
            life: 0,
            used_at: 0,
            is_queued: false,
        }
    }

    pub(super) fn digest(&self) -> u128 {
        whole(self.ids[0])
    }

    fn counter(&self) -> CounterId {
        CounterId(whole(self.ids[1]))
    }

    /// The admissions that each other region may not know.
    fn pending_elsewhere(&self) -> &[i64] {
        let elsewhere = self.elsewhere.as_ref();
        elsewhere.map_or(&[], |elsewhere| &elsewhere.pending)
    }

    fn regions(&self) -> usize {
        1 + self.pending_elsewhere().len()
    }

    /// All regions.
    fn everywhere(&self) -> RegionSet {
        (0..self.regions()).map(bit).fold(0, |all, bit| all | bit)
    }

    /// Whether the counter waits for an exchange with a region.
    pub(super) fn is_queued(&self, region: usize) -> bool {
        match &self.elsewhere {
            Some(elsewhere) if region > 0 => elsewhere.queued & (1 << region) != 0,
            _ => self.is_queued,
        }
    }

    /// Notes whether the counter waits for an exchange with a region.
    pub(super) fn set_queued(&mut self, region: usize, is_queued: bool) {
        match &mut self.elsewhere {
            Some(elsewhere) if region > 0 => {
                elsewhere.queued &= !(1 << region);
                elsewhere.queued |= u64::from(is_queued) << region;
            }
            _ => self.is_queued = is_queued,
        }
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
        self.own = PackedList::default();
        self.known = Known::default();
        self.rare = None;
        self.life = life;
        self.pending = 0;
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.pending.fill(0);
        }
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
        self.known.is_unknown()
    }

    /// Notes that this node admitted `cost`.
    pub(super) fn spend(&mut self, slot: u64, cost: u64) {
        let signed = i64::try_from(cost).unwrap_or(i64::MAX);
        // A clock that was set back a little finds its slot forgotten.
        let slot = slot.max(self.history.first());
        self.change(slot, signed);
        let unsent = self.everywhere();
        let (place, mut own) = self.own_slot(slot);
        own.admitted = own.admitted.saturating_add(cost);
        own.unsent = unsent;
        self.own.set(place, own);
    }

    /// Changes what is used in a slot.
    fn change(&mut self, slot: u64, by: i64) {
        self.history.add(slot, by);
        let elsewhere = self.elsewhere.iter_mut();
        let elsewhere = elsewhere.flat_map(|elsewhere| &mut elsewhere.pending);
        for pending in elsewhere.chain([&mut self.pending]) {
            *pending = pending.saturating_add(by);
        }
    }

    /// This node's total in a slot, and its place among all.
    fn own_slot(&self, slot: u64) -> (usize, OwnSlot) {
        let first = self.history.first();
        let mut all = self.own.iter().enumerate();
        let found = all.find(|(_, own)| own.slot(first) == slot);
        found.unwrap_or_else(|| (self.own.len(), OwnSlot::new(slot)))
    }

    /// This node's admissions that some region may not know.
    pub(super) fn pending(&self) -> u64 {
        let elsewhere = self.pending_elsewhere().iter().copied();
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
            Some(other) => self.elsewhere.as_mut()?.pending.get_mut(other),
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
        if !self.own.iter().all(|own| matters(&own)) {
            self.own.keep(matters);
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
        let carried = self.history.base(&self.quota, layout, self.history.first());
        let used = self
            .history
            .sums()
            .map(|(_, sum)| sum.max(0).unsigned_abs());
        let all = used.fold(carried, u64::saturating_add);
        self.refund_last(layout.at(now), all);
        self.history.clear();
    }

    /// Whether what is received next is to be forgotten too.
    pub(super) fn is_to_reset(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.is_to_reset)
    }

    /// Completes a reset with what was received since.
    pub(super) fn complete_reset(&mut self, layout: SlotLayout, now: Time) {
        self.rare_mut().is_to_reset = false;
        self.refund_all(layout, now);
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

    pub(super) fn soft_period(&self) -> Option<SoftPeriod> {
        self.rare.as_ref()?.soft_period
    }

    pub(super) fn set_soft_period(&mut self, period: Option<SoftPeriod>) {
        if period != self.soft_period() {
            self.rare_mut().soft_period = period;
        }
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Bytes that it takes, the table's part included.
    pub(super) fn bytes(&self) -> usize {
        let rare = self.rare.as_ref().map_or(0, |_| size_of::<Rare>());
        let elsewhere = self.elsewhere.as_ref().map_or(0, |elsewhere| {
            let queues = elsewhere.pending.len() * QUEUE_BYTES;
            let pending = if elsewhere.pending.spilled() {
                elsewhere.pending.capacity() * size_of::<i64>()
            } else {
                0
            };
            allocated(size_of::<Elsewhere>()) + allocated(pending) + queues
        });
        let own = allocated(self.own.heap_bytes());
        let history = allocated(self.history.heap_bytes());
        Self::LEAST_BYTES + own + allocated(rare) + elsewhere + history
    }

    /// Bytes of an entry without anything on the heap, with its place in a table that is half full, and in the
    /// queue.
    pub(super) const LEAST_BYTES: usize =
        allocated(size_of::<Self>()) + 2 * (size_of::<usize>() + 1) + QUEUE_BYTES;
}

/// Bytes that the allocator of the GNU C library takes for so many.
const fn allocated(bytes: usize) -> usize {
    if bytes == 0 {
        0
    } else {
        (bytes + size_of::<usize>()).next_multiple_of(16)
    }
}

fn halves(id: u128) -> [u64; 2] {
    let low = u128::from(u64::MAX);
    [id >> 64, id & low].map(|half| u64::try_from(half).unwrap_or_default())
}

fn whole([high, low]: [u64; 2]) -> u128 {
    (u128::from(high) << 64) | u128::from(low)
}
