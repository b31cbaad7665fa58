//! Eventual limits whose table has no room for a counter.

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_store::report::StoreHealth;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull, Store, StoreConfig,
};

use crate::subject::{LoneNode, at_once, per_day};

fn charge(limit: LimitId, quota: &Quota, consistency: Consistency) -> Charge<'_> {
    Charge {
        key: CounterKey {
            limit,
            values: &["caller"],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Shared,
        consistency,
    }
}

/// The share that is charged in place of the table is refunded when another limit denies the request.
#[test]
fn a_denied_request_costs_the_share_nothing() {
    let start = Time::from_nanos(1_800_000_000_000_000_000);
    let node = LoneNode::with_eventual_memory(start, StoreConfig { max_memory: 0 });
    let (five, none) = (per_day(5), per_day(0));
    let eventual = charge(LimitId(1), &five, Consistency::Eventual);
    let closed = charge(LimitId(2), &none, Consistency::Node);
    let is_allowed = |charges: &[Charge<'_>]| {
        let mut decisions = Decisions::new();
        let charged = node
            .store
            .charge(charges, Charging::AllOrNone, &mut decisions);
        at_once(charged).unwrap();
        decisions.iter().all(Decision::is_allowed)
    };
    assert_eq!(node.store.health(), StoreHealth::Whole);
    for _ in 0..20 {
        assert!(!is_allowed(&[eventual, closed]));
    }
    let allowed = (0..10).filter(|_| is_allowed(&[eventual])).count();
    assert_eq!(allowed, 5);
    assert_eq!(node.store.health(), StoreHealth::Full);
    assert_eq!(node.store.report().untracked(), 30);
}
