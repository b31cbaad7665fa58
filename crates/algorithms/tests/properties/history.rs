//! Random quotas, and random histories that know where it gets interesting: the edges of windows,
//! the moment of a retry and the nanosecond before, what remains and one more.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec,
    Refill, RefundTo, Retry, Rounding, Time,
};

/// The latest time of a history: two windows of ten years before time ends.
const LATEST: u64 = Time::MAX.nanos() - 20 * 366 * 86_400 * 1_000_000_000;

/// One thing that happens to a counter.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) advance: Advance,
    pub(crate) act: Act,
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Request {
        cost: Cost,
        headroom: Headroom,
        commit: Commit,
    },
    Refund {
        cost: Cost,
        /// To one of the charges so far, counted from the last; `None` without a receipt.
        charge: Option<usize>,
    },
}

/// How the clock moves before it.
#[derive(Clone, Debug)]
pub(crate) enum Advance {
    Stay,
    Nanos(u64),
    /// By so many thousandths of a window.
    Window(u64),
    /// By so many thousandths of the time of one request.
    Interval(u64),
    /// To the moment of the last retry.
    Retry,
    /// To the nanosecond before.
    JustBeforeRetry,
    /// To the end of the epoch-aligned window.
    Edge,
    /// To the nanosecond before.
    JustBeforeEdge,
    /// Back by so many thousandths of a window.
    Back(u64),
}

/// How much a request costs.
#[derive(Clone, Debug)]
pub(crate) enum Cost {
    Units(u64),
    /// What the last decision said remains, and so much more.
    Remaining(u64),
    /// The whole limit of the last decision, and so much more.
    Limit(u64),
    Huge,
}

/// Where a history is.
pub(crate) struct Course {
    window: u64,
    limit: u64,
    last: Option<Decision>,
    charges: Vec<ChargeStamp>,
    pub(crate) now: Time,
}

// === impl Course ===

impl Course {
    pub(crate) fn new(quota: &Quota, start: u64) -> Self {
        let window = nanos(quota.window());
        Self {
            window,
            limit: quota.limit(),
            last: None,
            charges: Vec::new(),
            now: Time::from_nanos(start),
        }
    }

    pub(crate) fn advance(&mut self, advance: &Advance) {
        let now = self.now.nanos();
        let thousandths = |span: u64, n: u64| {
            u64::try_from(u128::from(span) * u128::from(n) / 1_000).expect("a few windows")
        };
        let edge = now - now % self.window + self.window;
        let later = match *advance {
            Advance::Stay => now,
            Advance::Nanos(n) => now + n,
            Advance::Window(n) => now + thousandths(self.window, n),
            Advance::Interval(n) => now + thousandths(self.window / self.limit.max(1), n),
            Advance::Retry => now + self.retry(),
            Advance::JustBeforeRetry => now + self.retry().saturating_sub(1),
            Advance::Edge => edge,
            Advance::JustBeforeEdge => edge - 1,
            Advance::Back(n) => now.saturating_sub(thousandths(self.window, n)),
        };
        self.now = Time::from_nanos(later.min(LATEST));
    }

    pub(crate) fn cost(&self, cost: &Cost) -> u64 {
        match *cost {
            Cost::Units(n) => n,
            Cost::Remaining(more) => self.last.map_or(1, |last| last.remaining) + more,
            Cost::Limit(more) => self.last.map_or(self.limit, |last| last.limit) + more,
            Cost::Huge => u64::MAX,
        }
    }

    pub(crate) fn learn(&mut self, decision: Decision) {
        self.last = Some(decision);
        if decision.is_allowed() {
            self.charges.push(ChargeStamp::new(self.now, &decision));
        }
    }

    pub(crate) fn refund_to(&self, charge: Option<usize>) -> RefundTo {
        let stamp = charge.and_then(|nth| self.charges.iter().nth_back(nth));
        stamp.map_or(RefundTo::Current, |stamp| RefundTo::Charge(*stamp))
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

/// At least so many cases; `PROPTEST_CASES` asks for more.
pub(crate) fn cases(least: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = config.cases.max(least);
    // A case may turn out to be beside the point; that happens in proportion to their number.
    ProptestConfig {
        cases,
        max_global_rejects: cases,
        ..config
    }
}

/// A valid quota with any algorithm and allowance.
pub(crate) fn spec() -> impl Strategy<Value = QuotaSpec> {
    (algorithm(), window(), allowance())
        .prop_flat_map(|(algorithm, window, allowance)| {
            limit(window, algorithm).prop_map(move |limit| {
                let allowance = scaled(allowance, window);
                QuotaSpec {
                    limit,
                    window,
                    algorithm,
                    allowance,
                }
            })
        })
        .prop_filter("a valid quota", |spec| Quota::new(spec).is_ok())
}

/// A valid hard quota of that algorithm.
pub(crate) fn hard_spec(
    algorithm: impl Strategy<Value = Algorithm>,
) -> impl Strategy<Value = QuotaSpec> {
    (algorithm, window())
        .prop_flat_map(|(algorithm, window)| {
            limit(window, algorithm).prop_map(move |limit| QuotaSpec {
                limit,
                window,
                algorithm,
                allowance: Allowance::Hard,
            })
        })
        .prop_filter("a valid quota", |spec| Quota::new(spec).is_ok())
}

/// When a history starts.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..1_000_000_000_000_u64,
        Just(1_800_000_000_000_000_000),
        1_700_000_000_000_000_000..1_900_000_000_000_000_000_u64,
        Just(LATEST / 2),
    ]
}

