//! Random quotas, and moves that know where it gets interesting: the edges of windows, the moment
//! of a retry and the nanosecond before, what remains and one more.

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, Retry,
    Rounding, Time,
};

use super::Subject;
use super::bench::START;

/// The latest time of a history: two windows of ten years before time ends.
const LATEST: u64 = Time::MAX.nanos() - 20 * 366 * 86_400 * 1_000_000_000;

/// The longest window.
const TEN_YEARS: u64 = 3_653 * 86_400 * 1_000_000_000;

/// How the clock moves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Advance {
    Stay,
    /// By so many of the shortest moments that the clock tells apart.
    Grains(u64),
    /// By so many thousandths of a window.
    Window(u64),
    /// By so many thousandths of the time of one request.
    Interval(u64),
    /// To the moment of the last retry.
    Retry,
    /// To the moment before.
    JustBeforeRetry,
    /// To the end of the epoch-aligned window.
    Edge,
    /// To the moment before.
    JustBeforeEdge,
    /// Back by so many thousandths of a window.
    Back(u64),
}

/// How much a request costs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cost {
    Units(u64),
    /// What the last decision said remains, and so much more.
    Remaining(u64),
    /// The whole limit of the last decision, and so much more.
    Limit(u64),
    Huge,
}

/// Where a history is, for one limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Nanoseconds that the clock tells apart.
    grain: u64,
    window: u64,
    limit: u64,
    last: Option<Decision>,
}

// === impl Course ===

impl Course {
    pub(super) fn new(quota: &Quota, grain: u64) -> Self {
        Self {
            grain,
            window: nanos(quota.window()),
            limit: quota.limit(),
            last: None,
        }
    }

    pub(super) fn advance(&self, now: Time, advance: Advance) -> Time {
        let now = now.nanos();
        let thousandths = |span: u64, n: u64| {
            u64::try_from(u128::from(span) * u128::from(n) / 1_000).expect("a few windows")
        };
        let edge = now - now % self.window + self.window;
        let then = match advance {
            Advance::Stay => now,
            Advance::Grains(n) => now + n * self.grain,
            Advance::Window(n) => now + thousandths(self.window, n),
            Advance::Interval(n) => now + thousandths(self.window / self.limit.max(1), n),
            Advance::Retry => now + self.retry(),
            Advance::JustBeforeRetry => now + self.retry().saturating_sub(1),
            Advance::Edge => edge,
            Advance::JustBeforeEdge => edge - 1,
            Advance::Back(n) => now.saturating_sub(thousandths(self.window, n)),
        };
        let then = then.min(LATEST);
        // A moment that is asked for is not missed, and one that is to be missed is.
        Time::from_nanos(match advance {
            Advance::JustBeforeRetry | Advance::JustBeforeEdge | Advance::Back(_) => {
                then - then % self.grain
            }
            _ => then.next_multiple_of(self.grain),
        })
    }

    pub(super) fn cost(&self, cost: Cost) -> u64 {
        match cost {
            Cost::Units(n) => n,
            Cost::Remaining(more) => self.last.map_or(1, |last| last.remaining) + more,
            Cost::Limit(more) => self.last.map_or(self.limit, |last| last.limit) + more,
            Cost::Huge => u64::MAX,
        }
    }

    pub(super) fn learn(&mut self, decision: Decision) {
        self.last = Some(decision);
    }

    fn retry(&self) -> u64 {
        match self.last.map(|last| last.outcome) {
            Some(Outcome::Denied {
                retry: Retry::After(wait),
            }) => nanos(wait),
            _ => 0,
        }
    }
}

/// Checks `property` on `many` random values, or on as many as the subject has time for; `PROPTEST_CASES` asks for more.
pub(super) fn for_all<S: Subject, T: Debug>(
    many: u32,
    values: impl Strategy<Value = T>,
    property: impl Fn(T) -> TestCaseResult,
) {
    // Fails once and clearly if the subject does not start. Inside the property every input would fail, and be made smaller many times.
    drop(S::new(START));
    let asked = std::env::var("PROPTEST_CASES").ok();
    let asked = asked.and_then(|cases| cases.parse().ok()).unwrap_or(0);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: S::cases(many).max(asked),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    if let Err(failure) = runner.run(&values, property) {
        panic!("{failure}");
    }
}

