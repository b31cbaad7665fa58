//! What each algorithm promises for a limit per window, however the traffic arrives.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Meter, Outcome, Quota, QuotaSpec, Rounding, Time,
};

use crate::history::{
    self, Advance, Cost, Course, cases, charges, continuous, counter, hard_spec, interval, leaky,
    start,
};

/// A request that was admitted.
struct Admitted {
    at: u128,
    cost: u128,
    /// When it may leave.
    departure: u128,
}

/// What was admitted of a history, in order of time.
fn admitted(spec: &QuotaSpec, start: u64, charges: &[(Advance, Cost)]) -> Vec<Admitted> {
    let quota = Quota::new(spec).expect("valid");
    let mut course = Course::new(&quota, start);
    let mut counter = Counter::new(quota);
    let mut admitted = Vec::new();
    for (advance, cost) in charges {
        course.advance(advance);
        let cost = course.cost(cost);
        let decision = counter.decide(cost, Headroom::Absent, course.now, Commit::Charge);
        course.learn(decision);
        if let Outcome::Allowed { delay, .. } = decision.outcome {
            let at = u128::from(course.now.nanos());
            let departure = at + delay.as_nanos();
            admitted.push(Admitted {
                at,
                cost: u128::from(cost),
                departure,
            });
        }
    }
    admitted
}

/// The most that was admitted in any half-open span of that length.
fn most_in_any(admitted: &[Admitted], span: u128) -> u128 {
    let in_span_from = |first: &Admitted| {
        let spanned = admitted
            .iter()
            .filter(|one| one.at >= first.at && one.at < first.at + span);
        spanned.map(|one| one.cost).sum()
    };
    admitted.iter().map(in_span_from).max().unwrap_or(0)
}

fn any_log() -> impl Strategy<Value = Algorithm> {
    any::<bool>().prop_map(|log_refused| Algorithm::SlidingLog { log_refused })
}

