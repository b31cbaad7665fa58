//! The worked examples of the literature through the scripts.

#[path = "../../../algorithms/vectors/vectors.rs"]
mod examples;

use tidegate_algorithms::{Headroom, Quota, Time};
use tidegate_store::conformance::Subject;
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull, Store,
};

use crate::joined::at_once;
use crate::subject::Single;
use examples::Vector;

/// Several callers who do the same at the same times: alone, a caller's decisions are calls of their own;
/// together, they are joined.
fn check(vector: &Vector, callers: &[[&str; 1]]) {
    let quota = Quota::new(&vector.spec).expect("a valid quota");
    let subject = Single::new(Time::ZERO);
    vector.check(|now, cost| {
        subject.set_time(now);
        let asked = callers.iter().map(async |values| {
            let charge = Charge {
                key: CounterKey {
                    limit: LimitId(1),
                    values,
                },
                quota: &quota,
                cost,
                mode: Mode::Enforce,
                headroom: Headroom::Absent,
                on_full: OnFull::Deny,
                consistency: Consistency::Strict,
            };
            let (charges, mut decisions) = ([charge], Decisions::new());
            let store = subject.store();
            let answer = store.charge(&charges, Charging::AllOrNone, &mut decisions);
            answer.await.expect("a decision");
            decisions[0]
        });
        let decisions = subject.wait(at_once(asked));
        for decision in &decisions {
            assert_eq!(*decision, decisions[0], "all callers are told the same");
        }
        decisions[0]
    });
}

#[test]
fn the_worked_examples_come_out_as_printed() {
    for vector in examples::all() {
        check(&vector, &[["caller"]]);
        check(&vector, &[["one"], ["other"], ["third"]]);
    }
}
