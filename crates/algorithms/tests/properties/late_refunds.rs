//! A refund that comes late makes no room that would not be there had the charge never been made.

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{
    Algorithm, ChargeStamp, Headroom, Outcome, Quota, QuotaSpec, RefundTo, Time,
};

use crate::history::{
    Advance, Cost, Course, cases, continuous, cost, counter, forwards, hard_spec, interval, leaky,
    start,
};

/// One thing that happens to a counter, after the clock has moved.
#[derive(Clone, Debug)]
enum Act {
    Charge(Cost),
    /// Of one of the charges that are not refunded yet, counted from the last, so many hundredths.
    Refund {
        charge: usize,
        hundredths: u64,
    },
}

/// A charge, less what was refunded of it.
#[derive(Clone, Copy, Debug)]
struct NetCharge {
    stamp: ChargeStamp,
    cost: u64,
    is_refunded: bool,
    /// When the request may leave.
    departure: u128,
}

fn acts() -> impl Strategy<Value = Vec<(Advance, Act)>> {
    let hundredths = prop_oneof![3 => Just(100), 1 => 0..100_u64];
    let act = prop_oneof![
        2 => cost().prop_map(Act::Charge),
        1 => (0..8_usize, hundredths)
            .prop_map(|(charge, hundredths)| Act::Refund { charge, hundredths }),
    ];
    prop::collection::vec((forwards(), act), 1..120)
}

/// What is left of a history of charges and refunds, in order of time.
fn net_charges(spec: &QuotaSpec, start: u64, acts: &[(Advance, Act)]) -> Vec<NetCharge> {
    let quota = Quota::new(spec).expect("valid");
    let mut course = Course::new(&quota, start);
    let mut counter = Counter::new(quota);
    let mut charges: Vec<NetCharge> = Vec::new();
    for (advance, act) in acts {
        course.advance(advance);
        let now = course.now;
        match act {
            Act::Charge(cost) => {
                let cost = course.cost(cost);
                let decision = counter.decide(cost, Headroom::Absent, now, Commit::Charge);
                course.learn(decision);
                if let Outcome::Allowed { delay, .. } = decision.outcome {
                    charges.push(NetCharge {
                        stamp: ChargeStamp::new(now, &decision),
                        cost,
                        is_refunded: false,
                        departure: u128::from(now.nanos()) + delay.as_nanos(),
                    });
                }
            }
            Act::Refund { charge, hundredths } => {
                let mut open = charges.iter_mut().filter(|charge| !charge.is_refunded);
                if let Some(charge) = open.nth_back(*charge) {
                    let cost = u128::from(charge.cost) * u128::from(*hundredths) / 100;
                    let cost = u64::try_from(cost).expect("no more than it was");
                    counter.refund(cost, RefundTo::Charge(charge.stamp), now);
                    charge.cost -= cost;
                    charge.is_refunded = true;
                }
            }
        }
    }
    charges
}

fn check(spec: &QuotaSpec, start: u64, acts: &[(Advance, Act)]) -> Result<(), TestCaseError> {
    let charges = net_charges(spec, start, acts);
    let mut oracle = Oracle::new(spec).expect("valid");
    for charge in &charges {
        let NetCharge { stamp, cost, .. } = *charge;
        let decision = oracle.decide(cost, Headroom::Absent, stamp.at, Commit::Charge);
        prop_assert!(decision.is_allowed(), "{charge:?} beside {charges:?}");
    }
    Ok(())
}

fn any_log() -> impl Strategy<Value = Algorithm> {
    any::<bool>().prop_map(|log_refused| Algorithm::SlidingLog { log_refused })
}

proptest! {
    #![proptest_config(cases(600))]

    /// All that a token bucket allowed and that was not refunded, a bucket that never saw the rest
    /// allows too: so it is no more than the burst and the rate times the length, over any length.
    #[test]
    fn token_bucket(spec in hard_spec(continuous()), start in start(), acts in acts()) {
        check(&spec, start, &acts)?;
    }

    /// The same of a bucket that is refilled in portions.
    #[test]
    fn interval_bucket(spec in hard_spec(interval()), start in start(), acts in acts()) {
        check(&spec, start, &acts)?;
    }

    /// The same of a queue; and those that are left leave in order, never faster than the rate.
    #[test]
    fn leaky_bucket(spec in hard_spec(leaky()), start in start(), acts in acts()) {
        check(&spec, start, &acts)?;
        let (window, limit) = (spec.window.as_nanos(), u128::from(spec.limit));
        let mut charges = net_charges(&spec, start, &acts);
        charges.retain(|charge| charge.cost > 0);
        for pair in charges.windows(2) {
            let [one, next] = pair else { unreachable!() };
            // Moments are rounded up to a nanosecond, so two may be less than one too close.
            let apart = next.departure.checked_sub(one.departure).expect("in order") + 1;
            prop_assert!(apart * limit > u128::from(one.cost) * window);
        }
    }

    /// The same of a fixed window: so it is no more than the limit in any of them.
    #[test]
    fn fixed_window(
        spec in hard_spec(Just(Algorithm::FixedWindow)), start in start(), acts in acts(),
    ) {
        check(&spec, start, &acts)?;
    }

    /// The same of a log: so it is no more than the limit in any window.
    #[test]
    fn sliding_log(spec in hard_spec(any_log()), start in start(), acts in acts()) {
        check(&spec, start, &acts)?;
    }

    /// The same of a sliding counter, of two windows or of many sub-windows.
    #[test]
    fn sliding_counter(spec in hard_spec(counter()), start in start(), acts in acts()) {
        check(&spec, start, &acts)?;
    }
}

/// The histories above do refund after the fact, and what is refunded is used again.
#[test]
fn the_histories_use_what_is_refunded() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (hard_spec(Just(Algorithm::FixedWindow)), acts());
    let used_again = (0..300).filter(|_| {
        let tree = strategy.new_tree(&mut runner).expect("a case");
        let (spec, acts) = proptest::strategy::ValueTree::current(&tree);
        let start = Time::from_nanos(crate::history::nanos(spec.window)).nanos();
        let without: Vec<_> = acts
            .iter()
            .filter(|(_, act)| matches!(act, Act::Charge(_)))
            .cloned()
            .collect();
        net_charges(&spec, start, &acts).len() > net_charges(&spec, start, &without).len()
    });
    assert!(used_again.count() > 20);
}
