//! One request: decided by what is known of all nodes while the budget lasts, by the node's share when it
//! is cut off.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Inquiry, Outcome, Quota, Retry, Standing, Time};
use tidegate_store::{Charge, Charging, Clock, CounterKey, OnFull, StoreError};

use super::budget::budget;
use super::entry::Entry;
use super::history::History;
use super::name::{counter_id, shape};
use super::slots::SlotLayout;
use super::table::{Part, Room};
use super::usage::{Usage, most};
use super::{Eventual, seconds};
use crate::capacity::capacity;
use crate::memory::{FromMemory, Took};

/// One request to one counter.
struct Ask<'a> {
    charge: &'a Charge<'a>,
    charging: Charging,
    layout: SlotLayout,
    now: Time,
    slot: u64,
}

// === impl Eventual ===

impl<C: Clock> FromMemory for Eventual<C> {
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError> {
        if !self.config.suits(charge.quota) {
            return Ok(None);
        }
        let layout = SlotLayout::of(charge.quota);
        let digest = self.digest(charge.key, charge.quota);
        let mut part = self.table.part(digest);
        // Under the lock, so that charges are in the order of their times, and before the counter is charged: a
        // window that begins in between gets nothing for free.
        let now = self.clock.now();
        let ask = Ask {
            charge,
            charging,
            layout,
            now,
            slot: layout.at(now),
        };
        let decision = if self.enter(&mut part, digest, charge.key, charge.quota) {
            let decision = part.update(digest, |entry| self.decide(entry, &ask));
            part.queue(digest);
            decision.flatten()
        } else {
            None
        };
        Ok(Some(match decision {
            Some(decision) => Took::new(decision, Some(now)),
            None => self.take_untracked(&ask),
        }))
    }

    fn put_back(&self, charge: &Charge<'_>, took: &Took) {
        let Some(charged) = took.charged else {
            return;
        };
        if took.is_untracked {
            return self.refund_share(charge.key, charge.quota, charge.cost, charged);
        }
        let digest = self.digest(charge.key, charge.quota);
        let mut part = self.table.part(digest);
        let was_alone = part.update(digest, |entry| {
            entry.put_back(SlotLayout::of(charge.quota).at(charged), charge.cost);
            entry.alone_since().is_some_and(|since| since <= charged)
        });
        part.queue(digest);
        if was_alone == Some(true) {
            self.refund_share(charge.key, charge.quota, charge.cost, charged);
        }
    }

    fn correct(&self, charge: &Charge<'_>, took: &Took, decision: &mut Decision) {
        let untouched = if took.is_untracked {
            self.peek_share(charge.key, charge.quota)
        } else {
            self.peek(charge.key, charge.quota)
        };
        decision.remaining = untouched.remaining.min(decision.limit);
        decision.reset_after = untouched.reset_after;
    }
}

impl<C: Clock> Eventual<C> {
    /// What is left of a limit as this node sees it; denied if a cost of 1 does not fit.
    pub(crate) fn peek(&self, key: CounterKey<'_>, quota: &Quota) -> Decision {
        let (layout, now) = (SlotLayout::of(quota), self.clock.now());
        let digest = self.digest(key, quota);
        let part = self.table.part(digest);
        let entry = part.get(digest);
        let entry = entry.filter(|entry| SlotLayout::of(&entry.quota) == layout);
        let usage = match entry {
            Some(entry) => entry.history.usage(quota, layout, now),
            None => History::default().usage(quota, layout, now),
        };
        let decide = |cost| usage.decide(quota, cost, 0, now);
        if quota.is_postpaid() {
            return decide(0);
        }
        decide(0).unless_full(&decide(1))
    }

    /// Forgets what is used of a limit, here at once and on the other nodes with the next exchange. Returns
    /// whether something was used here.
    pub(crate) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> bool {
        let (layout, now) = (SlotLayout::of(quota), self.clock.now());
        let digest = self.digest(key, quota);
        let mut part = self.table.part(digest);
        self.enter(&mut part, digest, key, quota);
        let was_used = part.update(digest, |entry| {
            entry.used_at = seconds(self.clock.own());
            self.advance(entry, layout, layout.at(now));
            let was_used = entry.history.sums().next().is_some();
            entry.reset(layout, now);
            self.close_share(entry, key);
            was_used
        });
        for region in 0..self.regions.len() {
            part.queue_for(digest, region);
        }
        self.hurry();
        was_used.unwrap_or(false)
    }

