//! Refusals of the common store that are remembered: a caller who hammers costs it nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Decision, Headroom, Outcome, Retry, Time};
use tidegate_store::{Charge, CounterKey, Digester};

use super::cut::capacity;
use super::store_time::Bounds;

/// How many refusals are remembered at the most.
const SLOTS: usize = 1 << 13;

/// Slots under one lock.
const SLOTS_OF_SHARD: usize = 1 << 8;

/// How long a refusal is believed at the longest: somebody may have given back what he took.
const LONGEST: Duration = Duration::from_secs(1);

/// The refusals that are remembered. Each key has one place; of two that have the same, the newer stays.
#[derive(Debug)]
pub(super) struct Refusals {
    digester: Digester,
    shards: Box<[Mutex<Slots>]>,
}

type Slots = Box<[Option<Refusal>]>;

#[derive(Clone, Copy, Debug)]
struct Refusal {
    digest: u128,
    cost: u64,
    /// With what headroom, for limits that mind.
    headroom: Headroom,
    decision: Decision,
    /// When the store said so, by its own time.
    at: Time,
    /// Until when it stands.
    until: Time,
}

/// What a caller has but the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Living {
    /// The node's own share.
    Share,
    /// Nothing.
    Nothing,
}

// === impl Living ===

impl Living {
    /// How long to leave the reserve alone at the least. A bucket of the reserve has another token every
    /// moment, and all nodes would run for each.
    const fn patience(self) -> Duration {
        match self {
            Self::Share => Duration::from_millis(100),
            Self::Nothing => Duration::ZERO,
        }
    }
}

// === impl Refusals ===

impl Refusals {
    pub(super) fn new() -> Self {
        let shard = || Mutex::new(vec![None; SLOTS_OF_SHARD].into_boxed_slice());
        Self {
            digester: Digester::new(),
            shards: (0..SLOTS / SLOTS_OF_SHARD).map(|_| shard()).collect(),
        }
    }

    /// Remembers what the store said at `at`, if that is a refusal: until it can change, or somewhat longer
    /// where the caller has a share to live on.
    pub(super) fn remember(
        &self,
        charge: &Charge<'_>,
        decision: Decision,
        at: Time,
        living: Living,
    ) {
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
            cost: charge.cost,
            headroom: charge.headroom,
            decision,
            at,
            until: at.plus(after.min(LONGEST).max(living.patience())),
        };
        self.with_slot(refusal.digest, |slot| *slot = Some(refusal));
    }

    /// What the store would say, if it has said so lately and it surely still stands.
    pub(super) fn recall(&self, charge: &Charge<'_>, bounds: Bounds) -> Option<Decision> {
        if charge.cost == 0 {
            return None;
        }
        let digest = self.digester.digest(charge.key);
        let refusal = self.with_slot(digest, |slot| *slot)?;
        let stands = refusal.digest == digest
            && refusal.cost <= charge.cost
            && refusal.headroom == charge.headroom
            // The rules may give it other numbers now.
            && refusal.decision.limit == capacity(charge.quota)
            && bounds.latest < refusal.until;
        stands.then(|| refusal.told(bounds.earliest))
    }

    /// Forgets what was said of a counter: it has changed.
    pub(super) fn forget(&self, key: CounterKey<'_>) {
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
