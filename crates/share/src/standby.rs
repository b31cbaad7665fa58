//! Decisions of a node alone, while the common store is unavailable.
//!
//! It goes on limiting in its own memory. So that all nodes that are alone admit about one limit together,
//! each enforces its share: the limit divided by the members that were last heard of. It begins with what it
//! knows: what the store admitted here is noted under the same key while the store is well, so that only the
//! rest of the share is left, and whom the store refused is refused until that could change. What it counts
//! alone stays here: when the store is back, its counts are the ones that count again, and those made alone
//! expire with their windows.

mod cuts;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{Decision, Meter, Outcome, Quota, QuotaSpec, RefundTo, Retry};
use tidegate_store::report::StandbyReport;
use tidegate_store::{
    Admission, Charge, Charging, Clock, CounterKey, Decisions, EmbeddedStore, Loan, Mode, OnFull,
    StoreError,
};

use self::cuts::{Cut, Cuts};
use crate::Membership;
use crate::capacity::most_at_once;
use crate::edge;
use crate::replies::{Lifetime, ReplyCache};

/// The part of a limit that a node enforces while it is alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandbyLimit {
    /// The limit divided by the members that were last heard of, at least 1.
    #[default]
    Share,
    /// All of it: for a node that nearly all of a caller's requests come to.
    Whole,
}

/// Decides while the common store is unavailable.
#[derive(Debug)]
pub(crate) struct Standby {
    limit: StandbyLimit,
    membership: Membership,
    cuts: Cuts,
    replies: ReplyCache,
    requests: AtomicU64,
    refused: AtomicU64,
}

/// The result of writing a note.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// It is there, or there is no room for its counter.
    All,
    /// It did not fit.
    Nothing {
        /// The permits that would fit.
        left: u64,
    },
}

/// When who asks for more than a share ever admits may come again: the whole limit may be there by then.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A denial of the store stands for as long as the store said.
const UNTIL_RETRY: Lifetime = Lifetime {
    least: Duration::ZERO,
    most: Duration::MAX,
};

// === impl Standby ===

impl Standby {
    pub(crate) fn new(limit: StandbyLimit, membership: Membership) -> Self {
        Self {
            limit,
            membership,
            cuts: Cuts::default(),
            replies: ReplyCache::new(),
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

    /// Notes what the common store has charged. Of a bucket it notes as much as fits.
    pub(crate) fn note<W: Clock>(&self, store: &EmbeddedStore<W>, charge: &Charge<'_>) {
        let whole = charge.quota;
        let is_plain = counts_plainly(whole);
        let cut = self.cut_of_notes(charge.key, whole);
        let left = match write(store, &cut.apply(charge)) {
            Written::All => return,
            Written::Nothing { left } => left,
        };
        if is_plain && let Some(roomy) = doubled(whole) {
            let quota = &roomy;
            write(store, &Charge { quota, ..*charge });
        } else if left > 0 {
            let cost = left.min(charge.cost);
            let rest = Charge { cost, ..*charge };
            write(store, &cut.apply(&rest));
        }
    }

    /// Takes back the note of permits that were not spent. A counter that has begun another window since
    /// they were drawn has forgotten it already.
    pub(crate) fn unnote<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) {
        if !edge::is_between(quota, loan.now, store.clock().now()) {
            self.refund(store, key, quota, permits, RefundTo::Current);
        }
    }

    /// Notes what the common store has refused.
    pub(crate) fn note_refusal<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        charge: &Charge<'_>,
        decision: Decision,
    ) {
        let now = store.clock().now();
        self.replies.remember(charge, decision, now, UNTIL_RETRY);
    }