proptest! {
    #![proptest_config(cases(600))]

    /// Log: never more than the limit in any window.
    #[test]
    fn sliding_log(spec in hard_spec(any_log()), start in start(), charges in charges()) {
        let admitted = admitted(&spec, start, &charges);
        prop_assert!(most_in_any(&admitted, spec.window.as_nanos()) <= u128::from(spec.limit));
    }

    /// Token bucket: never more than the burst and the rate times the length, over any length.
    #[test]
    fn token_bucket(spec in hard_spec(continuous()), start in start(), charges in charges()) {
        let Algorithm::TokenBucket { burst, .. } = spec.algorithm else { unreachable!() };
        let burst = u128::from(burst.unwrap_or(spec.limit));
        let admitted = admitted(&spec, start, &charges);
        for (n, first) in admitted.iter().enumerate() {
            let mut sum = 0;
            for last in &admitted[n..] {
                sum += last.cost;
                let dripped =
                    (last.at - first.at) * u128::from(spec.limit) / spec.window.as_nanos();
                prop_assert!(sum <= burst + dripped);
            }
        }
    }

    /// Token bucket refilled in portions: never more in any window than the burst and one portion.
    #[test]
    fn interval_bucket(spec in hard_spec(interval()), start in start(), charges in charges()) {
        let Algorithm::TokenBucket { burst, .. } = spec.algorithm else { unreachable!() };
        let burst = burst.unwrap_or(spec.limit);
        let most = u128::from(burst) + u128::from(burst.min(spec.limit));
        let admitted = admitted(&spec, start, &charges);
        prop_assert!(most_in_any(&admitted, spec.window.as_nanos()) <= most);
    }

    /// Leaky bucket: requests leave in the order in which they came, never faster than the rate, and
    /// none waits longer than a full queue takes.
    #[test]
    fn leaky_bucket(spec in hard_spec(leaky()), start in start(), charges in charges()) {
        let Algorithm::LeakyBucket { queue } = spec.algorithm else { unreachable!() };
        let queue = u128::from(queue.unwrap_or(spec.limit));
        let (window, limit) = (spec.window.as_nanos(), u128::from(spec.limit));
        let mut admitted = admitted(&spec, start, &charges);
        admitted.retain(|one| one.cost > 0);
        for pair in admitted.windows(2) {
            let [one, next] = pair else { unreachable!() };
            // Moments are rounded up to a nanosecond, so two may be less than one too close.
            let apart = next.departure.checked_sub(one.departure).expect("in order") + 1;
            prop_assert!(apart * limit > one.cost * window);
        }
        for one in &admitted {
            let wait = one.departure - one.at;
            // The interval is rounded up by at most one in a million, the moment to a nanosecond.
            let drained = queue * window / limit;
            prop_assert!(wait <= drained + drained / 1_000_000 + 2);
        }
    }

    /// Fixed window: never more than the limit in an aligned window, nor twice it in any.
    #[test]
    fn fixed_window(
        spec in hard_spec(Just(Algorithm::FixedWindow)), start in start(), charges in charges(),
    ) {
        let window = spec.window.as_nanos();
        let admitted = admitted(&spec, start, &charges);
        for first in &admitted {
            let aligned = admitted.iter().filter(|one| one.at / window == first.at / window);
            let sum: u128 = aligned.map(|one| one.cost).sum();
            prop_assert!(sum <= u128::from(spec.limit));
        }
        prop_assert!(most_in_any(&admitted, window) <= 2 * u128::from(spec.limit));
    }

    /// Counter: never more than the limit by its own estimate (the agreement with the oracle says
    /// that), at worst twice the limit in any window.
    #[test]
    fn sliding_counter(spec in hard_spec(counter()), start in start(), charges in charges()) {
        let admitted = admitted(&spec, start, &charges);
        prop_assert!(most_in_any(&admitted, spec.window.as_nanos()) <= 2 * u128::from(spec.limit));
    }

    /// Sub-windows: the estimate is at least what was admitted in a window shorter by a sub-window
    /// and at most what was in one longer by it.
    #[test]
    fn an_estimate_is_wrong_by_at_most_a_sub_window(
        parts in 2..40_u16, up: bool, start in start(), charges in charges(),
    ) {
        let rounding = if up { Rounding::Up } else { Rounding::Down };
        // A limit that nothing here reaches: all is admitted, and what remains tells the estimate.
        let spec = QuotaSpec {
            limit: 1_000_000_000,
            window: Duration::from_mins(1),
            algorithm: Algorithm::SlidingCounter { sub_windows: parts, rounding },
            allowance: Allowance::Hard,
        };
        let quota = Quota::new(&spec).expect("valid");
        let Meter::SubWindows(meter) = quota.meter() else { unreachable!() };
        let sub_window = meter.sub_window().as_nanos();
        let window = sub_window * u128::from(parts);
        let mut course = Course::new(&quota, start);
        let mut counter = Counter::new(quota);
        let mut past: Vec<(u128, u128)> = Vec::new();
        for (advance, cost) in &charges {
            course.advance(advance);
            let cost = course.cost(cost) % 1_000_000;
            let at = u128::from(course.now.nanos());
            let decision = counter.decide(cost, Headroom::Absent, course.now, Commit::Charge);
            prop_assert!(decision.is_allowed());
            past.push((at, u128::from(cost)));
            let estimate = u128::from(spec.limit - decision.remaining);
            let exact = |span: u128| -> u128 {
                past.iter().filter(|(then, _)| then + span > at).map(|(_, cost)| cost).sum()
            };
            prop_assert!(exact(window - sub_window) <= estimate);
            prop_assert!(estimate <= exact(window + sub_window));
        }
    }

    /// The log that forgets old refusals decides, at every cost that is charged, as one that keeps
    /// every refusal for ever.
    #[test]
    fn a_bounded_log_of_refusals_decides_as_an_unbounded_one(
        limit in 1..12_u64, start in start(), charges in charges(),
    ) {
        let window = Duration::from_mins(1);
        let algorithm = Algorithm::SlidingLog { log_refused: true };
        let spec = QuotaSpec { limit, window, algorithm, allowance: Allowance::Hard };
        let quota = Quota::new(&spec).expect("valid");
        let mut course = Course::new(&quota, start);
        let mut counter = Counter::new(quota);
        let mut all: Vec<u128> = Vec::new();
        for (advance, cost) in &charges {
            course.advance(advance);
            let cost = course.cost(cost).clamp(1, 1_000);
            let now = u128::from(course.now.nanos());
            let in_window = all.iter().filter(|at| **at + window.as_nanos() > now).count() as u64;
            let decision = counter.decide(cost, Headroom::Absent, course.now, Commit::Charge);
            course.learn(decision);
            prop_assert_eq!(decision.is_allowed(), in_window + cost <= limit);
            let stamp = now.next_multiple_of(1_000);
            all.extend((0..cost).map(|_| stamp));
        }
    }
}

/// The histories above do reach their limits: a promise about nothing would hold too.
#[test]
fn the_histories_reach_the_limit() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let tree = |runner: &mut _| {
        let strategy = (hard_spec(Just(Algorithm::FixedWindow)), charges());
        strategy.new_tree(runner).expect("a case")
    };
    let reached = (0..200).filter(|_| {
        let (spec, charges) = proptest::strategy::ValueTree::current(&tree(&mut runner));
        let start = Time::from_nanos(history::nanos(spec.window)).nanos();
        let most = most_in_any(&admitted(&spec, start, &charges), spec.window.as_nanos());
        most >= u128::from(spec.limit) && spec.limit > 0
    });
    assert!(reached.count() > 100);
}
