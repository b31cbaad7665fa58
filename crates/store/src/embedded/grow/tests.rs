use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec};

use super::*;
use crate::embedded::table::SET_BYTES;
use crate::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, StoreConfig,
};

fn charge(store: &EmbeddedStore<ManualClock>, caller: u32, quota: &Quota, cost: u64) -> u64 {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &[&caller.to_string()],
        },
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    };
    let mut decisions = Decisions::new();
    let receipt = store.charge_now(&[charge], Charging::AllOrNone, &mut decisions);
    receipt.expect("a decision");
    decisions[0].remaining
}

/// However often the table grew, each key is found with what it was charged, and the table is
/// well filled.
#[test]
fn every_key_is_found_after_growth() {
    let quota = Quota::new(&QuotaSpec {
        limit: 10,
        window: std::time::Duration::from_hours(1),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .expect("valid");
    let clock = ManualClock::at(Time::from_nanos(1_800_000_000_000_000_000));
    let store = EmbeddedStore::with_clock(
        StoreConfig {
            max_memory: 8 << 20,
        },
        clock,
    );
    let mut seen = 0;
    for end in [1_000, 10_000, 100_000] {
        for caller in seen..end {
            assert_eq!(
                charge(&store, caller, &quota, 1 + u64::from(caller % 3)),
                9 - u64::from(caller % 3)
            );
        }
        seen = end;
        for caller in 0..seen {
            assert_eq!(
                charge(&store, caller, &quota, 0),
                9 - u64::from(caller % 3),
                "{caller}"
            );
        }
    }
    let slots = store.stats().used_bytes / (SET_BYTES / WAYS) as u64;
    let keys = u64::from(seen);
    assert!(keys * 100 / slots >= 70, "{keys} keys in {slots} slots");
    assert_eq!((store.stats().evicted, store.stats().untracked), (0, 0));
}

/// Keys are laid out in one of their two sets, or the layout says that they do not fit.
#[test]
fn a_layout_keeps_keys_in_their_sets() {
    let key = |n: u64| {
        let hash = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (Tag::new(hash, crate::embedded::layout::LayoutId::new(1)), n)
    };
    let size = 64;
    let keys: Vec<_> = (1..=220).map(key).collect();
    let layout = Layout::of(&keys, size).expect("220 of 256 fit");
    let mut found = 0;
    for (set, slots) in layout.slots.chunks(WAYS).enumerate() {
        for (tag, state) in slots.iter().filter(|(tag, _)| !tag.is_empty()) {
            let (primary, secondary) = choices(tag.fingerprint(), size);
            assert!([primary, secondary].contains(&u32::try_from(set).expect("small")));
            assert_eq!(key(*state).0, *tag);
            found += 1;
        }
    }
    assert_eq!(found, keys.len());
    let too_many: Vec<_> = (1..=257).map(key).collect();
    assert!(Layout::of(&too_many, size).is_none());
}
