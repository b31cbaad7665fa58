//! The worked examples of the literature through the embedded store.

#[path = "../../algorithms/vectors/vectors.rs"]
mod vectors;

use tidegate_algorithms::{Headroom, Quota};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, ManualClock,
    Mode, OnFull, StoreConfig,
};

#[test]
fn the_worked_examples_come_out_as_printed() {
    for vector in vectors::all() {
        let quota = Quota::new(&vector.spec).expect("a valid quota");
        let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::default());
        vector.check(|now, cost| {
            store.clock().set(now);
            let charge = Charge {
                key: CounterKey {
                    limit: LimitId(1),
                    values: &["caller"],
                },
                quota: &quota,
                cost,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Deny,
                consistency: Consistency::Strict,
            };
            let mut decisions = Decisions::new();
            store
                .charge_now(&[charge], Charging::AllOrNone, &mut decisions)
                .expect("a decision");
            decisions[0]
        });
    }
}