    /// The digest by which this node finds a counter.
    pub(super) fn digest(&self, key: CounterKey<'_>, quota: &Quota) -> u128 {
        // As it is secret, no caller finds a second one that differs from it by two shapes.
        self.digester.digest(key) ^ shape(quota)
    }

    /// Makes sure that a counter has an entry, with this quota. Returns whether it has.
    fn enter(&self, part: &mut Part, digest: u128, key: CounterKey<'_>, quota: &Quota) -> bool {
        match part.get(digest) {
            Some(entry) if *entry.quota == *quota => return true,
            Some(_) => {
                let (quota, life) = (part.quota(quota), self.next_life());
                let now = self.clock.now();
                part.update(digest, |entry| entry.change_quota(quota, life, now));
                return true;
            }
            None => {}
        }
        match part.make_room() {
            Room::Free => {}
            Room::Evicted => {
                self.tallies.evicted.fetch_add(1, Ordering::Relaxed);
            }
            Room::None => return false,
        }
        let quota = part.quota(quota);
        let mut entry = Entry::new(digest, counter_id(key, &quota), quota, self.regions.len());
        entry.life = self.next_life();
        part.insert(entry);
        true
    }

    /// `None` if there is no room to count by the node's share.
    fn decide(&self, entry: &mut Entry, ask: &Ask<'_>) -> Option<Decision> {
        entry.used_at = seconds(self.clock.own());
        self.advance(entry, ask.layout, ask.slot);
        if self.is_cut_off() {
            return self.decide_alone(entry, ask);
        }
        self.close_share(entry, ask.charge.key);
        let usage = entry.history.usage(ask.charge.quota, ask.layout, ask.now);
        let decision = judge(entry, &usage, ask);
        if ask.charge.cost == 0 {
            return Some(decision);
        }
        if ask.charge.quota.is_postpaid() {
            debit(entry, ask);
            return Some(decision);
        }
        if !decision.is_allowed() {
            note_denied(entry, ask, &decision);
            return Some(decision);
        }
        if usage.debt == 0 && self.may_spend(entry, ask, &decision) {
            entry.spend(ask.slot, ask.charge.cost);
            return Some(decision);
        }
        self.hurry();
        Some(Decision {
            outcome: wait_for(self.config.beat()),
            remaining: 0,
            ..decision
        })
    }

    /// Whether this node may admit so much that some region does not know. The first request since all
    /// regions knew everything always may, because one that costs more than the budget would never be
    /// admitted.
    fn may_spend(&self, entry: &Entry, ask: &Ask<'_>, decision: &Decision) -> bool {
        let Charge { quota, cost, .. } = *ask.charge;
        let pending = entry.pending();
        if pending == 0 {
            return true;
        }
        if entry.is_unknown() && self.tallies.evicted.load(Ordering::Relaxed) > 0 {
            // It may have been evicted just now, and have used up its budget before.
            return false;
        }
        let extra = match decision.outcome {
            Outcome::Allowed {
                standing: Standing::Over,
                ..
            } => quota.most_extra(),
            _ => 0,
        };
        let after = pending.saturating_add(cost);
        let left = decision
            .remaining
            .saturating_add(extra)
            .saturating_add(after);
        let most = capacity(quota).saturating_add(extra);
        let left = left.clamp(self.least_left(most), most);
        after <= budget(left, self.config.slack, self.members())
    }

    /// What counts as left of a limit at least. Between regions a budget lasts for a round trip, so that little
    /// would be used of what becomes free bit by bit if budgets shrank with it. The bound is that of the whole
    /// limit in any case.
    const fn least_left(&self, most: u64) -> u64 {
        if self.regions.len() > 1 { most / 4 } else { 0 }
    }

    /// Decides by this node's share, because some region cannot be reached.
    fn decide_alone(&self, entry: &mut Entry, ask: &Ask<'_>) -> Option<Decision> {
        let Charge {
            key, quota, cost, ..
        } = *ask.charge;
        self.tallies.alone.fetch_add(cost, Ordering::Relaxed);
        let part = self.share_of(quota);
        let part = part.as_ref().unwrap_or(quota);
        if entry.alone_since().is_none() {
            let usage = entry.history.usage(quota, ask.layout, ask.now);
            let left = usage.decide(quota, 0, 0, ask.now).remaining / u64::from(self.members());
            self.open_share(key, part, left);
            entry.set_alone_since(Some(ask.now));
        }
        let charge = Charge {
            quota: part,
            ..*ask.charge
        };
        let decision = self.shares.charge(&charge, ask.charging).ok()?;
        if quota.is_postpaid() {
            debit(entry, ask);
        } else if decision.is_allowed() {
            entry.spend(ask.slot, cost);
        }
        Some(decision)
    }