    /// The last denial of the common store, if it still stands.
    pub(crate) fn recall<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        charge: &Charge<'_>,
    ) -> Option<Decision> {
        self.replies.denial(charge, store.clock().now())
    }

    /// The permits of a counter that were noted and are still counted; of a bucket, those noted with the
    /// `noted` quota.
    pub(crate) fn noted<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        charge: &Charge<'_>,
        noted: &Quota,
    ) -> u64 {
        let quota = if counts_plainly(charge.quota) {
            charge.quota
        } else {
            noted
        };
        let cut = self.cut_of_notes(charge.key, quota);
        let look = Charge {
            quota: cut.quota(quota),
            on_full: OnFull::Allow,
            ..*charge
        };
        store.peek_now(&look).map_or(0, |decision| {
            decision.limit.saturating_sub(decision.remaining)
        })
    }

    /// Refunds what was charged alone, or noted.
    pub(crate) fn refund<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) {
        self.replies.forget(key);
        // Cannot fail but for a window that was never charged.
        let _ = store.refund_now(key, self.cut(key, quota).quota(quota), cost, to);
    }

    /// Forgets what was charged alone, or noted.
    pub(crate) fn reset<W: Clock>(
        &self,
        store: &EmbeddedStore<W>,
        key: CounterKey<'_>,
        quota: &Quota,
    ) {
        self.replies.forget(key);
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

    pub(crate) fn report<W: Clock>(&self, store: &EmbeddedStore<W>) -> StandbyReport {
        StandbyReport {
            requests: self.requests.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            divided_by: u64::from(self.divided_by()),
            used_bytes: store.stats().used_bytes,
        }
    }

    fn cut_of_notes(&self, key: CounterKey<'_>, quota: &Quota) -> Cut {
        if counts_plainly(quota) {
            Cut::None
        } else {
            self.cut(key, quota)
        }
    }

    /// Whether limits that are to be shared are enforced whole, because the number of members is unknown.
    pub(crate) fn is_unshared(&self) -> bool {
        self.limit == StandbyLimit::Share && !self.membership.is_known()
    }

    fn cut(&self, key: CounterKey<'_>, quota: &Quota) -> Cut {
        match self.divided_by() {
            1 => Cut::None,
            parts => self.cuts.find(key.limit, quota, parts),
        }
    }

    /// The number of parts into which limits are divided while the node is alone.
    pub(crate) fn divided_by(&self) -> u32 {
        match self.limit {
            StandbyLimit::Share => self.membership.members(),
            StandbyLimit::Whole => 1,
        }
    }
}

/// Writes a note, if it fits.
fn write<W: Clock>(store: &EmbeddedStore<W>, charge: &Charge<'_>) -> Written {
    let note = Charge {
        mode: Mode::Enforce,
        on_full: OnFull::Omit,
        ..*charge
    };
    let mut decisions = Decisions::new();
    // An error leaves it unknown, as it would be without notes.
    let _ = store.charge_now(&[note], Charging::AllOrNone, &mut decisions);
    match decisions.first() {
        Some(decision) if !decision.is_allowed() => Written::Nothing {
            left: decision.remaining,
        },
        _ => Written::All,
    }
}

/// Room for all that a node can have admitted in a window: one limit through the store, and before that
/// up to one alone.
#[cold]
fn doubled(quota: &Quota) -> Option<Quota> {
    let spec = QuotaSpec {
        limit: quota.limit().saturating_mul(2),
        window: quota.window(),
        algorithm: quota.algorithm(),
        allowance: quota.allowance(),
    };
    Quota::new(&spec).ok()
}

/// Whether a counter holds plain numbers, which say the same whatever the limit. Such a one is noted beyond
/// the share, so that it is true also when the members or the rules change. A bucket holds a time or what is
/// missing from a full one, which mean something to its own numbers alone: it is emptied, but no further.
const fn counts_plainly(quota: &Quota) -> bool {
    match quota.meter() {
        Meter::FixedWindow(_)
        | Meter::SlidingCounter(_)
        | Meter::SubWindows(_)
        | Meter::SlidingLog(_) => true,
        Meter::TokenBucket(_) | Meter::IntervalBucket(_) | Meter::LeakyBucket(_) => false,
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

#[cfg(test)]
mod tests;
