//! Refunds that come when the window of their charge may be over.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Headroom, QuotaSpec, Refill, RefundTo, Time,
};

use super::Subject;
use super::bench::{ALGORITHMS, Bench, key, quota};
use super::history::{Advance, Cost, Course, cost, for_all, forwards, spec, start};

/// Midnight of a day in the year 2027.
const MIDNIGHT: Time = Time::from_nanos(1_800_057_600_000_000_000);

const SECOND: Duration = Duration::from_secs(1);

const DAY: Duration = Duration::from_hours(24);

/// One thing that happens to a counter, after the clock has moved.
#[derive(Clone, Copy, Debug)]
enum Act {
    Charge(Cost),
    /// Of one of the charges that are not refunded yet, counted from the last.
    Refund {
        charge: usize,
    },
}

/// Five a day: one is charged at 23:59:59 and two at midnight; at 00:00:01 the first is refunded, and one of the two.
pub fn a_late_refund_goes_to_the_window_of_its_charge<S: Subject>() {
    for algorithm in ALGORITHMS {
        let five = quota(&QuotaSpec {
            limit: 5,
            window: DAY,
            algorithm,
            allowance: Allowance::Hard,
        });
        let mut bench = Bench::<S>::at(Time::from_nanos(MIDNIGHT.nanos() - 1_000_000_000));
        let ann = key(1, &["ann"]);
        let (_, first) = bench.take_stamped(ann, &five, 1);
        bench.set_time(MIDNIGHT);
        let (_, second) = bench.take_stamped(ann, &five, 2);
        bench.advance(SECOND);
        let before = bench.peek(ann, &five).remaining;
        for stamp in [first, second] {
            let to = RefundTo::Charge(stamp.expect("allowed"));
            bench.refund_to(ann, &five, 1, to);
        }
        let remaining = bench.peek(ann, &five).remaining;
        let expected = match algorithm {
            // Of the first nothing was left: its day is over, the portion of midnight made up for it, or what is
            // weighed of yesterday is rounded down. One of the two of today is back.
            Algorithm::FixedWindow
            | Algorithm::SlidingCounter { sub_windows: 1, .. }
            | Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => (3, 4),
            // A bucket takes back both, less by three seconds in all; a queue only its last departure.
            Algorithm::TokenBucket { .. } | Algorithm::LeakyBucket { .. } => (2, 3),
            // Both are still counted, each by itself.
            Algorithm::SlidingLog { .. } | Algorithm::SlidingCounter { .. } => (2, 4),
        };
        assert_eq!((before, remaining), expected, "{algorithm:?}");
    }
}

/// Whatever is charged and refunded late: all that a limit allowed and that was not refunded, one that never saw
/// the rest allows too. So no window has more than the algorithm promises.
pub fn late_refunds_make_no_room_of_their_own<S: Subject>() {
    let act = prop_oneof![
        2 => cost().prop_map(Act::Charge),
        1 => (0..8_usize).prop_map(|charge| Act::Refund { charge }),
    ];
    let acts = prop::collection::vec((forwards(), act), 1..60);
    let spec = spec::<S>().prop_map(|spec| QuotaSpec {
        allowance: Allowance::Hard,
        ..spec
    });
    for_all::<S, _>(500, (spec, start::<S>(), acts), |(spec, start, acts)| {
        let mut oracle = Oracle::new(&spec).expect("valid");
        for (stamp, cost) in net_charges::<S>(&spec, start, &acts) {
            let decision = oracle.decide(cost, Headroom::Absent, stamp.at, Commit::Charge);
            prop_assert!(decision.is_allowed(), "{} at {:?}", cost, stamp.at);
        }
        Ok(())
    });
}

/// What is left of a history of charges and refunds, in order of time.
fn net_charges<S: Subject>(
    spec: &QuotaSpec,
    start: Time,
    acts: &[(Advance, Act)],
) -> Vec<(ChargeStamp, u64)> {
    let (quota, ann) = (quota(spec), key(1, &["ann"]));
    let mut course = Course::new(&quota, S::grain());
    let mut bench = Bench::<S>::at(start);
    let mut charges = Vec::new();
    for (advance, act) in acts {
        bench.set_time(course.advance(bench.now(), *advance));
        match act {
            Act::Charge(cost) => {
                let cost = course.cost(*cost);
                let (decision, stamp) = bench.take_stamped(ann, &quota, cost);
                course.learn(decision);
                charges.extend(stamp.map(|stamp| (stamp, cost)));
            }
            Act::Refund { charge } if *charge < charges.len() => {
                let (stamp, cost) = charges.remove(charges.len() - 1 - charge);
                bench.refund_to(ann, &quota, cost, RefundTo::Charge(stamp));
            }
            Act::Refund { .. } => {}
        }
    }
    charges
}
