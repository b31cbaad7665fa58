//! Refusals of the common store that are remembered: so that a caller who hammers costs it nothing, and so
//! that a node that is left alone knows of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Headroom, Outcome, Retry, Time};
use tidegate_store::{Charge, CounterKey, Digester};

use crate::numbers::Numbers;
use crate::split::Bounds;

/// How many refusals are remembered at the most.
const SLOTS: usize = 1 << 13;

/// Slots under one lock.
const SLOTS_OF_SHARD: usize = 1 << 8;

/// The refusals that are remembered. Each key has one place; of two that have the same, the newer stays.
#[derive(Debug)]
pub(crate) struct Refusals {
    digester: Digester,
    shards: Box<[Mutex<Slots>]>,
}

type Slots = Box<[Option<Refusal>]>;

#[derive(Clone, Copy, Debug)]
struct Refusal {
    digest: u128,
    /// The rules may give it others later.
    numbers: Numbers,
    cost: u64,
    /// With what headroom, for limits that mind.
    headroom: Headroom,
    decision: Decision,
    /// When the store said so, by whatever clock the node keeps to.
    at: Time,
    /// Until when it stands.
    until: Time,
}

/// For how long a refusal is believed, whatever it says itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

// === impl Refusals ===

impl Refusals {
    pub(crate) fn new() -> Self {
        let shard = || Mutex::new(vec![None; SLOTS_OF_SHARD].into_boxed_slice());
        Self {
            digester: Digester::new(),
            shards: (0..SLOTS / SLOTS_OF_SHARD).map(|_| shard()).collect(),
        }
    }

    /// Remembers what the store said at `at`, if that is a refusal: until it can change, as far as it is
    /// trusted.
    pub(crate) fn remember(&self, charge: &Charge<'_>, decision: Decision, at: Time, trust: Trust) {
        let Outcome::Denied {
            retry: Retry::After(after),
        } = decision.outcome
        else {
            return;
        };
        if logs_refusals(charge) {
            return;
        }
        let refusal = Refusal {
            digest: self.digester.digest(charge.key),
            numbers: Numbers::of(charge.quota),
            cost: charge.cost,
            headroom: charge.headroom,
            decision,
            at,
            until: at.plus(after.min(trust.most).max(trust.least)),
        };
        self.with_slot(refusal.digest, |slot| *slot = Some(refusal));
    }

    /// What the store would say, if it has said so lately and it surely still stands.
    pub(crate) fn recall(&self, charge: &Charge<'_>, bounds: Bounds) -> Option<Decision> {
        if charge.cost == 0 {
            return None;
        }
        let digest = self.digester.digest(charge.key);
        let refusal = self.with_slot(digest, |slot| *slot)?;
        let stands = refusal.digest == digest
            && refusal.cost <= charge.cost
            && refusal.headroom == charge.headroom
            && refusal.numbers == Numbers::of(charge.quota)
            && bounds.latest < refusal.until;
        stands.then(|| refusal.told(bounds.earliest))
    }

    /// Forgets what was said of a counter: it has changed.
    pub(crate) fn forget(&self, key: CounterKey<'_>) {
        let digest = self.digester.digest(key);
        self.with_slot(digest, |slot| *slot = None);
    }

    fn with_slot<T>(&self, digest: u128, act: impl FnOnce(&mut Option<Refusal>) -> T) -> T {
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

// === impl Refusal ===

impl Refusal {
    /// The decision, as it is at `now`.
    fn told(&self, now: Time) -> Decision {
        let since = now.since(self.at);
        let retry = match self.decision.outcome {
            Outcome::Denied {
                retry: Retry::After(after),
            } => Retry::After(after.saturating_sub(since)),
            _ => Retry::Never,
        };
        Decision {
            outcome: Outcome::Denied { retry },
            reset_after: self.decision.reset_after.saturating_sub(since),
            ..self.decision
        }
    }
}

/// Whether the store must hear of every refusal.
fn logs_refusals(charge: &Charge<'_>) -> bool {
    matches!(
        charge.quota.algorithm(),
        Algorithm::SlidingLog { log_refused: true }
    )
}
