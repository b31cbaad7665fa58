//! The smallest store, on a clock that stands still until it is moved.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, Receipt, StoreConfig, StoreStats,
};

pub(crate) const START: Time = Time::from_nanos(1_800_000_000_000_000_000);
pub(crate) const HOUR: Duration = Duration::from_hours(1);

/// Slots of the smallest store if it had nothing but slots.
pub(crate) const MOST_SLOTS: u64 = (1 << 20) / 16;

pub(crate) const TOKEN_BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

pub(crate) const SLIDING_LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

pub(crate) const SUB_WINDOWS: Algorithm = Algorithm::SlidingCounter {
    sub_windows: 60,
    rounding: Rounding::Down,
};

pub(crate) const ALGORITHMS: [Algorithm; 6] = [
    TOKEN_BUCKET,
    Algorithm::LeakyBucket { queue: None },
    Algorithm::FixedWindow,
    SLIDING_LOG,
    SUB_WINDOWS,
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
];

/// The smallest store, on a clock that stands still until it is moved.
pub(crate) struct SmallStore(pub(crate) EmbeddedStore<ManualClock>);

// === impl SmallStore ===

impl SmallStore {
    pub(crate) fn new() -> Self {
        let config = StoreConfig {
            max_memory: 1 << 20,
        };
        Self(EmbeddedStore::with_clock(config, ManualClock::at(START)))
    }

    /// Charges one caller, and checks that memory keeps within its cap.
    pub(crate) fn charge(&self, caller: &str, quota: &Quota, on_full: OnFull) -> Decision {
        let (_, decisions) = self.charge_all(&[charge(&[caller], quota, on_full)]);
        let StoreStats {
            used_bytes,
            max_bytes,
            ..
        } = self.stats();
        assert!(used_bytes <= max_bytes, "{used_bytes} of {max_bytes}");
        decisions[0]
    }

    /// Charges one request.
    pub(crate) fn charge_all(&self, charges: &[Charge<'_>]) -> (Receipt, Decisions) {
        let mut decisions = Decisions::new();
        let charged = self
            .0
            .charge_now(charges, Charging::AllOrNone, &mut decisions);
        (charged.expect("a decision"), decisions)
    }

    /// Fills all slots, or all blocks if `quota` needs them, with counters in use. They are not counted elsewhere.
    pub(crate) fn use_up(&self, quota: &Quota) {
        for n in 0..4 * MOST_SLOTS {
            let name = format!("in use {n}");
            self.charge(&name, quota, OnFull::Allow);
            self.charge(&name, quota, OnFull::Allow);
        }
    }

    /// Sends one request of each of a number of callers, and gives the number that is remembered in the end.
    pub(crate) fn flood(&self, name: &str, callers: u64, quota: &Quota) -> u64 {
        let before = self.stats();
        for n in 0..callers {
            self.charge(&format!("{name} {n}"), quota, OnFull::Allow);
        }
        let after = self.stats();
        callers - (after.untracked - before.untracked) - (after.evicted - before.evicted)
    }

    /// Drives a number of callers over their limit, and gives the number that is remembered.
    pub(crate) fn fill(&self, name: &str, callers: u64, quota: &Quota) -> usize {
        let is_remembered = |n: &u64| {
            let offender = format!("{name} {n}");
            let untracked = self.stats().untracked;
            while self.charge(&offender, quota, OnFull::Allow).is_allowed() {
                if self.stats().untracked > untracked {
                    return false;
                }
            }
            true
        };
        (0..callers).filter(is_remembered).count()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.clock().advance(by);
    }

    pub(crate) fn stats(&self) -> StoreStats {
        self.0.stats()
    }
}

/// `limit` an hour.
pub(crate) fn hourly(limit: u64, algorithm: Algorithm) -> Quota {
    quota(limit, HOUR, algorithm)
}

/// `limit` a day.
pub(crate) fn daily(limit: u64, algorithm: Algorithm) -> Quota {
    quota(limit, 24 * HOUR, algorithm)
}

pub(crate) fn quota(limit: u64, window: Duration, algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window,
        algorithm,
        allowance: Allowance::Hard,
    })
    .expect("valid")
}

/// A charge of 1 to the counter of a caller.
pub(crate) fn charge<'a>(caller: &'a [&'a str], quota: &'a Quota, on_full: OnFull) -> Charge<'a> {
    Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: caller,
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full,
        consistency: Consistency::Strict,
    }
}
