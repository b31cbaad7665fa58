//! Rules that replace others: every store of the node must be able to count their limits.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Time};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OldCounters, OnFull,
    Store, StoreConfig, StoreError,
};

use crate::subject::{LoneNode, at_once};

const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// Pairs of algorithm and window that one store tells apart.
const PAIRS: u64 = 1_022;

fn per_minutes(minutes: u64) -> Quota {
    Quota::new(&QuotaSpec {
        limit: 2,
        window: Duration::from_mins(minutes),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .unwrap()
}

fn charge(node: &LoneNode, quota: &Quota, consistency: Consistency) -> bool {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(quota.window().as_nanos()),
            values: &["caller"],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Shared,
        consistency,
    };
    let (charges, mut decisions) = ([charge], Decisions::new());
    let charged = node
        .store
        .charge(&charges, Charging::AllOrNone, &mut decisions);
    at_once(charged).unwrap();
    decisions[0].is_allowed()
}

/// While counters of earlier limits use all numbers of a store, rules with a further window are rejected for it and for
/// no other store. The earlier limits go on counting, and the rules fit when those windows are over.
#[test]
fn rules_that_do_not_fit_one_store_are_rejected() {
    for (consistency, other) in [
        (Consistency::Node, Consistency::Strict),
        (Consistency::Strict, Consistency::Node),
        (Consistency::Eventual, Consistency::Strict),
    ] {
        // Without memory for totals, the share of an eventual limit is charged.
        let node = LoneNode::with_eventual_memory(START, StoreConfig { max_memory: 0 });
        let earlier: Vec<_> = (1_000..1_000 + PAIRS).map(per_minutes).collect();
        for quota in &earlier {
            assert!(charge(&node, quota, consistency), "{consistency:?}");
        }
        let further = per_minutes(1);
        let reserve = |consistency| {
            node.store.reserve(
                &mut [(&further, consistency)].into_iter(),
                OldCounters::Keep,
            )
        };
        let error = Err(StoreError::TooManyWindows { most: 1_022 });
        assert_eq!(reserve(consistency), error, "{consistency:?}");
        assert_eq!(reserve(other), Ok(()), "{other:?}");
        let mut both = [(&further, other), (&further, consistency)].into_iter();
        assert_eq!(
            node.store.reserve(&mut both, OldCounters::Keep),
            error,
            "{consistency:?}"
        );
        let last = &earlier[earlier.len() - 1];
        let allowed = [(); 2].map(|()| charge(&node, last, consistency));
        assert_eq!(allowed, [true, false], "{consistency:?}");
        node.set(START.plus(Duration::from_hours(24 * 3)));
        assert_eq!(reserve(consistency), Ok(()), "{consistency:?}");
        let allowed = [(); 3].map(|()| charge(&node, &further, consistency));
        assert_eq!(allowed, [true, true, false], "{consistency:?}");
    }
}
