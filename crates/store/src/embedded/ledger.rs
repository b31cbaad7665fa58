//! Opening the held counters of a request and writing them back.

use tidegate_algorithms::sliding_log::{Entry, Log, LogMut, SlidingLog};
use tidegate_algorithms::sub_windows::{Counts, SubWindows};
use tidegate_algorithms::{Meter, Quota, Time, leaky_bucket, token_bucket};

use super::account::{Account, Memory};
use super::arena::{Block, Handle};
use super::block_counts::BlockCounts;
use super::block_log::BlockLog;
use super::claim::{Claim, Hold};
use super::core::Core;
use super::state::{EXPIRES, State, WIDE_WORDS, fits_narrow, put_soft_period, soft_period};
use super::sync::Ordering;
use super::table::LockedSet;
use super::tag::Form;

/// Entries a new log has room for: a caller seen a few times costs one cache line.
const FIRST_ENTRIES: u64 = 8;

// === impl Core ===

impl Core {
    /// Reads the counter of a claim, with room for its cost. A look is told that there is no room where a charge of 1
    /// would be, if callers without room are being counted.
    pub(super) fn open<'a>(&'a self, claim: &Claim<'a>, hold: &Hold<'_>) -> Account<'a> {
        let is_look = claim.cost == 0;
        let cost = if is_look && self.was_full_at(hold.now) {
            1
        } else {
            claim.cost
        };
        if let Some(account) = self.open_for(claim, hold, cost) {
            return account;
        }
        let is_absent = claim.place.is_none();
        if is_look && is_absent && (cost == 0 || self.has_room(claim, hold)) {
            return Account::new(claim.quota, Memory::Unseen, None);
        }
        if !is_look {
            self.no_room_at.store(hold.now.nanos(), Ordering::Relaxed);
        }
        let until = self.room_at(&hold.locks, claim, hold.now);
        Account::new(claim.quota, Memory::NoRoom { until }, None)
    }

    /// Reads the counter of a claim, if it is there and has room for `cost`.
    pub(super) fn open_for<'a>(
        &'a self,
        claim: &Claim<'a>,
        hold: &Hold<'_>,
        cost: u64,
    ) -> Option<Account<'a>> {
        let (at, quota, now) = (claim.place?, claim.quota, hold.now);
        let set = hold.locks.set(at.held);
        let memory = match quota.meter() {
            Meter::SlidingLog(meter) => self.open_log(set, at.slot, meter, cost, now),
            Meter::SubWindows(meter) => self.open_counts(set, at.slot, meter, quota, now),
            _ => self.open_fixed(set, at.slot, claim, now),
        };
        let soft_period = match set.tag(at.slot).form() {
            Form::Boxed => soft_period(&self.block(set.state(at.slot))),
            Form::Narrow => None,
        };
        Some(Account::new(quota, memory?, soft_period))
    }

    /// Whether a charge to an absent counter would find a slot and a block.
    #[cold]
    fn has_room(&self, claim: &Claim<'_>, hold: &Hold<'_>) -> bool {
        let has_slot = self.is_last_resort()
            || self.can_grow(claim.home.primary.shard)
            || self.finds_room(&hold.locks, &claim.home, hold.now);
        let words = match claim.quota.meter() {
            Meter::SlidingLog(meter) => BlockLog::words(first_entries(meter, 1)),
            Meter::SubWindows(meter) => {
                let (len, width) = counts_size(meter, claim.quota);
                BlockCounts::words(len, width)
            }
            _ if fits_narrow(claim.quota, claim.layout) => return has_slot,
            _ => WIDE_WORDS,
        };
        // Whether a block can be had shows only in the search for one, which may evict.
        let block = has_slot.then(|| self.allocate(words, hold.now)).flatten();
        block.map(|handle| self.arena().free(handle)).is_some()
    }

    /// Writes what the request changed, or gives the slot of a counter back that has nothing to
    /// say.
    pub(super) fn close(&self, account: &Account<'_>, claim: &Claim<'_>, hold: &Hold<'_>) {
        let Some(at) = claim.place else { return };
        let set = hold.locks.set(at.held);
        if claim.is_new && !account.is_changed() {
            self.vacate(set, at.slot);
            return;
        }
        if account.is_changed() {
            self.write(set, at.slot, account, claim);
        }
        if account.is_requested {
            let (tag, pass) = (set.tag(at.slot), self.marking_pass(hold.now));
            let tag = if claim.is_new {
                tag.marked_once(pass)
            } else {
                tag.marked_again(pass)
            };
            set.put_tag(at.slot, tag);
        }
    }

    fn open_fixed<'a>(
        &'a self,
        set: &LockedSet<'_>,
        slot: usize,
        claim: &Claim<'_>,
        now: Time,
    ) -> Option<Memory<'a>> {
        let (tag, word) = (set.tag(slot), set.state(slot));
        if tag.form() == Form::Boxed {
            let block = self.block(word);
            let state = State::read_wide(&block, claim.layout.shape)?;
            return Some(Memory::Fixed(state));
        }
        let state = if claim.is_new {
            State::unseen(claim.layout.shape)?
        } else {
            State::from_narrow(word, claim.layout)?
        };
        // Shared counters have no blocks; a bucket that is too fine for a word is rounded up there.
        if !self.is_last_resort() && !fits_narrow(claim.quota, claim.layout) {
            let expires_at = self.expires_at(tag, word);
            let block = self.box_slot(set, slot, WIDE_WORDS, now)?;
            block.put(EXPIRES, expires_at.nanos());
            state.write_wide(&block);
        }
        Some(Memory::Fixed(state))
    }

    fn open_log<'a>(
        &'a self,
        set: &LockedSet<'_>,
        slot: usize,
        meter: &SlidingLog,
        cost: u64,
        now: Time,
    ) -> Option<Memory<'a>> {
        let cost = cost.min(meter.capacity());
        let block = if set.tag(slot).form() == Form::Boxed {
            self.block(set.state(slot))
        } else {
            self.box_slot(set, slot, BlockLog::words(first_entries(meter, cost)), now)?
        };
        let mut log = BlockLog::new(block);
        let expired = meter.expired(&log, now);
        log.drop_oldest(expired);
        let needed = log.len().saturating_add(cost).min(meter.capacity());
        if needed > log.room() {
            log = self.widen_log(set, slot, &log, needed, meter, now)?;
        }
        Some(Memory::Log(log))
    }

    fn widen_log<'a>(
        &'a self,
        set: &LockedSet<'_>,
        slot: usize,
        log: &BlockLog<'_>,
        needed: u64,
        meter: &SlidingLog,
        now: Time,
    ) -> Option<BlockLog<'a>> {
        // Half as much again each time; the last block is exactly as large as the limit demands.
        let entries = needed
            .max(log.room() + log.room() / 2)
            .min(meter.capacity());
        let old = set.state(slot);
        let handle = self.allocate(BlockLog::words(entries), now)?;
        let mut wider = BlockLog::new(self.arena().block(handle));
        log.copy_to(&mut wider);
        self.replace_block(set, slot, old, handle);
        Some(wider)
    }

    fn open_counts<'a>(
        &'a self,
        set: &LockedSet<'_>,
        slot: usize,
        meter: &SubWindows,
        quota: &Quota,
        now: Time,
    ) -> Option<Memory<'a>> {
        let (len, width) = counts_size(meter, quota);
        let words = BlockCounts::words(len, width);
        let mut counts = if set.tag(slot).form() == Form::Narrow {
            BlockCounts::format(self.box_slot(set, slot, words, now)?, len, width)
        } else {
            let old = BlockCounts::open(self.block(set.state(slot)), len)?;
            if old.width() < width {
                let handle = self.allocate(words, now)?;
                let mut wider = BlockCounts::format(self.arena().block(handle), len, width);
                old.copy_to(&mut wider);
                self.replace_block(set, slot, set.state(slot), handle);
                wider
            } else {
                old
            }
        };
        meter.advance(&mut counts, now);
        Some(Memory::Counts(counts))
    }

    fn write(&self, set: &LockedSet<'_>, slot: usize, account: &Account<'_>, claim: &Claim<'_>) {
        let expires_at = match &account.memory {
            Memory::Fixed(_) => self.write_fixed(set, slot, account, claim),
            Memory::Log(log) => write_log(log.clone(), account),
            Memory::Counts(counts) => write_counts(counts.clone(), account),
            Memory::Unseen | Memory::NoRoom { .. } => None,
        };
        if set.tag(slot).form() == Form::Boxed {
            let block = self.block(set.state(slot));
            // Without a new state the old one lasts as long as before.
            let expires_at = expires_at.unwrap_or(Time::from_nanos(block.get(EXPIRES)));
            let period = account.soft_period;
            let period_expires_at = account.quota.soft_period_expires_at(period);
            block.put(EXPIRES, expires_at.max(period_expires_at).nanos());
            put_soft_period(&block, period);
        }
    }

    fn write_fixed(
        &self,
        set: &LockedSet<'_>,
        slot: usize,
        account: &Account<'_>,
        claim: &Claim<'_>,
    ) -> Option<Time> {
        // A shared counter may be far ahead because of another limit with a smaller quota.
        let clamped = account.change.clamped.filter(|_| !self.is_last_resort());
        let state = account.change.state.or(clamped)?;
        let expires_at = expires_at(account.quota, state);
        match set.tag(slot).form() {
            Form::Narrow => set.put_state(slot, state.to_narrow(claim.layout, expires_at)),
            Form::Boxed => state.write_wide(&self.block(set.state(slot))),
        }
        Some(expires_at)
    }

    /// Gives a narrow slot a block.
    fn box_slot(
        &self,
        set: &LockedSet<'_>,
        slot: usize,
        words: usize,
        now: Time,
    ) -> Option<Block<'_>> {
        let handle = self.allocate(words, now)?;
        set.put_state(slot, handle.to_word());
        set.put_tag(slot, set.tag(slot).with_form(Form::Boxed));
        Some(self.arena().block(handle))
    }

    /// Puts a block in the place of a slot's old one, which is freed.
    fn replace_block(&self, set: &LockedSet<'_>, slot: usize, old: u64, handle: Handle) {
        let (from, to) = (self.block(old), self.arena().block(handle));
        to.put(EXPIRES, from.get(EXPIRES));
        put_soft_period(&to, soft_period(&from));
        set.put_state(slot, handle.to_word());
        self.arena().free(Handle::from_word(old));
    }
}

