//! One limit, every algorithm and allowance, against the oracle.

use proptest::prelude::*;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{ChargeStamp, Headroom, Quota, QuotaSpec, RefundTo, Time};

use super::Subject;
use super::bench::{Bench, enforce, key};
use super::history::{Advance, Cost, Course, anywhere, cost, for_all, headroom, spec, start};
use crate::{Charge, Charging};

/// One thing that happens to a counter, after the clock has moved.
#[derive(Clone, Copy, Debug)]
struct Step {
    advance: Advance,
    act: Act,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Charge {
        cost: Cost,
        headroom: Headroom,
    },
    Peek {
        headroom: Headroom,
    },
    /// Without a receipt, or of one of the charges so far, counted from the last.
    Refund {
        cost: Cost,
        charge: Option<usize>,
    },
    Reset,
}

/// A counter in the store and in the oracle.
struct Pair<S> {
    bench: Bench<S>,
    oracle: Oracle,
    quota: Quota,
    course: Course,
    charges: Vec<ChargeStamp>,
    now: Time,
    /// Whether the last act wrote the counter as of now. Only then may the clock step back: what a
    /// store forgets of an old window when it merely looks is its own affair.
    is_settled: bool,
}

/// Whatever the quota, the costs, the order of charges, looks, refunds and resets, and however the
/// clock jumps: each decision is, in every field, what the oracle finds by trying.
pub fn one_limit_decides_as_the_oracle<S: Subject>() {
    let steps = prop::collection::vec(step(), 1..60);
    let charging = prop_oneof![
        3 => Just(Charging::AllOrNone),
        1 => Just(Charging::EveryMatch),
    ];
    for_all::<S, _>(
        1_000,
        (spec::<S>(), start::<S>(), charging, steps),
        |(spec, start, charging, steps)| {
            let mut pair = Pair::<S>::new(&spec, start);
            steps
                .into_iter()
                .try_for_each(|step| pair.check(&spec, step, charging))
        },
    );
}

// === impl Pair ===

impl<S: Subject> Pair<S> {
    fn new(spec: &QuotaSpec, now: Time) -> Self {
        let quota = Quota::new(spec).expect("valid");
        Self {
            bench: Bench::at(now),
            oracle: Oracle::new(spec).expect("valid"),
            course: Course::new(&quota, S::grain()),
            quota,
            charges: Vec::new(),
            now,
            is_settled: false,
        }
    }

    fn check(
        &mut self,
        spec: &QuotaSpec,
        step: Step,
        charging: Charging,
    ) -> Result<(), TestCaseError> {
        if self.is_settled || !matches!(step.advance, Advance::Back(_)) {
            self.now = self.course.advance(self.now, step.advance);
            self.bench.set_time(self.now);
        }
        self.is_settled = false;
        let counter = key(1, &["caller"]);
        match step.act {
            Act::Charge { cost, headroom } => self.charge(cost, headroom, charging)?,
            Act::Peek { headroom } => {
                let expected = self.oracle.look(headroom, self.now);
                let decision = self.bench.peek_with(counter, &self.quota, headroom);
                prop_assert_eq!(decision, expected, "a look at {:?}", self.now);
            }
            // A count that reached the end of its field by refusals has forgotten by how much.
            Act::Refund { .. } if charging == Charging::EveryMatch => {}
            Act::Refund { cost, charge } => {
                let cost = self.course.cost(cost);
                let stamp = charge.and_then(|nth| self.charges.iter().nth_back(nth));
                let to = stamp.map_or(RefundTo::Current, |stamp| RefundTo::Charge(*stamp));
                self.oracle.refund(cost, to, self.now);
                self.bench.refund_to(counter, &self.quota, cost, to);
            }
            Act::Reset => {
                self.oracle = Oracle::new(spec).expect("valid");
                self.bench.reset(counter, &self.quota);
            }
        }
        Ok(())
    }

    fn charge(
        &mut self,
        cost: Cost,
        headroom: Headroom,
        charging: Charging,
    ) -> Result<(), TestCaseError> {
        let cost = self.course.cost(cost);
        let commit = match (cost, charging) {
            (0, _) => Commit::Nothing,
            (_, Charging::AllOrNone) => Commit::Charge,
            (_, Charging::EveryMatch) => Commit::CountRefused,
        };
        let expected = self.oracle.decide(cost, headroom, self.now, commit);
        let charge = Charge {
            headroom,
            ..enforce(key(1, &["caller"]), &self.quota, cost)
        };
        let (_, decisions) = self.bench.charge(&[charge], charging);
        prop_assert_eq!(decisions[0], expected, "cost {} at {:?}", cost, self.now);
        self.is_settled = cost > 0 && expected.is_allowed();
        if self.is_settled {
            self.charges.push(ChargeStamp::new(self.now, &expected));
        }
        self.course.learn(expected);
        Ok(())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        12 => (cost(), headroom()).prop_map(|(cost, headroom)| Act::Charge { cost, headroom }),
        1 => headroom().prop_map(|headroom| Act::Peek { headroom }),
        2 => (cost(), prop::option::of(0..6_usize))
            .prop_map(|(cost, charge)| Act::Refund { cost, charge }),
        1 => Just(Act::Reset),
    ];
    (anywhere(), act).prop_map(|(advance, act)| Step { advance, act })
}
