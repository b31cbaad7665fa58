//! Loans: whatever is drawn, given back and charged in whatever order, what is not given back fits the limit.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Meter, Percent, Quota, QuotaSpec, Refill, Rounding, Time,
};

use super::Subject;
use super::bench::{Bench, MINUTE, START, TOKEN_BUCKET, key, per_minute};
use super::history::{Advance, Cost, Course, for_all};
use crate::{CounterKey, Draw, Lender, Loan};

const ANN: CounterKey<'_> = key(1, &["ann"]);

/// A loan lives for one in so many windows: the longest that a bucket's may.
const LIVES: u32 = 16;

/// One thing that happens to a counter, after the clock has moved.
#[derive(Clone, Copy, Debug)]
struct Step {
    advance: Advance,
    act: Act,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Draw {
        least: u64,
        /// Thousandths of the limit.
        most: u64,
        one_in: u32,
        reserve: u64,
        spent: Spent,
    },
    /// Gives back thousandths of what is left of a loan, of the newest or so many before it.
    GiveBack {
        before: usize,
        part: u64,
    },
    Take(Cost),
}

/// When permits that are not given back are spent.
#[derive(Clone, Copy, Debug)]
enum Spent {
    AtOnce,
    AtTheEnd,
}

/// Permits that are out.
#[derive(Clone, Copy, Debug)]
struct Out {
    loan: Loan,
    permits: u64,
    spent: Spent,
}

/// Counters in the store, and all that was admitted.
struct World<S> {
    bench: Bench<S>,
    quota: Quota,
    course: Course,
    out: Vec<Out>,
    charged: Vec<(Time, u64)>,
}

/// Two loans are drawn together, the first is given back at once, and but for the second the bucket has been
/// full since: what has dripped in meanwhile is not there on top of a full bucket.
pub fn loans_given_back_apart_hide_nothing_from_each_other<S: Subject<Store: Lender>>() {
    let mut bench = Bench::<S>::new();
    let hundred = per_minute(100, TOKEN_BUCKET);
    let [first, second] = [20, 20].map(|permits| bench.draw(ANN, &hundred, all_of(permits)));
    bench.give_back(ANN, &hundred, &first, first.permits);
    assert_eq!(bench.peek(ANN, &hundred).remaining, 80);
    bench.advance(Duration::from_secs(3));
    assert!(bench.take(ANN, &hundred, 85).is_allowed(), "5 dripped in");
    bench.give_back(ANN, &hundred, &second, second.permits);
    assert_eq!(bench.peek(ANN, &hundred).remaining, 15, "100 in all");
    // A third one that was drawn since is not held against them.
    let third = bench.draw(ANN, &hundred, all_of(10));
    bench.give_back(ANN, &hundred, &third, third.permits);
    assert_eq!(bench.peek(ANN, &hundred).remaining, 15);
}

/// What was given back makes a bucket full, which forgets its counter: a loan from before is not given back to
/// the next one.
pub fn a_bucket_that_was_full_takes_nothing_back<S: Subject<Store: Lender>>() {
    let mut bench = Bench::<S>::new();
    let hundred = per_minute(100, TOKEN_BUCKET);
    let [first, second] = [3, 40].map(|permits| bench.draw(ANN, &hundred, all_of(permits)));
    bench.give_back(ANN, &hundred, &second, second.permits);
    bench.advance(Duration::from_secs(2));
    assert_eq!(bench.peek(ANN, &hundred).remaining, 100, "3 dripped in");
    assert!(bench.take(ANN, &hundred, 60).is_allowed());
    bench.give_back(ANN, &hundred, &first, first.permits);
    assert_eq!(bench.peek(ANN, &hundred).remaining, 40);
}

/// Random histories of draws, charges and loans given back in parts, late, never: replayed at the instants at
/// which they are spent, or of a bucket drawn, all permits that were not given back fit the limit.
pub fn what_is_not_given_back_fits_the_limit<S: Subject<Store: Lender>>() {
    let scene = prop_oneof![2 => step().prop_map(|step| vec![step]), 1 => loans_apart()];
    let scenes = prop::collection::vec(scene, 5..30);
    for_all::<S, _>(600, (spec(), scenes), |(spec, scenes)| {
        let mut world = World::<S>::new(&spec);
        for step in scenes.into_iter().flatten() {
            world.step(step);
        }
        world.check()
    });
}

// === impl World ===