/// A valid quota with any algorithm and allowance.
pub(super) fn spec<S: Subject>() -> impl Strategy<Value = QuotaSpec> {
    (algorithm(), window())
        .prop_flat_map(|(algorithm, window)| {
            spec_of(algorithm, in_grains(window, algorithm, S::grain()))
        })
        .prop_filter("a valid quota", is_valid::<S>)
}

/// Quotas that keep the same state: the same algorithm and window, other numbers. None minds for
/// how long it is exceeded: a counter knows that only as its last numbers saw it.
pub(super) fn related_specs<S: Subject>() -> impl Strategy<Value = Vec<QuotaSpec>> {
    (algorithm(), window()).prop_flat_map(|(algorithm, window)| {
        let window = in_grains(window, algorithm, S::grain());
        let related = same_state(algorithm).prop_flat_map(move |it| spec_of(it, window));
        let related = related.prop_map(|spec| QuotaSpec {
            allowance: untimed(spec.allowance),
            ..spec
        });
        let valid = related.prop_filter("a valid quota", is_valid::<S>);
        prop::collection::vec(valid, 2..4)
    })
}

/// When a history starts.
pub(super) fn start<S: Subject>() -> impl Strategy<Value = Time> {
    prop_oneof![
        Just(0),
        0..1_000_000_000_000_u64,
        Just(1_800_000_000_000_000_000),
        1_700_000_000_000_000_000..1_900_000_000_000_000_000_u64,
        Just(LATEST / 2),
    ]
    .prop_map(|nanos| Time::from_nanos(nanos - nanos % S::grain()))
}

pub(super) fn forwards() -> impl Strategy<Value = Advance> {
    prop_oneof![
        4 => Just(Advance::Stay),
        1 => (1..10_u64).prop_map(Advance::Grains),
        2 => (0..3_000_u64).prop_map(Advance::Window),
        1 => (0..100_u64).prop_map(Advance::Window),
        2 => (0..5_000_u64).prop_map(Advance::Interval),
        2 => Just(Advance::Retry),
        2 => Just(Advance::JustBeforeRetry),
        1 => Just(Advance::Edge),
        1 => Just(Advance::JustBeforeEdge),
    ]
}

/// Forwards and, now and then, backwards.
pub(super) fn anywhere() -> impl Strategy<Value = Advance> {
    prop_oneof![
        8 => forwards(),
        1 => (0..4_000_u64).prop_map(Advance::Back),
    ]
}

pub(super) fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        1 => Just(Cost::Units(0)),
        6 => Just(Cost::Units(1)),
        2 => (2..6_u64).prop_map(Cost::Units),
        2 => Just(Cost::Remaining(0)),
        2 => Just(Cost::Remaining(1)),
        1 => (0..3_u64).prop_map(Cost::Limit),
        1 => Just(Cost::Huge),
    ]
}

pub(super) fn headroom() -> impl Strategy<Value = Headroom> {
    prop_oneof![Just(Headroom::Absent), Just(Headroom::Available)]
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("at most ten years")
}

/// The window cut to whole grains, and its sub-windows as well.
fn in_grains(window: Duration, algorithm: Algorithm, grain: u64) -> Duration {
    let parts = match algorithm {
        Algorithm::SlidingCounter { sub_windows, .. } if grain > 1 => u64::from(sub_windows),
        _ => 1,
    };
    let window = nanos(window);
    let cut = window - window % (grain * parts);
    Duration::from_nanos(if cut >= 1_000_000 {
        cut
    } else {
        window.next_multiple_of(grain * parts)
    })
}

fn is_valid<S: Subject>(spec: &QuotaSpec) -> bool {
    Quota::new(spec).is_ok_and(|quota| S::fits(&quota))
}

