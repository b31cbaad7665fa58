//! What is done to one counter outside a charge: refund, reset, and a look at them all.

use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::{Meter, Quota, RefundTo, Time, leaky_bucket, token_bucket};

use super::StoreStats;
use super::account::{Account, Memory};
use super::claim::{Claim, Hold, claim_one};
use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::state::{EXPIRES, State};
use super::table::{SetId, WAYS};
use super::tag::Tag;
use crate::{Clock, CounterKey, StoreError};

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
        let hold = self.hold(&mut claims, clock)?;
        let claim = &claims[0];
        if claim.place.is_some() {
            let mut account = self.open(claim, &hold);
            self.refund_held(&mut account, claim, &hold, (cost, to));
        }
        Ok(())
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
            let set = self.table.lock(SetId { shard, set });
            for slot in 0..WAYS {
                let tag = set.tag(slot);
                if !tag.is_empty() {
                    see(tag, self.expires_at(tag, set.state(slot)));
                }
            }
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        StoreStats {
            used_bytes: self.max_bytes.saturating_sub(self.budget.left()),
            max_bytes: self.max_bytes,
            evicted: self.evicted.get(),
            untracked: self.untracked.get(),
        }
    }

    fn refund_held(
        &self,
        account: &mut Account<'_>,
        claim: &Claim<'_>,
        hold: &Hold<'_>,
        (cost, to): (u64, RefundTo),
    ) {
        let now = hold.now;
        match (account.quota.meter(), account.memory) {
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
                    account.refused = Some(false);
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