impl<S: Subject<Store: Lender>> World<S> {
    fn new(spec: &QuotaSpec) -> Self {
        let quota = Quota::new(spec).expect("valid");
        Self {
            bench: Bench::at(START),
            course: Course::new(&quota, S::grain()),
            quota,
            out: Vec::new(),
            charged: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let now = self.course.advance(self.bench.now(), step.advance);
        self.bench.set_time(now);
        match step.act {
            Act::Draw {
                least,
                most,
                one_in,
                reserve,
                spent,
            } => {
                let draw = Draw {
                    least,
                    most: least + self.quota.limit() * most / 1_000,
                    one_in,
                    reserve,
                    life: self.quota.window() / LIVES,
                };
                let loan = self.bench.draw(ANN, &self.quota, draw);
                let permits = loan.permits;
                self.out.push(Out {
                    loan,
                    permits,
                    spent,
                });
            }
            Act::GiveBack { before, part } => {
                let Some(out) = self.out.iter_mut().nth_back(before) else {
                    return;
                };
                let back = (out.permits * part).div_ceil(1_000);
                out.permits -= back;
                let loan = out.loan;
                self.bench.give_back(ANN, &self.quota, &loan, back);
            }
            Act::Take(cost) => {
                self.course.learn(self.bench.peek(ANN, &self.quota));
                let cost = self.course.cost(cost);
                if self.bench.take(ANN, &self.quota, cost).is_allowed() {
                    self.charged.push((now, cost));
                }
            }
        }
    }

    fn check(mut self) -> Result<(), TestCaseError> {
        for out in self.out {
            let is_bucket = matches!(self.quota.meter(), Meter::TokenBucket(_));
            let last = out.loan.ends.nanos().saturating_sub(S::grain());
            let at = match out.spent {
                Spent::AtTheEnd if !is_bucket => Time::from_nanos(last).max(out.loan.now),
                _ => out.loan.now,
            };
            self.charged.push((at, out.permits));
        }
        self.charged.sort_unstable();
        let mut counter = Counter::new(self.quota);
        for (at, cost) in self.charged {
            let decision = counter.decide(cost, Headroom::Absent, at, Commit::Charge);
            prop_assert!(decision.is_allowed(), "{} at {:?} are too many", cost, at);
        }
        Ok(())
    }
}

/// A draw of so many, if they are there.
fn all_of(permits: u64) -> Draw {
    Draw {
        least: permits,
        most: permits,
        one_in: 1,
        reserve: 0,
        life: MINUTE / LIVES,
    }
}

/// Loans that are drawn from a full bucket and given back one after the other, while others take what there is.
fn loans_apart() -> impl Strategy<Value = Vec<Step>> {
    let draw = (1..3_u64, 0..500_u64).prop_map(|(least, most)| Act::Draw {
        least,
        most,
        one_in: 1,
        reserve: 0,
        spent: Spent::AtOnce,
    });
    let back = (0..3_usize).prop_map(|before| Act::GiveBack {
        before,
        part: 1_000,
    });
    let take_all = Just(Act::Take(Cost::Remaining(0)));
    let pause = prop_oneof![Just(0), 0..30_u64].prop_map(Advance::Window);
    let act = prop_oneof![2 => back, 1 => take_all];
    let then = prop::collection::vec((pause, act), 3..9);
    (prop::collection::vec(draw, 2..4), then).prop_map(|(draws, then)| {
        let draws = draws.into_iter().map(|act| (Advance::Stay, act));
        let mut scene: Vec<_> = draws.chain(then).collect();
        scene[0].0 = Advance::Window(2_000);
        scene
            .into_iter()
            .map(|(advance, act)| Step { advance, act })
            .collect()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let spent = prop_oneof![Just(Spent::AtOnce), Just(Spent::AtTheEnd)];
    let reserve = prop_oneof![2 => Just(0), 1 => 0..100_u64];
    let draw = (1..3_u64, 0..500_u64, 1..5_u32, reserve, spent);
    let part = prop_oneof![2 => Just(1_000_u64), 1 => 0..1_000_u64];
    let cost = prop_oneof![
        2 => Just(Cost::Remaining(0)),
        2 => (1..6_u64).prop_map(Cost::Units),
    ];
    let act = prop_oneof![
        3 => draw.prop_map(|(least, most, one_in, reserve, spent)| Act::Draw {
            least,
            most,
            one_in,
            reserve,
            spent,
        }),
        3 => (0..5_usize, part).prop_map(|(before, part)| Act::GiveBack { before, part }),
        2 => cost.prop_map(Act::Take),
    ];
    // Most moves are within the life of a loan.
    let advance = prop_oneof![
        8 => Just(Advance::Stay),
        4 => (0..70_u64).prop_map(Advance::Window),
        4 => (0..5_000_u64).prop_map(Advance::Interval),
        1 => (0..2_500_u64).prop_map(Advance::Window),
        1 => Just(Advance::Edge),
        1 => Just(Advance::JustBeforeEdge),
    ];
    (advance, act).prop_map(|(advance, act)| Step { advance, act })
}

fn spec() -> impl Strategy<Value = QuotaSpec> {
    let burst = || prop_oneof![Just(None), (1..200_u64).prop_map(Some)];
    let bucket = |refill| burst().prop_map(move |burst| Algorithm::TokenBucket { burst, refill });
    let rounding = prop_oneof![Just(Rounding::Down), Just(Rounding::Up)];
    let sub_windows = prop_oneof![Just(1), Just(5)];
    let counter =
        (sub_windows, rounding).prop_map(|(sub_windows, rounding)| Algorithm::SlidingCounter {
            sub_windows,
            rounding,
        });
    let algorithm = prop_oneof![
        5 => bucket(Refill::Continuous),
        1 => bucket(Refill::Interval),
        1 => Just(Algorithm::FixedWindow),
        1 => Just(Algorithm::SlidingLog { log_refused: false }),
        2 => counter,
    ];
    let allowance = prop_oneof![
        3 => Just(Allowance::Hard),
        1 => Just(Allowance::Soft { over: Percent(20), only_for: None }),
    ];
    let limit = prop_oneof![1..20_u64, 20..400_u64];
    let millis = prop_oneof![Just(100_u64), Just(1_000), Just(60_000)];
    (algorithm, allowance, limit, millis).prop_map(|(algorithm, allowance, limit, millis)| {
        QuotaSpec {
            limit,
            window: Duration::from_millis(millis),
            algorithm,
            allowance,
        }
    })
}