fn spec_of(algorithm: Algorithm, window: Duration) -> impl Strategy<Value = QuotaSpec> {
    (limit(window, algorithm), allowance(window)).prop_map(move |(limit, allowance)| QuotaSpec {
        limit,
        window,
        algorithm,
        allowance,
    })
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    let sub_windows = prop_oneof![4 => Just(1), 8 => 2..12_u16, 1 => 2..=3_600_u16];
    let rounding = prop_oneof![Just(Rounding::Down), Just(Rounding::Up)];
    prop_oneof![
        bucket(Refill::Continuous),
        bucket(Refill::Interval),
        capacity().prop_map(|queue| Algorithm::LeakyBucket { queue }),
        Just(Algorithm::FixedWindow),
        any::<bool>().prop_map(|log_refused| Algorithm::SlidingLog { log_refused }),
        (sub_windows, rounding).prop_map(|(sub_windows, rounding)| {
            Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            }
        }),
    ]
}

/// An algorithm that keeps the same state as that one.
fn same_state(algorithm: Algorithm) -> BoxedStrategy<Algorithm> {
    match algorithm {
        Algorithm::TokenBucket { refill, .. } => bucket(refill).boxed(),
        Algorithm::LeakyBucket { .. } => capacity()
            .prop_map(|queue| Algorithm::LeakyBucket { queue })
            .boxed(),
        other => Just(other).boxed(),
    }
}

fn bucket(refill: Refill) -> impl Strategy<Value = Algorithm> {
    capacity().prop_map(move |burst| Algorithm::TokenBucket { burst, refill })
}

fn capacity() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(0)),
        4 => (1..20_u64).prop_map(Some),
        1 => (0..60_u32).prop_map(|bits| Some(1 << bits)),
    ]
}

fn window() -> impl Strategy<Value = Duration> {
    let common = [
        1_000_000,
        1_000_000_000,
        60_000_000_000,
        3_600_000_000_000,
        31_556_952_000_000_000,
    ];
    prop_oneof![prop::sample::select(common.to_vec()), log_uniform(20..59),]
        .prop_map(|nanos| Duration::from_nanos(nanos.min(TEN_YEARS)))
}

fn limit(window: Duration, algorithm: Algorithm) -> impl Strategy<Value = u64> {
    let most = match algorithm {
        // The oracle keeps each request in a list.
        Algorithm::SlidingLog { .. } => 300,
        _ => nanos(window),
    };
    prop_oneof![
        1 => Just(0),
        12 => 1..12_u64,
        4 => 1..1_000_u64,
        // Up to a billion per second.
        4 => log_uniform(0..59),
        1 => Just(most),
    ]
    .prop_map(move |limit| limit.min(most))
}

fn allowance(window: Duration) -> impl Strategy<Value = Allowance> {
    let percent = || prop_oneof![0..60_u32, 0..=1_000_u32].prop_map(Percent);
    let only_for = (0..3_000_u32).prop_map(move |n| {
        let span = (window * n) / 1_000;
        Some(span.min(Duration::from_nanos(TEN_YEARS)))
    });
    prop_oneof![
        3 => Just(Allowance::Hard),
        2 => percent().prop_map(|over| Allowance::Soft { over, only_for: None }),
        4 => (percent(), only_for).prop_map(|(over, only_for)| Allowance::Soft { over, only_for }),
        2 => percent().prop_map(|over| Allowance::Elastic { over }),
        3 => prop::option::of(prop_oneof![0..30_u64, log_uniform(0..40)])
            .prop_map(|max_debt| Allowance::Postpaid { max_debt }),
    ]
}

fn untimed(allowance: Allowance) -> Allowance {
    match allowance {
        Allowance::Soft { over, .. } => Allowance::Soft {
            over,
            only_for: None,
        },
        other => other,
    }
}

/// Numbers of so many bits and one more.
fn log_uniform(bits: std::ops::Range<u32>) -> impl Strategy<Value = u64> {
    (bits, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits)))
}
