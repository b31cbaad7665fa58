//! A store, its callers and its snapshots.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Percent, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, Restored, SnapshotError, StoreConfig,
};

pub(crate) const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

pub(crate) const MIB: usize = 1 << 20;

pub(crate) type ManualStore = EmbeddedStore<ManualClock>;

pub(crate) fn new_store(max_memory: usize) -> ManualStore {
    EmbeddedStore::with_clock(StoreConfig { max_memory }, ManualClock::at(START))
}

pub(crate) fn snapshot(store: &EmbeddedStore<impl Clock>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = store
        .write_snapshot(&mut bytes)
        .expect("memory to write to");
    assert_eq!(written.bytes, bytes.len() as u64);
    bytes
}

pub(crate) fn restore(
    max_memory: usize,
    now: Time,
    bytes: &[u8],
) -> Result<(ManualStore, Restored), SnapshotError> {
    EmbeddedStore::restore(StoreConfig { max_memory }, ManualClock::at(now), bytes)
}

/// Charges the counter of `caller` under a limit.
pub(crate) fn charge(
    store: &EmbeddedStore<impl Clock>,
    counter: (usize, &str),
    quota: &Quota,
    cost: u64,
) -> Decision {
    charge_with(store, counter, quota, (cost, OnFull::Deny))
}

/// Charges 1, and goes by `on_full` if there is no room.
pub(crate) fn charge_on_full(
    store: &EmbeddedStore<impl Clock>,
    counter: (usize, &str),
    quota: &Quota,
    on_full: OnFull,
) -> Decision {
    charge_with(store, counter, quota, (1, on_full))
}

fn charge_with(
    store: &EmbeddedStore<impl Clock>,
    (limit, caller): (usize, &str),
    quota: &Quota,
    (cost, on_full): (u64, OnFull),
) -> Decision {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(limit as u128),
            values: &[caller],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full,
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    let receipt = store.charge_now(&[charge], Charging::AllOrNone, &mut decisions);
    receipt.expect("a decision");
    decisions[0]
}

/// `limit` an hour.
pub(crate) fn per_hour(limit: u64, algorithm: Algorithm) -> Quota {
    quota(limit, algorithm, Allowance::Hard)
}

/// A limit of each algorithm, and of each form a state can have: in a slot, in a block, a log, and
/// counts of sub-windows.
pub(crate) fn quotas() -> Vec<Quota> {
    let bucket = |refill| Algorithm::TokenBucket {
        burst: None,
        refill,
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Down,
    };
    let soft = Allowance::Soft {
        over: Percent(50),
        only_for: Some(Duration::from_mins(5)),
    };
    let all = [
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::LeakyBucket { queue: Some(4) },
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: true },
        counter(1),
        counter(12),
    ];
    let hard = all.map(|algorithm| per_hour(5, algorithm));
    let soft = all.map(|algorithm| quota(7, algorithm, soft));
    hard.into_iter().chain(soft).collect()
}

fn quota(limit: u64, algorithm: Algorithm, allowance: Allowance) -> Quota {
    Quota::new(&QuotaSpec {
        limit,
        window: Duration::from_hours(1),
        algorithm,
        allowance,
    })
    .expect("a valid quota")
}