/// What happens, clock jumps backwards and refunds included.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..60)
}

/// Charges only, in order of time.
pub(crate) fn charges() -> impl Strategy<Value = Vec<(Advance, Cost)>> {
    prop::collection::vec((forwards(), cost()), 1..120)
}

pub(crate) fn forwards() -> impl Strategy<Value = Advance> {
    prop_oneof![
        4 => Just(Advance::Stay),
        1 => (1..10_u64).prop_map(Advance::Nanos),
        2 => (0..3_000_u64).prop_map(Advance::Window),
        1 => (0..100_u64).prop_map(Advance::Window),
        2 => (0..5_000_u64).prop_map(Advance::Interval),
        2 => Just(Advance::Retry),
        2 => Just(Advance::JustBeforeRetry),
        1 => Just(Advance::Edge),
        1 => Just(Advance::JustBeforeEdge),
    ]
}

pub(crate) fn cost() -> impl Strategy<Value = Cost> {
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

pub(crate) fn counter() -> impl Strategy<Value = Algorithm> {
    (
        prop_oneof![4 => Just(1), 8 => 2..12_u16, 1 => 2..=3_600_u16],
        rounding(),
    )
        .prop_map(|(sub_windows, rounding)| Algorithm::SlidingCounter {
            sub_windows,
            rounding,
        })
}

pub(crate) fn continuous() -> impl Strategy<Value = Algorithm> {
    let refill = Refill::Continuous;
    capacity().prop_map(move |burst| Algorithm::TokenBucket { burst, refill })
}

pub(crate) fn interval() -> impl Strategy<Value = Algorithm> {
    let refill = Refill::Interval;
    capacity().prop_map(move |burst| Algorithm::TokenBucket { burst, refill })
}

pub(crate) fn leaky() -> impl Strategy<Value = Algorithm> {
    capacity().prop_map(|queue| Algorithm::LeakyBucket { queue })
}

pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("at most ten years")
}

fn algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        continuous(),
        interval(),
        leaky(),
        Just(Algorithm::FixedWindow),
        any::<bool>().prop_map(|log_refused| Algorithm::SlidingLog { log_refused }),
        counter(),
    ]
}

fn rounding() -> impl Strategy<Value = Rounding> {
    prop_oneof![Just(Rounding::Down), Just(Rounding::Up)]
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
    prop_oneof![
        prop::sample::select(common.to_vec()),
        // Log-uniform and odd, up to ten years.
        (20..59_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits))),
    ]
    .prop_map(|nanos| Duration::from_nanos(nanos.min(3_653 * 86_400_000_000_000)))
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
        // Log-uniform, up to a billion per second.
        4 => (0..59_u32, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits))),
        1 => Just(most),
    ]
    .prop_map(move |limit| limit.min(most))
}

/// An allowance whose `only_for` is in thousandths of a window, given as nanoseconds.
fn allowance() -> impl Strategy<Value = Allowance> {
    let percent = || prop_oneof![0..60_u32, 0..=1_000_u32].prop_map(Percent);
    let only_for = || (0..3_000_u64).prop_map(|n| Some(Duration::from_nanos(n)));
    prop_oneof![
        3 => Just(Allowance::Hard),
        2 => percent().prop_map(|over| Allowance::Soft { over, only_for: None }),
        4 => (percent(), only_for())
            .prop_map(|(over, only_for)| Allowance::Soft { over, only_for }),
        2 => percent().prop_map(|over| Allowance::Elastic { over }),
        3 => prop::option::of(prop_oneof![0..30_u64, (0..56_u32).prop_map(|bits| 1 << bits)])
            .prop_map(|max_debt| Allowance::Postpaid { max_debt }),
    ]
}

fn scaled(allowance: Allowance, window: Duration) -> Allowance {
    match allowance {
        Allowance::Soft {
            over,
            only_for: Some(thousandths),
        } => {
            let span = window.as_nanos() * thousandths.as_nanos() / 1_000;
            let only_for = Some(Duration::from_nanos(
                u64::try_from(span).expect("a few windows"),
            ));
            Allowance::Soft { over, only_for }
        }
        other => other,
    }
}

fn step() -> impl Strategy<Value = Step> {
    let advance = prop_oneof![
        9 => forwards(),
        1 => (0..4_000_u64).prop_map(Advance::Back),
    ];
    let headroom = prop_oneof![Just(Headroom::Absent), Just(Headroom::Available)];
    let commit = prop_oneof![
        8 => Just(Commit::Charge),
        1 => Just(Commit::Nothing),
        1 => Just(Commit::CountRefused),
    ];
    let act = prop_oneof![
        12 => (cost(), headroom, commit)
            .prop_map(|(cost, headroom, commit)| Act::Request { cost, headroom, commit }),
        2 => (cost(), prop::option::of(0..6_usize))
            .prop_map(|(cost, charge)| Act::Refund { cost, charge }),
    ];
    (advance, act).prop_map(|(advance, act)| Step { advance, act })
}
