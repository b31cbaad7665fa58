//! The contract of a store, as data.

use std::future::Future;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{ChargeStamp, Decision, Headroom, Quota, RefundTo, Time};

use crate::StoreError;
use crate::report::{StoreHealth, StoreReport};

/// The most limits that one request may charge.
pub const MAX_CHARGES: usize = 64;

/// The decisions of one request, in the order of its charges. No allocation up to eight.
pub type Decisions = SmallVec<[Decision; 8]>;

/// Remembers counters and owns the time.
///
/// `charge` is one atomic step with one `now` over all its limits. Dropping a returned future
/// before it is ready may or may not have charged. What is done to one counter outside a charge says
/// how the nodes share it, as the charge does, for that is where the counter is.
pub trait Store: Send + Sync {
    /// Decides on all `charges` at one instant and charges them as `charging` says. Writes one
    /// decision per charge, in order, to `decisions`, which is cleared first.
    fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send;

    /// Decides as [`charge`](Self::charge) does, but at once and by what this node knows alone: for
    /// when `charge` could not decide. A store that has nobody else to ask cannot.
    fn charge_alone(
        &self,
        _charges: &[Charge<'_>],
        _charging: Charging,
        _decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        Err(StoreError::NoStandby)
    }

    /// Decides on `charge` as [`charge`](Self::charge) does at cost 0, but denies if a cost of 1 does not fit, until one
    /// does. Changes nothing, whatever the cost.
    fn peek(
        &self,
        charge: &Charge<'_>,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send;

    /// Refunds `cost` to one counter: the caller's own or, of a charge whose stamp says so, the shared one. Never leaves more than the whole quota available and, of a charge,
    /// never more than would be available had it not been made. A refund that cannot be placed is lost.
    fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Refunds a charge that [`charge_alone`](Self::charge_alone) made, to where that made it.
    fn refund_alone(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _cost: u64,
        _stamp: ChargeStamp,
        _consistency: Consistency,
    ) -> Result<(), StoreError> {
        Err(StoreError::NoStandby)
    }

    /// Whether a fixed window that nodes share in this way counts what it denies under
    /// [`Charging::EveryMatch`]. A node that decides by its part of a limit counts only what it allows.
    fn counts_denials(&self, _consistency: Consistency) -> bool {
        true
    }

    /// Forgets one counter. Says whether there was one.
    fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        consistency: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Makes sure that limits with these quotas, shared in these ways, can all be counted: to be called before rules
    /// are put in force. No other limit gets the room of these until others are reserved.
    ///
    /// # Errors
    ///
    /// If they cannot; then nothing is changed, but counters that were to be dropped may be gone.
    fn reserve(
        &self,
        _limits: &mut dyn Iterator<Item = (&Quota, Consistency)>,
        _old: OldCounters,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// The time now, by which everything is decided.
    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send;

    /// Lists live counters from `cursor` on, about `most` of them.
    fn list(
        &self,
        cursor: Cursor,
        most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// How the store is doing, for metrics and operators. Waits for nobody, but may look at all that the
    /// store holds.
    fn report(&self) -> StoreReport {
        StoreReport::default()
    }

    /// Whether the store decides as it should, for health checks, which come often.
    fn health(&self) -> StoreHealth {
        self.report().health()
    }
}

/// What becomes of live counters of limits that are gone, where the limits of new rules need their room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldCounters {
    /// They stay, and the new rules do not fit: those before are still in force.
    Keep,
    /// They are dropped: the process starts, so no rule in force names them.
    Drop,
}

/// Identifies a limit: a digest of its domain, path, algorithm, window and place among its
/// siblings, but not of its numbers, so that a changed limit applies to the old counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitId(pub u128);

/// Names one counter. Structured: `["a", "bc"]` and `["ab", "c"]` are different callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterKey<'a> {
    /// Which limit.
    pub limit: LimitId,
    /// For whom: the values of the descriptor's entries that tell callers apart.
    pub values: &'a [&'a str],
}

/// One limit to charge.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// Which counter.
    pub key: CounterKey<'a>,
    /// The numbers of the limit.
    pub quota: &'a Quota,
    /// How much; 0 looks without consuming.
    pub cost: u64,
    /// What the limit's word counts for.
    pub mode: Mode,
    /// Whether an elastic limit may stretch.
    pub headroom: Headroom,
    /// What to answer when there is no room for a new counter.
    pub on_full: OnFull,
    /// How the nodes share the limit; a store of one node alone does not mind.
    pub consistency: Consistency,
}

/// How the nodes that have one store in common share a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Not at all: each node enforces it by itself.
    Node,
    /// Every decision is made in the common store.
    #[default]
    Strict,
    /// Permits are drawn from the common store ahead of need and spent from memory.
    Leased,
    /// Nodes tell each other their running totals now and then.
    Eventual,
    /// Each node enforces its share.
    Split,
}

/// What a limit's refusal means for the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The request is refused.
    #[default]
    Enforce,
    /// The request is refused if every quota limit of it refuses.
    Quota,
    /// Nothing: it only counts.
    Shadow,
}

/// How a request with several limits is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charging {
    /// Admitted: every enforce limit is charged, and each quota and shadow limit that admits.
    /// Refused: nothing is, but for postpaid limits.
    #[default]
    AllOrNone,
    /// As envoyproxy/ratelimit: each limit is charged alone, whatever the others say, and a fixed
    /// window counts its own refusals too.
    EveryMatch,
}

/// The decision on a new counter when memory is full of counters that must stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// It is counted together with others, by the limit's own quota, in a counter that its keyed hash chooses.
    #[default]
    Shared,
    /// It is allowed, uncounted.
    Allow,
    /// It is denied.
    Deny,
    /// It is allowed, uncounted, and the store does not count as full: for notes, which decide nothing.
    Omit,
}

