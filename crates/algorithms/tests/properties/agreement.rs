//! The algorithms and the oracle agree, decision by decision.

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Oracle;
use tidegate_algorithms::{Quota, QuotaSpec};

use crate::history::{Act, Course, Step, cases, spec, start, steps};

fn check(spec: &QuotaSpec, start: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let quota = Quota::new(spec).expect("valid");
    let mut course = Course::new(&quota, start);
    let mut counter = Counter::new(quota);
    let mut oracle = Oracle::new(spec).expect("valid");
    for (n, step) in steps.iter().enumerate() {
        course.advance(&step.advance);
        let now = course.now;
        match &step.act {
            Act::Refund { cost, charge } => {
                let (cost, to) = (course.cost(cost), course.refund_to(*charge));
                counter.refund(cost, to, now);
                oracle.refund(cost, to, now);
            }
            Act::Request {
                cost,
                headroom,
                commit,
            } => {
                let cost = course.cost(cost);
                let expected = oracle.decide(cost, *headroom, now, *commit);
                let decision = counter.decide(cost, *headroom, now, *commit);
                prop_assert_eq!(decision, expected, "step {}: cost {} at {:?}", n, cost, now);
                course.learn(decision);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// Whatever the quota, the costs, the order of charges, looks and refunds, and however the clock
    /// jumps: each decision is, in every field, what the oracle finds by trying.
    #[test]
    fn every_decision_is_the_oracles(spec in spec(), start in start(), steps in steps()) {
        check(&spec, start, &steps)?;
    }
}
