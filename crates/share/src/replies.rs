//! Replies of the common store that a node remembers for a short time: so that a caller who keeps asking costs
//! the store next to nothing, and so that a node that is left alone knows who was denied.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Headroom, Meter, Outcome, Retry, Ticks, Time};
use tidegate_store::{Charge, CounterKey, Digester};

use crate::capacity::most_at_once;
use crate::numbers::Numbers;

/// The most replies that are remembered.
const SLOTS: usize = 1 << 13;

/// Slots under one lock.
const SLOTS_OF_SHARD: usize = 1 << 8;

/// Remembered replies. Each key has one slot; of two keys with the same slot, the newer reply stays, but a
/// denial that still stands does not make way for an admission.
#[derive(Debug)]
pub(crate) struct ReplyCache {
    digester: Digester,
    shards: Box<[Mutex<Slots>]>,
}

type Slots = Box<[Option<CachedReply>]>;

#[derive(Clone, Copy, Debug)]
struct CachedReply {
    digest: u128,
    /// A reload of the rules may change them.
    numbers: Numbers,
    cost: u64,
    headroom: Headroom,
    decision: Decision,
    /// The time of the reply, by the clock that the node uses for this cache.
    at: Time,
    until: Time,
    /// The time for which it is remembered at a time.
    lasts: Duration,
    /// Whether a request was let through to ask the store again.
    is_asked_again: bool,
}

/// Bounds for how long a reply is remembered, whatever it says itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

// === impl ReplyCache ===

impl ReplyCache {
    pub(crate) fn new() -> Self {
        let shard = || Mutex::new(vec![None; SLOTS_OF_SHARD].into_boxed_slice());
        Self {
            digester: Digester::new(),
            shards: (0..SLOTS / SLOTS_OF_SHARD).map(|_| shard()).collect(),
        }
    }

    /// Remembers a reply: a denial until it can change, within the `lifetime`.
    pub(crate) fn remember(
        &self,
        charge: &Charge<'_>,
        decision: Decision,
        at: Time,
        lifetime: Lifetime,
    ) {
        if logs_denied(charge) || charge.cost == 0 {
            return;
        }
        let lasts = match decision.outcome {
            Outcome::Denied {
                retry: Retry::After(after),
            } => after.min(lifetime.most).max(lifetime.least),
            _ => lifetime.most,
        };
        let digest = self.digester.digest(charge.key);
        self.with_slot(digest, |slot| {
            let before = slot.filter(|before| before.digest == digest);
            let is_taken =
                slot.is_some_and(|other| !other.decision.is_allowed() && at < other.until);
            if before.is_none() && is_taken && decision.is_allowed() {
                return;
            }
            *slot = Some(CachedReply {
                digest,
                numbers: Numbers::of(charge.quota),
                cost: charge.cost,
                headroom: charge.headroom,
                decision,
                at,
                until: at.plus(lasts),
                lasts,
                is_asked_again: false,
            });
        });
    }

    /// The denial of such a request, if one is remembered. When its time is up although the store said that it
    /// lasts longer, one request asks the store again, and the denial stands for all others meanwhile.
    pub(crate) fn denial(&self, charge: &Charge<'_>, now: Time) -> Option<Decision> {
        if charge.cost == 0 {
            return None;
        }
        let digest = self.digester.digest(charge.key);
        self.with_slot(digest, |slot| {
            let reply = slot.as_mut().filter(|reply| reply.is_for(digest, charge))?;
            let is_denial = !reply.decision.is_allowed()
                && reply.cost <= charge.cost
                && reply.headroom == charge.headroom;
            if is_denial && now < reply.until {
                return Some(reply.decision_at(now, charge));
            }
            if is_denial && now < reply.denied_until() {
                reply.until = now.plus(reply.lasts);
                reply.is_asked_again = true;
            }
            None
        })
    }

    /// The last reply on a counter, if it is remembered, for a request that does not ask the store because another
    /// limit denies it. If that request was let through to ask again, the next one is instead.
    pub(crate) fn last(&self, charge: &Charge<'_>, now: Time) -> Option<Decision> {
        if charge.cost == 0 {
            return None;
        }
        let digest = self.digester.digest(charge.key);
        self.with_slot(digest, |slot| {
            let reply = slot.as_mut().filter(|reply| reply.is_for(digest, charge))?;
            let decision = (now < reply.until).then(|| reply.decision_at(now, charge));
            if std::mem::take(&mut reply.is_asked_again) {
                reply.until = now;
            }
            decision
        })
    }

    /// Forgets the reply on a counter that has changed.
    pub(crate) fn forget(&self, key: CounterKey<'_>) {
        let digest = self.digester.digest(key);
        self.with_slot(digest, |slot| *slot = None);
    }

    fn with_slot<T>(&self, digest: u128, act: impl FnOnce(&mut Option<CachedReply>) -> T) -> T {
        // The digest is random enough to be cut anywhere.
        let bits = usize::try_from(digest % SLOTS as u128).unwrap_or(0);
        let mut shard = self.shard(bits / SLOTS_OF_SHARD);
        act(&mut shard[bits % SLOTS_OF_SHARD])
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Slots> {
        // A slot is written whole.
        self.shards[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CachedReply ===

impl CachedReply {
    fn is_for(&self, digest: u128, charge: &Charge<'_>) -> bool {
        self.digest == digest && self.numbers == Numbers::of(charge.quota)
    }

    /// The time until which the store denies, as far as it said.
    fn denied_until(&self) -> Time {
        match self.decision.outcome {
            Outcome::Denied {
                retry: Retry::After(after),
            } => self.at.plus(after),
            Outcome::Denied {
                retry: Retry::Never,
            } => Time::MAX,
            Outcome::Allowed { .. } => self.at,
        }
    }

    /// The decision on such a charge, with times as they are at `now`. The wait of a larger cost than the denied one is never
    /// too short; it may be too long.
    fn decision_at(&self, now: Time, charge: &Charge<'_>) -> Decision {
        let since = now.since(self.at);
        let mut decision = self.decision;
        if let Outcome::Denied { retry } = &mut decision.outcome
            && let Retry::After(after) = *retry
        {
            *retry = if charge.cost > most_at_once(charge.quota) {
                Retry::Never
            } else {
                Retry::After(self.wait(after, charge).saturating_sub(since))
            };
        }
        decision.reset_after = decision.reset_after.saturating_sub(since);
        decision
    }

    /// The wait of such a charge, if that of the denied one was `after`.
    fn wait(&self, after: Duration, charge: &Charge<'_>) -> Duration {
        let more = charge.cost.saturating_sub(self.cost);
        match charge.quota.meter() {
            _ if more == 0 => after,
            Meter::TokenBucket(bucket) => {
                let interval = bucket.spans().interval.0;
                let refill = Ticks(interval.saturating_mul(more.into())).ceil();
                after.saturating_add(refill.since(Time::ZERO))
            }
            // All is free then.
            _ => after.max(self.decision.reset_after),
        }
    }
}

/// Whether the store must count every denied request.
fn logs_denied(charge: &Charge<'_>) -> bool {
    matches!(
        charge.quota.algorithm(),
        Algorithm::SlidingLog { log_refused: true }
    )
}

#[cfg(test)]
mod tests;
