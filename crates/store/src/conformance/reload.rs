//! A limit whose numbers change while its counters live on.

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{Decision, Headroom, Meter, Quota, QuotaSpec, Time};

use super::Subject;
use super::bench::{Bench, enforce, key};
use super::history::{
    Advance, Cost, Course, cost, for_all, forwards, headroom, related_specs, start,
};
use crate::{Charge, Charging};

/// A request at the numbers in force, or at the next ones.
#[derive(Clone, Copy, Debug)]
struct Step {
    reloads: bool,
    advance: Advance,
    cost: Cost,
    headroom: Headroom,
}

/// Whatever numbers follow each other, from such as fit a machine word to such as do not and back:
/// the next decision is that of the new numbers on the old counts.
pub fn changed_numbers_apply_to_the_old_counts<S: Subject>() {
    let steps = prop::collection::vec(step(), 1..60);
    for_all::<S, _>(
        500,
        (related_specs::<S>(), start::<S>(), steps),
        |(specs, start, steps)| check::<S>(&specs, start, &steps),
    );
}

fn check<S: Subject>(
    specs: &[QuotaSpec],
    start: Time,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut quotas = specs
        .iter()
        .map(|spec| Quota::new(spec).expect("valid"))
        .cycle();
    let mut quota = quotas.next().expect("some quotas");
    let mut counter = Counter::new(quota.clone());
    let mut course = Course::new(&quota, S::grain());
    let mut bench = Bench::<S>::at(start);
    let mut now = start;
    for step in steps {
        if step.reloads {
            quota = quotas.next().expect("round and round");
            counter.change_quota(quota.clone());
        }
        now = course.advance(now, step.advance);
        bench.set_time(now);
        let cost = course.cost(step.cost);
        let looked = counter.decide(cost, step.headroom, now, Commit::Nothing);
        let commit = commit(&quota, cost, &looked);
        let expected = counter.decide(cost, step.headroom, now, commit);
        let charge = Charge {
            headroom: step.headroom,
            ..enforce(key(1, &["caller"]), &quota, cost)
        };
        let (_, decisions) = bench.charge(&[charge], Charging::AllOrNone);
        prop_assert_eq!(
            decisions[0],
            expected,
            "cost {} at {:?} of {:?}",
            cost,
            now,
            quota
        );
        course.learn(expected);
    }
    Ok(())
}

/// A refusal under smaller numbers does not take from what larger ones remember. What it may leave
/// is an entry in a log and, of a bucket too far ahead, that it counts as used up from now on.
fn commit(quota: &Quota, cost: u64, decision: &Decision) -> Commit {
    // A postpaid limit is charged whatever it says.
    if quota.is_postpaid() && cost > 0 {
        return Commit::Charge;
    }
    let leaves_a_trace = matches!(
        quota.meter(),
        Meter::TokenBucket(_) | Meter::LeakyBucket(_) | Meter::SlidingLog(_)
    );
    if cost > 0 && (decision.is_allowed() || leaves_a_trace) {
        Commit::Charge
    } else {
        Commit::Nothing
    }
}

fn step() -> impl Strategy<Value = Step> {
    (prop::bool::weighted(0.2), forwards(), cost(), headroom()).prop_map(
        |(reloads, advance, cost, headroom)| Step {
            reloads,
            advance,
            cost,
            headroom,
        },
    )
}
