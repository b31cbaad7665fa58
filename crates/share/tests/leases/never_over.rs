//! However nodes, clocks and the network behave, all nodes together never admit more than the limit
//! promises.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::Commit;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_share::{LeaseConfig, lease_life};
use tidegate_store::Clock;

use crate::lender::Kept;
use crate::wire::{Fate, Weather};
use crate::world::{Admitted, World};

/// What happens in a world.
#[derive(Clone, Debug)]
enum Step {
    /// So many requests at one node.
    Ask { node: usize, n: u64, cost: u64 },
    /// So many microseconds pass.
    Pass(u64),
    /// Time passes until so many microseconds before or after the next edge of a window.
    Edge(i64),
    /// A node dies, and another takes its place.
    Kill { node: usize },
    /// A node next to the store ends as it should, giving everything back, and another takes its place.
    Leave { node: usize },
}

#[derive(Clone, Debug)]
struct Plot {
    spec: QuotaSpec,
    clocks: Vec<(u64, i64)>,
    fates: Vec<Fate>,
    steps: Vec<Step>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nodes whose clocks are set wrong and run apart, a network that delays and loses, nodes that die
    /// at any moment: replayed at the instants at which they were admitted, all requests fit the limit.
    #[test]
    fn all_nodes_together_are_never_over(plot in plot()) {
        let quota = Arc::new(Quota::new(&plot.spec).expect("valid"));
        let (history, kept) = run(&plot, &quota);
        check(allowed(&plot.spec, &quota), &history)?;
        check(Quota::clone(&quota), &kept)?;
    }

    /// Nodes draw from a full bucket and give back at different moments, while others take what there is: what
    /// was not given back fits the limit itself at the instants at which it was drawn, so spent within a life
    /// of that it is within the bound.
    #[test]
    fn loans_given_back_apart_are_never_over(plot in loans_apart()) {
        let quota = Arc::new(Quota::new(&plot.spec).expect("valid"));
        let (history, kept) = run(&plot, &quota);
        check(allowed(&plot.spec, &quota), &history)?;
        check(Quota::clone(&quota), &kept)?;
    }
}

/// A bucket that refilled meanwhile got a loan back after others had taken all there was, and held more
/// than ever.
#[test]
fn a_bucket_takes_nothing_back_that_it_has_refilled() -> Result<(), TestCaseError> {
    let ask = |node, n| Step::Ask { node, n, cost: 1 };
    let mut steps = vec![Step::Pass(0), ask(0, 40), ask(1, 2_490), Step::Edge(0)];
    steps.extend([ask(0, 620), Step::Pass(0)]);
    steps.extend(std::iter::repeat_n(ask(0, 10), 40));
    let plot = Plot {
        spec: QuotaSpec {
            limit: 820,
            window: Duration::from_secs(1),
            algorithm: Algorithm::TokenBucket {
                burst: None,
                refill: Refill::Continuous,
            },
            allowance: Allowance::Hard,
        },
        clocks: vec![(0, 0), (0, 0)],
        fates: vec![Fate::Arrives { there: 0, back: 0 }],
        steps,
    };
    let quota = Arc::new(Quota::new(&plot.spec).expect("valid"));
    let (history, kept) = run(&plot, &quota);
    check(allowed(&plot.spec, &quota), &history)?;
    check(Quota::clone(&quota), &kept)
}

/// What was admitted by all nodes, and what was charged in the store and not given back.
fn run(plot: &Plot, quota: &Arc<Quota>) -> (Vec<Admitted>, Vec<Admitted>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut world = World::new();
        let weather = |place: usize| {
            let mut fates = plot.fates.clone();
            fates.rotate_left(place * 3 % plot.fates.len());
            Weather::new(fates)
        };
        for (place, clock) in plot.clocks.iter().enumerate() {
            world.join(*clock, weather(place));
        }
        for step in &plot.steps {
            match *step {
                Step::Ask { node, n, cost } => {
                    for _ in 0..n {
                        world.ask(node % plot.clocks.len(), quota, cost);
                    }
                }
                Step::Pass(micros) => world.advance(Duration::from_micros(micros)).await,
                Step::Edge(micros) => {
                    let to_edge = to_edge(&plot.spec, micros, world.clock.now());
                    world.advance(to_edge).await;
                }
                Step::Leave { node } => {
                    world.advance(Duration::ZERO).await;
                    world.nodes[node].shared.finish().await;
                    world.kill(node, plot.clocks[node], weather(node));
                }
                Step::Kill { node } => {
                    let node = node % plot.clocks.len();
                    world.kill(node, plot.clocks[node], weather(node));
                }
            }
        }
        world.advance(Duration::from_secs(1)).await;
        let kept = world.store.kept().into_iter();
        let kept = kept.map(|Kept { at, cost, .. }| Admitted { at, cost });
        (world.history(), kept.collect())
    })
}

/// Replays what was admitted through a limit.
fn check(limit: Quota, history: &[Admitted]) -> Result<(), TestCaseError> {
    let mut counter = Counter::new(limit);
    for (place, request) in history.iter().enumerate() {
        let decision = counter.decide(request.cost, Headroom::Absent, request.at, Commit::Charge);
        prop_assert!(
            decision.is_allowed(),
            "{:?} is one too many, number {} of {}",
            request,
            place,
            history.len()
        );
    }
    Ok(())
}

