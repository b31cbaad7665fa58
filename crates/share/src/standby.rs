//! What a node does alone, while the common store cannot decide.
//!
//! It goes on limiting in its own memory. So that all nodes that are alone admit about one limit together,
//! each enforces its share: the limit divided by the members that were last heard of. What it counts alone
//! stays here: when the store is back, its counts are the ones that count again, and those made alone expire
//! with their windows.

mod cuts;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Decision, Outcome, Quota, Retry};
use tidegate_store::report::StandbyReport;
use tidegate_store::{
    Admission, Charge, Charging, Clock, CounterKey, Decisions, EmbeddedStore, StoreError,
};

use self::cuts::{Cut, Cuts};
use crate::Membership;

/// How much of a limit a node enforces while it is alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandbyLimit {
    /// The limit divided by the members that were last heard of, at least 1.
    #[default]
    Share,
    /// All of it: for a node that nearly all of a caller's requests come to.
    Whole,
}

/// What a node decides alone.
#[derive(Debug)]
pub(crate) struct Standby {
    limit: StandbyLimit,
    membership: Membership,
    cuts: Cuts,
    requests: AtomicU64,
    refused: AtomicU64,
}

/// When who asks for more than a share ever admits may come again: the whole limit may be there by then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

// === impl Standby ===

impl Standby {
    pub(crate) fn new(limit: StandbyLimit, membership: Membership) -> Self {
        Self {
            limit,
            membership,
            cuts: Cuts::default(),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Decides on `charges` in one step of this node's store.
    pub(crate) fn charge<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<(), StoreError> {
        let cuts: SmallVec<[Cut; 8]> = charges
            .iter()
            .map(|charge| self.cut(charge.key, charge.quota))
            .collect();
        let charged = charges.iter().zip(&cuts);
        let alone: SmallVec<[Charge<'_>; 8]> =
            charged.map(|(charge, cut)| cut.apply(charge)).collect();
        store.charge_now(&alone, charging, decisions)?;
        for (charge, decision) in charges.iter().zip(decisions) {
            soften(charge, decision);
        }
        Ok(())
    }

    /// Gives back what was charged alone.
    pub(crate) fn refund<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
    ) {
        // Cannot fail but for a window that was never charged.
        let _ = store.refund_now(key, self.cut(key, quota).quota(quota), cost);
    }

    /// Forgets what was charged alone.
    pub(crate) fn reset<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        key: CounterKey<'_>,
        quota: &Quota,
    ) {
        // Cannot fail but for a window that was never charged.
        let _ = store.reset_now(key, self.cut(key, quota).quota(quota));
    }

    /// Counts a request that was decided alone.
    pub(crate) fn decided(&self, admission: Admission) {
        // Relaxed: nothing is read by these counts.
        self.requests.fetch_add(1, Ordering::Relaxed);
        if admission == Admission::Refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn report(&self) -> StandbyReport {
        StandbyReport {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            divided_by: u64::from(self.parts()),
        }
    }

    fn cut(&self, key: CounterKey<'_>, quota: &Quota) -> Cut {
        match self.parts() {
            1 => Cut::None,
            parts => self.cuts.find(key.limit, quota, parts),
        }
    }

    fn parts(&self) -> u32 {
        match self.limit {
            StandbyLimit::Share => self.membership.members(),
            StandbyLimit::Whole => 1,
        }
    }
}

/// A request that costs more than a share is refused, but not for ever.
fn soften(charge: &Charge<'_>, decision: &mut Decision) {
    if let Outcome::Denied { retry } = &mut decision.outcome
        && *retry == Retry::Never
        && charge.cost <= most_at_once(charge.quota)
    {
        *retry = Retry::After(RETRY_AFTER);
    }
}

/// The most that an unused limit ever admits at one instant.
const fn most_at_once(quota: &Quota) -> u64 {
    let capacity = match quota.algorithm() {
        _ if quota.limit() == 0 => 0,
        Algorithm::TokenBucket {
            burst: Some(capacity),
            ..
        }
        | Algorithm::LeakyBucket {
            queue: Some(capacity),
        } => capacity,
        _ => quota.limit(),
    };
    capacity.saturating_add(quota.most_extra())
}

#[cfg(test)]
mod tests;
