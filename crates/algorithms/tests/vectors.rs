//! The worked examples of the literature through the algorithms, and through the oracle.

#[path = "../vectors/vectors.rs"]
mod vectors;

use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{Headroom, Quota};

#[test]
fn the_worked_examples_come_out_as_printed() {
    for vector in vectors::all() {
        let mut counter = Counter::new(Quota::new(&vector.spec).expect("a valid quota"));
        let mut oracle = Oracle::new(&vector.spec).expect("a valid quota");
        vector.check(|now, cost| {
            let decision = counter.decide(cost, Headroom::Absent, now, Commit::Charge);
            let by_trying = oracle.decide(cost, Headroom::Absent, now, Commit::Charge);
            assert_eq!(decision, by_trying);
            decision
        });
    }
}