/// What leases promise: the limit itself, but a bucket that holds as much more as drips in during a life.
fn allowed(spec: &QuotaSpec, quota: &Quota) -> Quota {
    let mut spec = spec.clone();
    if let Algorithm::TokenBucket {
        burst,
        refill: Refill::Continuous,
    } = spec.algorithm
    {
        let life = lease_life(quota, LeaseConfig::default().life).unwrap_or_default();
        let dripped = u128::from(spec.limit) * life.as_nanos() / spec.window.as_nanos();
        let more = u64::try_from(dripped).expect("few") + 1;
        spec.algorithm = Algorithm::TokenBucket {
            burst: Some(burst.unwrap_or(spec.limit) + more),
            refill: Refill::Continuous,
        };
    }
    Quota::new(&spec).expect("valid")
}

fn plot() -> impl Strategy<Value = Plot> {
    let step = prop_oneof![
        6 => ask(1..20, 1..3),
        3 => ask(50..400, 1..2),
        1 => ask(400..1_500, 1..2),
        3 => (0..30_000_u64).prop_map(Step::Pass),
        3 => (0..500_u64).prop_map(Step::Pass),
        4 => (-5_000..5_000_i64).prop_map(Step::Edge),
        4 => (-300..300_i64).prop_map(Step::Edge),
        1 => (0..4_usize).prop_map(|node| Step::Kill { node }),
    ];
    let clock = (0..5_000_000_000_u64, -500..500_i64);
    (
        spec(),
        prop::collection::vec(clock, 1..4),
        prop::collection::vec(fate(), 1..20),
        prop::collection::vec(step, 20..120),
    )
        .prop_map(|(spec, clocks, fates, steps)| Plot {
            spec,
            clocks,
            fates,
            steps,
        })
}

/// Rounds in which a bucket gets full, two nodes draw, the first gives back early, the second late, and a third
/// asks for all there is before that and after. A life is many sweeps long, and drips in less than is drawn.
fn loans_apart() -> impl Strategy<Value = Plot> {
    let few = || 3..8_u64;
    // Hundredths of a life. Who ends gives back at once, who cools after 50.
    let leaves = prop_oneof![2 => (0..30_u64).prop_map(Some), 1 => Just(None)];
    let pauses = prop::collection::vec(5..40_u64, 1..4);
    let round = (few(), few(), leaves, 0..30_u64, 50..80_u64, pauses);
    let rounds = prop::collection::vec(round, 1..4);
    let spec = (1_000..6_000_u64, 1_000..3_000_u64, 6_000..16_000_u64);
    (spec, rounds).prop_map(|((limit, burst, millis), rounds)| {
        let ask = |node, n| Step::Ask { node, n, cost: 1 };
        let pass = |hundredths| Step::Pass(millis * 1_000 / 64 * hundredths / 100);
        let mut steps = Vec::new();
        for (first, second, leaves, on, all, pauses) in rounds {
            steps.extend([Step::Edge(0), Step::Edge(0), ask(0, first), ask(1, second)]);
            let leaves = leaves.map(|after| after.min(on));
            if let Some(after) = leaves {
                steps.extend([pass(after), Step::Leave { node: 0 }]);
            }
            steps.extend([pass(on - leaves.unwrap_or(0)), ask(1, 1)]);
            steps.extend([pass(all - on), ask(2, 3_200)]);
            for pause in pauses {
                steps.extend([pass(pause), ask(2, 3_200), Step::Pass(100), ask(2, 3_200)]);
            }
        }
        Plot {
            spec: QuotaSpec {
                limit,
                window: Duration::from_millis(millis),
                algorithm: Algorithm::TokenBucket {
                    burst: Some(burst),
                    refill: Refill::Continuous,
                },
                allowance: Allowance::Hard,
            },
            clocks: vec![(0, 0), (7, 100), (1_000, -100)],
            fates: vec![Fate::Arrives { there: 0, back: 0 }],
            steps,
        }
    })
}

fn ask(n: std::ops::Range<u64>, cost: std::ops::Range<u64>) -> impl Strategy<Value = Step> {
    (0..4_usize, n, cost).prop_map(|(node, n, cost)| Step::Ask { node, n, cost })
}

/// How long until so many microseconds after the next edge.
fn to_edge(spec: &QuotaSpec, micros: i64, now: Time) -> Duration {
    let window = u64::try_from(spec.window.as_nanos()).expect("short");
    let edge = (now.nanos() / window + 1) * window;
    let then = edge.saturating_add_signed(micros * 1_000);
    Time::from_nanos(then).since(now)
}

fn fate() -> impl Strategy<Value = Fate> {
    let delay = || prop_oneof![3 => 0..300_u64, 1 => 300..4_000_u64];
    prop_oneof![
        12 => (delay(), delay()).prop_map(|(there, back)| Fate::Arrives { there, back }),
        1 => Just(Fate::Lost),
        1 => delay().prop_map(|there| Fate::ReplyLost { there }),
    ]
}

fn spec() -> impl Strategy<Value = QuotaSpec> {
    let bucket = |refill| {
        prop::option::of(prop_oneof![1..200_u64, 640..3_000_u64])
            .prop_map(move |burst| Algorithm::TokenBucket { burst, refill })
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Up,
    };
    let algorithm = prop_oneof![
        2 => Just(Algorithm::FixedWindow),
        2 => bucket(Refill::Continuous),
        1 => bucket(Refill::Interval),
        2 => Just(Algorithm::SlidingLog { log_refused: false }),
        2 => Just(counter(1)),
        1 => Just(counter(7)),
    ];
    // Few are too small to be lent.
    let limit = prop_oneof![1 => 1..20_u64, 3 => 640..1_500_u64, 1 => 2_560..3_000_u64];
    let millis = prop_oneof![Just(1_000_u64), 150..3_000_u64];
    (algorithm, limit, millis).prop_map(|(algorithm, limit, millis)| QuotaSpec {
        limit,
        window: Duration::from_millis(millis),
        algorithm,
        allowance: Allowance::Hard,
    })
}
