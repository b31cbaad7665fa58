//! What is done to one counter outside a charge: refund, reset, and a look at them all.

use std::time::Duration;

use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::{Meter, Quota, RefundTo, Time, leaky_bucket, token_bucket};

use super::StoreStats;
use super::account::{Account, Memory};
use super::claim::{Claim, Hold, claim_one};
use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::state::{EXPIRES, State};
use super::sync::{AtomicU64, Ordering};
use super::table::{SetId, WAYS};
use super::tag::Tag;
use crate::{Clock, CounterKey, StoreError};

/// The time for which a store counts as full after a counter found no room.
const FULL_FOR: Duration = Duration::from_mins(1);

// === impl Core ===

impl Core {
    pub(super) fn refund(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> Result<(), StoreError> {
        let mut claims = claim_one(self, fingerprinter, clock, key, quota)?;
        if let RefundTo::Charge(stamp) = to
            && stamp.is_shared
        {
            return self.refund_shared(&claims[0], cost, to, clock);
        }
        let hold = self.hold(&mut claims, clock)?;
        self.refund_claim(&claims[0], &hold, cost, to);
        Ok(())
    }

    /// Refunds to the counter of a claim, if it is there.
    pub(super) fn refund_claim(&self, claim: &Claim<'_>, hold: &Hold<'_>, cost: u64, to: RefundTo) {
        if let Some(mut account) = self.open_for(claim, hold, 0) {
            self.refund_held(&mut account, claim, hold, (cost, to));
        }
    }

    pub(super) fn reset(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        key: CounterKey<'_>,
        quota: &Quota,
    ) -> Result<bool, StoreError> {
        let mut claims = claim_one(self, fingerprinter, clock, key, quota)?;
        let hold = self.hold(&mut claims, clock)?;
        let Some(at) = claims[0].place else {
            return Ok(false);
        };
        let set = hold.locks.set(at.held);
        let was_live = !self.is_free(set, at.slot, hold.now);
        self.vacate(set, at.slot);
        Ok(was_live)
    }

    /// Shows each counter of a shard, a set at a time.
    pub(super) fn visit(&self, shard: u32, mut see: impl FnMut(Tag, Time)) {
        for set in 0..self.table.size(shard) {
            let Some(set) = self.table.lock(SetId { shard, set }) else {
                return;
            };
            for slot in 0..WAYS {
                let tag = set.tag(slot);
                if !tag.is_empty() {
                    see(tag, self.expires_at(tag, set.state(slot)));
                }
            }
        }
    }

    pub(super) fn stats(&self, clock: &impl Clock) -> StoreStats {
        let shared_bytes = self.shared.as_ref().map_or(0, |shared| shared.max_bytes);
        // Only what is touched costs memory, and shared counters are not before memory is full.
        let is_full = self.evicted.get() + self.untracked.get() > 0 || self.has_restored_shared;
        StoreStats {
            used_bytes: self.used_bytes() + if is_full { shared_bytes } else { 0 },
            max_bytes: self.max_bytes + shared_bytes,
            evicted: self.evicted.get(),
            untracked: self.untracked.get(),
            unfolded: self.unfolded.get(),
            is_full: self.was_full_at(clock.now()),
        }
    }

    /// Returns true if `on_full` decided in the minute before `now`.
    pub(super) fn was_full_at(&self, now: Time) -> bool {
        is_recent(&self.full_at, now)
    }

    /// Returns true if a counter found no room in the minute before `now`, also one that decides nothing.
    pub(super) fn lacked_room_at(&self, now: Time) -> bool {
        is_recent(&self.no_room_at, now)
    }

    fn refund_held(
        &self,
        account: &mut Account<'_>,
        claim: &Claim<'_>,
        hold: &Hold<'_>,
        (cost, to): (u64, RefundTo),
    ) {
        let now = hold.now;
        match (account.quota.meter(), account.memory.clone()) {
            (Meter::SlidingLog(meter), Memory::Log(mut log)) => {
                meter.refund(&mut log, cost, to, now);
                let expires_at = if log.is_empty() {
                    now
                } else {
                    meter.expires_at(log.newest())
                };
                self.put_expiry(account, claim, hold, expires_at);
            }
            (Meter::SubWindows(meter), Memory::Counts(mut counts)) => {
                meter.refund(&mut counts, cost, to, now);
                self.put_expiry(account, claim, hold, meter.expires_at(&counts));
            }
            (_, Memory::Fixed(state)) => {
                let refunded = refund_fixed(account.quota, state, cost, to, now);
                if refunded != state {
                    account.change.state = Some(refunded);
                    self.close(account, claim, hold);
                }
            }
            _ => {}
        }
    }

    fn put_expiry(
        &self,
        account: &Account<'_>,
        claim: &Claim<'_>,
        hold: &Hold<'_>,
        expires_at: Time,
    ) {
        if let Some(at) = claim.place {
            let state = hold.locks.set(at.held).state(at.slot);
            let quota = account.quota;
            let expires_at = expires_at.max(quota.soft_period_expires_at(account.soft_period));
            self.block(state).put(EXPIRES, expires_at.nanos());
        }
    }
}

/// Returns true if `moment`, in nanoseconds, is in the minute before `now`; 0 stands for never.
fn is_recent(moment: &AtomicU64, now: Time) -> bool {
    let last = moment.load(Ordering::Relaxed);
    last > 0 && now.since(Time::from_nanos(last)) < FULL_FOR
}

fn refund_fixed(quota: &Quota, state: State, cost: u64, to: RefundTo, now: Time) -> State {
    match (quota.meter(), state) {
        (Meter::TokenBucket(meter), State::Instant(tat)) => {
            State::Instant(meter.refund(token_bucket::State { tat }, cost, to, now).tat)
        }
        (Meter::LeakyBucket(meter), State::Instant(next_departure)) => {
            let state = leaky_bucket::State { next_departure };
            State::Instant(meter.refund(state, cost, to, now).next_departure)
        }
        (Meter::FixedWindow(meter), State::Window(state)) => {
            State::Window(meter.refund(state, cost, to, now))
        }
        (Meter::IntervalBucket(meter), State::Portion(state)) => {
            State::Portion(meter.refund(state, cost, to, now))
        }
        (Meter::SlidingCounter(meter), State::Pair(state)) => {
            State::Pair(meter.refund(state, cost, to, now))
        }
        (_, state) => state,
    }
}
