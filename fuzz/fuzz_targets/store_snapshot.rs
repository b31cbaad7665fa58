//! Any bytes as a snapshot, with checksums that are right: it is refused, or it is a store that decides
//! without a panic and can be written and read again.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use siphasher::sip::SipHasher13;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, StoreConfig,
};

/// When the seed was written.
const NOW: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Magic and version.
const HEAD: usize = 12;

fuzz_target!(|bytes: &[u8]| {
    let Ok(store) = restore(&seal(bytes)) else {
        return;
    };
    for (limit, quota) in quotas().iter().enumerate() {
        for caller in ["ann", "bob"] {
            charge(&store, limit, caller, quota);
        }
    }
    let mut written = Vec::new();
    store.write_snapshot(&mut written).expect("memory");
    restore(&written).expect("what was just written");
});

fn restore(bytes: &[u8]) -> Result<EmbeddedStore<ManualClock>, tidegate_store::SnapshotError> {
    let config = StoreConfig {
        max_memory: 1 << 20,
    };
    EmbeddedStore::restore(config, ManualClock::at(NOW), bytes).map(|(store, _)| store)
}

/// The same frames with checksums that are right.
fn seal(bytes: &[u8]) -> Vec<u8> {
    let (head, mut rest) = bytes.split_at(bytes.len().min(HEAD));
    let mut sealed = head.to_vec();
    let mut sum = 1;
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let asked = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (body, after) = after.split_at(asked.min(after.len()));
        let length = body.len() as u64;
        sum = SipHasher13::new_with_keys(sum, length).hash(body);
        sealed.extend_from_slice(&length.to_le_bytes());
        sealed.extend_from_slice(body);
        sealed.extend_from_slice(&sum.to_le_bytes());
        rest = &after[after.len().min(8)..];
    }
    sealed
}

fn charge(store: &EmbeddedStore<ManualClock>, limit: usize, caller: &str, quota: &Quota) {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(limit as u128),
            values: &[caller],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    store
        .charge_now(&[charge], Charging::AllOrNone, &mut decisions)
        .expect("a decision");
}

/// The limits of the seed, in its order.
fn quotas() -> Vec<Quota> {
    let bucket = |refill| Algorithm::TokenBucket {
        burst: None,
        refill,
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Down,
    };
    let algorithms = [
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        Algorithm::LeakyBucket { queue: Some(4) },
        Algorithm::FixedWindow,
        Algorithm::SlidingLog { log_refused: true },
        counter(1),
        counter(12),
    ];
    let quota = |algorithm| {
        Quota::new(&QuotaSpec {
            limit: 5,
            window: Duration::from_hours(1),
            algorithm,
            allowance: Allowance::Hard,
        })
    };
    algorithms
        .into_iter()
        .filter_map(|it| quota(it).ok())
        .collect()
}