/// What a charge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The instant at which everything was decided.
    pub now: Time,
    /// How much earlier than `now` the first charge may have been made, in microseconds; [`u32::MAX`] if
    /// that is not known. Small, because every request has a receipt.
    lead_us: u32,
    /// The charges that went to shared counters for want of room, a bit for each.
    shared: u64,
    /// Whether the request as a whole may pass.
    pub admission: Admission,
    /// The place where it was decided.
    pub source: DecisionSource,
}

/// The place where a request was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionSource {
    /// The counters of this process.
    #[default]
    Memory,
    /// The part that this node holds of limits that nodes share: permits, shares, totals, remembered denials.
    Held,
    /// The common store, for at least one of the limits.
    Common,
}

/// Whether a request may pass: every enforce limit admits it and, if there are quota limits, at
/// least one of those does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Admitted,
    /// It may not.
    Refused,
}

/// Where to go on listing. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub u64);

/// Some of the live counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The counters.
    pub counters: Vec<Counter>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

/// A live counter as a store can tell it. The embedded store keeps no client's string, so a counter
/// goes by its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The fingerprint of its key, stable while the store lives.
    pub fingerprint: u64,
    /// The window of its limit.
    pub window: Duration,
    /// When it will say no more than a counter never used.
    pub expires_after: Duration,
    /// Whether its last answer was a denial, if the store remembers that.
    pub refused: Option<bool>,
}

// === impl Charge ===

impl<'a> Charge<'a> {
    /// A look at a counter, with the default for everything else.
    pub fn look(key: CounterKey<'a>, quota: &'a Quota, consistency: Consistency) -> Self {
        Self {
            key,
            quota,
            cost: 0,
            mode: Mode::default(),
            headroom: Headroom::Absent,
            on_full: OnFull::default(),
            consistency,
        }
    }
}

// === impl Receipt ===

impl Receipt {
    /// The receipt of a request that was charged at one instant.
    pub const fn new(now: Time, admission: Admission) -> Self {
        Self {
            now,
            lead_us: 0,
            shared: 0,
            admission,
            source: DecisionSource::Memory,
        }
    }

    /// The same receipt for a request that was decided elsewhere.
    #[must_use]
    pub const fn decided_in(self, source: DecisionSource) -> Self {
        Self { source, ..self }
    }

    /// The same receipt for a request that was charged from `earliest` on, by several clocks or by loans.
    #[must_use]
    pub fn charged_from(self, earliest: Time) -> Self {
        let lead = self.now.nanos().saturating_sub(earliest.nanos());
        Self {
            lead_us: u32::try_from(lead.div_ceil(1_000)).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// A time no later than any of the charges, by the clock of each, and a microsecond earlier at most where
    /// that is known. Refunds go by it, because an earlier time never refunds too much.
    pub fn earliest(&self) -> Time {
        match self.lead_us {
            0 => self.now,
            u32::MAX => Time::ZERO,
            lead => Time::from_nanos(self.now.nanos().saturating_sub(u64::from(lead) * 1_000)),
        }
    }

    /// The same receipt for a request of which the charges in `shared`, a bit for each, went to shared counters.
    #[must_use]
    pub const fn charged_to_shared(self, shared: u64) -> Self {
        Self { shared, ..self }
    }

    /// Whether the charge with that `index` went to a shared counter.
    pub const fn is_shared(&self, index: usize) -> bool {
        index < MAX_CHARGES && self.shared >> index & 1 == 1
    }

    /// The stamp of the charge with that `index`, which got this `decision`.
    pub fn stamp(&self, index: usize, decision: &Decision) -> ChargeStamp {
        ChargeStamp {
            at: self.earliest(),
            is_shared: self.is_shared(index),
            ..ChargeStamp::new(self.now, decision)
        }
    }
}

// === impl Admission ===

impl Admission {
    /// What `decisions` come to for a request of these `charges`, one decision for each.
    pub fn of(charges: &[Charge<'_>], decisions: &[Decision]) -> Self {
        let mut quotas = 0;
        let mut quotas_denied = 0;
        for (charge, decision) in charges.iter().zip(decisions) {
            match (charge.mode, decision.is_allowed()) {
                (Mode::Enforce, false) => return Self::Refused,
                (Mode::Quota, is_allowed) => {
                    quotas += 1;
                    quotas_denied += u32::from(!is_allowed);
                }
                (Mode::Enforce, true) | (Mode::Shadow, _) => {}
            }
        }
        if quotas > 0 && quotas == quotas_denied {
            Self::Refused
        } else {
            Self::Admitted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The earliest time of a receipt is never after the one that it was given, and just before it where it can be.
    #[test]
    fn a_receipt_never_tells_a_later_time() {
        let now = Time::from_nanos(1_800_000_000_000_000_000);
        for (before, told) in [
            (0, 0),
            (1, 1_000),
            (1_000, 1_000),
            (1_001, 2_000),
            (4_294_967_294_000, 4_294_967_294_000),
            (4_294_967_294_001, now.nanos()),
            (now.nanos(), now.nanos()),
        ] {
            let earliest = Time::from_nanos(now.nanos() - before);
            let receipt = Receipt::new(now, Admission::Admitted).charged_from(earliest);
            let told = Time::from_nanos(now.nanos() - told);
            assert_eq!(receipt.earliest(), told, "{before} ns before");
        }
        // By a clock that is ahead.
        let ahead = now.plus(Duration::from_secs(9));
        let receipt = Receipt::new(now, Admission::Admitted).charged_from(ahead);
        assert_eq!(receipt.earliest(), now);
    }
}