    /// Begins with the node's part of what was left when it was cut off, or with what is left of a share
    /// that was restored from an earlier process.
    fn open_share(&self, key: CounterKey<'_>, part: &Quota, left: u64) {
        // A window that the store cannot tell from others is not counted there at all.
        if let Ok(share) = self.shares.peek(key, part) {
            let used = share.remaining.saturating_sub(left.max(1));
            let _ = self.shares.force(key, part, used);
        }
    }

    /// Goes by all nodes' totals again.
    fn close_share(&self, entry: &mut Entry, key: CounterKey<'_>) {
        if entry.alone_since().is_some() {
            entry.set_alone_since(None);
            // Expires by itself at the latest.
            let _ = self.shares.reset(key, &entry.quota);
        }
    }

    /// Decides on a counter for which there is no room, as its rule says. A look takes no room.
    fn take_untracked(&self, ask: &Ask<'_>) -> Took {
        let Charge { quota, cost, .. } = *ask.charge;
        if cost > 0 {
            self.note_full(cost);
        }
        let unused = History::default().usage(quota, ask.layout, ask.now);
        let decision = unused.decide(quota, cost, 0, ask.now);
        let denied = Decision {
            outcome: wait_for(self.config.sync_interval),
            remaining: 0,
            ..decision
        };
        match ask.charge.on_full {
            OnFull::Shared => self
                .charge_share(ask)
                .map_or(denied.into(), |decision| Took {
                    is_untracked: true,
                    ..Took::new(decision, Some(ask.now))
                }),
            OnFull::Deny if cost > 0 => denied.into(),
            OnFull::Allow | OnFull::Deny | OnFull::Omit => decision.into(),
        }
    }

    /// Decides by this node's share alone, whose store has shared counters for callers without room.
    fn charge_share(&self, ask: &Ask<'_>) -> Result<Decision, StoreError> {
        let part = self.share_of(ask.charge.quota);
        let charge = Charge {
            quota: part.as_ref().unwrap_or(ask.charge.quota),
            ..*ask.charge
        };
        self.shares.charge(&charge, ask.charging)
    }

    /// This node's share of a limit, at least 1: a limit smaller than the number of nodes would
    /// otherwise admit nobody while the store is away.
    pub(super) fn share_of(&self, quota: &Quota) -> Option<Quota> {
        quota.part(1, u64::from(self.members()), 1)
    }
}

/// Decides with the allowance over a limit, and remembers the period of soft admissions.
fn judge(entry: &mut Entry, usage: &Usage, ask: &Ask<'_>) -> Decision {
    let Charge { quota, cost, .. } = *ask.charge;
    let headroom = ask.charge.headroom;
    let (period, inquiry) = (entry.soft_period(), Inquiry::of(cost));
    let decide = |extra| (usage.decide(quota, cost, extra, ask.now), ());
    let (decision, ()) = quota.judge(period, headroom, ask.now, inquiry, decide);
    if quota.tracks_soft_period() && inquiry == Inquiry::Request {
        entry.set_soft_period(quota.next_soft_period(period, &decision, ask.now));
    }
    decision
}

/// Charges what was used already, whatever the budget, up to the most debt. A log keeps the newest.
fn debit(entry: &mut Entry, ask: &Ask<'_>) {
    let Charge { quota, cost, .. } = *ask.charge;
    let used = if let Algorithm::SlidingLog { .. } = quota.algorithm() {
        u64::try_from(entry.history.sum(ask.slot)).unwrap_or(0)
    } else {
        let usage = entry.history.usage(quota, ask.layout, ask.now);
        usage.used(quota, ask.now)
    };
    let charged = cost.min(most(quota).saturating_sub(used));
    if charged > 0 {
        entry.spend(ask.slot, charged);
    }
}

/// Counts a request that is denied, where the limit counts those.
fn note_denied(entry: &mut Entry, ask: &Ask<'_>, decision: &Decision) {
    let counted = match ask.charge.quota.algorithm() {
        Algorithm::SlidingLog { log_refused: true } => ask.charge.cost,
        Algorithm::FixedWindow if ask.charging == Charging::EveryMatch => decision.remaining,
        _ => 0,
    };
    if counted > 0 {
        entry.spend(ask.slot, counted);
    }
}

const fn wait_for(wait: Duration) -> Outcome {
    Outcome::Denied {
        retry: Retry::After(wait),
    }
}
