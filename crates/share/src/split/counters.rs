//! The counters of a node's shares.

use std::sync::Arc;

use tidegate_algorithms::{Decision, Meter, Quota, RefundTo};
use tidegate_store::{
    Charge, Charging, Clock, CounterKey, Decisions, EmbeddedStore, LimitReservation, Mode,
    OldCounters, StoreConfig, StoreError,
};

use super::store_time::StoreTime;

/// The counters of a node's shares. They also count what the node admits alone, while the store is
/// unavailable, so that neither forgets the other.
///
/// Counters by aligned windows go by the store's time, because all nodes must mean the same window. The others
/// only measure spans and go by the node's own clock, which never jumps.
#[derive(Debug)]
pub(super) struct Counters<M> {
    aligned: EmbeddedStore<StoreTime<Arc<M>>>,
    measured: EmbeddedStore<Arc<M>>,
}

// === impl Counters ===

impl<M: Clock> Counters<M> {
    pub(super) fn new(config: StoreConfig, clock: Arc<M>) -> Self {
        let half = StoreConfig {
            max_memory: config.max_memory / 2,
        };
        Self {
            aligned: EmbeddedStore::with_clock(half, StoreTime::new(Arc::clone(&clock))),
            measured: EmbeddedStore::with_clock(half, clock),
        }
    }

    /// Reserves room for shares of limits with these quotas.
    pub(super) fn reserve_limits(
        &self,
        quotas: &[&Quota],
        old: OldCounters,
    ) -> Result<[LimitReservation<'_>; 2], StoreError> {
        let (aligned, measured): (Vec<&Quota>, Vec<&Quota>) =
            quotas.iter().partition(|quota| is_aligned(quota));
        Ok([
            self.aligned.reserve_limits(aligned.into_iter(), old)?,
            self.measured.reserve_limits(measured.into_iter(), old)?,
        ])
    }

    /// Charges that found no room and were decided by `on_full`.
    pub(super) fn untracked(&self) -> u64 {
        self.aligned.stats().untracked + self.measured.stats().untracked
    }

    /// Whether `on_full` decided in the last minute.
    pub(super) fn is_full(&self) -> bool {
        self.aligned.is_full() || self.measured.is_full()
    }

    pub(super) fn recognise_idle(&self, part: u32, parts: u32) {
        self.aligned.recognise_idle(part, parts);
        self.measured.recognise_idle(part, parts);
    }

    /// The store's time, as far as it is known.
    pub(super) fn time(&self) -> &StoreTime<Arc<M>> {
        self.aligned.clock()
    }

    /// Decides on one limit and charges it if it admits, whatever its mode: the mode counts for the request
    /// as a whole.
    pub(super) fn charge(
        &self,
        charge: &Charge<'_>,
        quota: &Quota,
        charging: Charging,
    ) -> Result<Decision, StoreError> {
        let alone = [Charge {
            quota,
            mode: Mode::Enforce,
            ..*charge
        }];
        let mut decisions = Decisions::new();
        if is_aligned(quota) {
            self.aligned.charge_now(&alone, charging, &mut decisions)?;
        } else {
            self.measured.charge_now(&alone, charging, &mut decisions)?;
        }
        Ok(decisions[0])
    }

    pub(super) fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        if is_aligned(charge.quota) {
            self.aligned.peek_now(charge)
        } else {
            self.measured.peek_now(charge)
        }
    }

    pub(super) fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
    ) -> Result<(), StoreError> {
        if is_aligned(quota) {
            self.aligned.refund_now(key, quota, cost, to)
        } else {
            self.measured.refund_now(key, quota, cost, to)
        }
    }

    pub(super) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> Result<bool, StoreError> {
        if is_aligned(quota) {
            self.aligned.reset_now(key, quota)
        } else {
            self.measured.reset_now(key, quota)
        }
    }
}

/// Whether a quota counts by windows of the clock.
pub(crate) const fn is_aligned(quota: &Quota) -> bool {
    match quota.meter() {
        Meter::FixedWindow(_)
        | Meter::IntervalBucket(_)
        | Meter::SlidingCounter(_)
        | Meter::SubWindows(_) => true,
        Meter::TokenBucket(_) | Meter::LeakyBucket(_) | Meter::SlidingLog(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_algorithms::{Algorithm, Allowance, QuotaSpec, Time};
    use tidegate_store::{Consistency, LimitId, ManualClock};

    use super::*;

    fn quota(millis: u64, algorithm: Algorithm) -> Quota {
        Quota::new(&QuotaSpec {
            limit: 2,
            window: Duration::from_millis(millis),
            algorithm,
            allowance: Allowance::Hard,
        })
        .unwrap()
    }

    /// Shares of further windows are rejected while those in use leave no number, by the clock that they count by.
    #[test]
    fn shares_have_to_fit() {
        let config = StoreConfig {
            max_memory: 2 << 20,
        };
        let clock = ManualClock::at(Time::from_nanos(1_800_000_000_000_000_000));
        let counters = Counters::new(config, Arc::new(clock));
        let log = Algorithm::SlidingLog { log_refused: false };
        for millis in 1_000..2_022 {
            let quota = quota(millis, log);
            let key = CounterKey {
                limit: LimitId(millis.into()),
                values: &["caller"],
            };
            let charge = Charge {
                cost: 1,
                ..Charge::look(key, &quota, Consistency::Split)
            };
            counters
                .charge(&charge, &quota, Charging::AllOrNone)
                .unwrap();
        }
        let (window, log) = (quota(999, Algorithm::FixedWindow), quota(999, log));
        let reserve = |quotas: &[&Quota]| {
            let reserved = counters.reserve_limits(quotas, OldCounters::Keep);
            reserved.map(|all| all.map(LimitReservation::commit))
        };
        let error = Err(StoreError::TooManyWindows { most: 1_022 });
        assert_eq!(reserve(&[&window]), Ok([(); 2]));
        assert_eq!(reserve(&[&window, &log]), error);
    }
}