/// Entries that a new log with a first request of `cost` has room for.
fn first_entries(meter: &SlidingLog, cost: u64) -> u64 {
    cost.max(FIRST_ENTRIES).min(meter.capacity().max(1))
}

/// The number of counts of sub-windows, and the bits of each.
fn counts_size(meter: &SubWindows, quota: &Quota) -> (u64, u32) {
    let most = quota.limit().saturating_add(quota.most_extra());
    (meter.parts() + 1, BlockCounts::width_for(most))
}

fn write_log(mut log: BlockLog<'_>, account: &Account<'_>) -> Option<Time> {
    let Meter::SlidingLog(meter) = account.quota.meter() else {
        return None;
    };
    let entries = [account.change.admitted, account.change.refused];
    for Entry { stamp, n, .. } in entries.into_iter().flatten() {
        let forget = (log.len().saturating_add(n)).saturating_sub(meter.capacity());
        log.drop_oldest(forget);
        log.push(stamp, n);
    }
    Some(meter.expires_at(log.newest()))
}

fn write_counts(mut counts: BlockCounts<'_>, account: &Account<'_>) -> Option<Time> {
    let Meter::SubWindows(meter) = account.quota.meter() else {
        return None;
    };
    counts.add(account.change.added);
    Some(meter.expires_at(&counts))
}

/// When a state of fixed size says no more than none.
pub(super) fn expires_at(quota: &Quota, state: State) -> Time {
    match (quota.meter(), state) {
        (Meter::TokenBucket(meter), State::Instant(tat)) => {
            meter.expires_at(token_bucket::State { tat })
        }
        (Meter::LeakyBucket(meter), State::Instant(next_departure)) => {
            meter.expires_at(leaky_bucket::State { next_departure })
        }
        (Meter::FixedWindow(meter), State::Window(state)) => meter.expires_at(state),
        (Meter::IntervalBucket(meter), State::Portion(state)) => meter.expires_at(state),
        (Meter::SlidingCounter(meter), State::Pair(state)) => meter.expires_at(state),
        _ => Time::ZERO,
    }
}
