//! What is lost to leases: with more traffic than the limit, wherever it arrives, at least 98 in a
//! hundred of the limit are admitted.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill, Rounding};
use tidegate_store::Clock;

use crate::wire::{Fate, Weather};
use crate::world::{START, World};

/// A network within one data centre.
const FATE: Fate = Fate::Arrives {
    there: 200,
    back: 200,
};

/// How the clocks of the nodes are set, and how they run.
const CLOCKS: [(u64, i64); 4] = [(0, -150), (700_000_000, -50), (1_400_000_000, 50), (9, 150)];

/// Windows that pass before anything is counted, and windows that are.
const WARM_UP: u64 = 8;
const COUNTED: u64 = 8;

const LIMIT: u64 = 1_000;
const WINDOW: Duration = Duration::from_secs(1);

/// Offers 1.2 times the limit to `nodes` in turn and gives what was admitted in a window, and calls of
/// the store for a thousand requests.
fn run(algorithm: Algorithm, nodes: usize) -> (u64, u64) {
    let spec = QuotaSpec {
        limit: LIMIT,
        window: WINDOW,
        algorithm,
        allowance: Allowance::Hard,
    };
    let quota = Arc::new(Quota::new(&spec).expect("valid"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut world = World::new();
        for (ahead_nanos, drift_ppm) in CLOCKS.into_iter().take(nodes) {
            world.join((ahead_nanos, drift_ppm), Weather::new(vec![FATE]));
        }
        let gap = WINDOW * 10 / 12 / u32::try_from(LIMIT).expect("small");
        let begins = START.plus(WINDOW * u32::try_from(WARM_UP).expect("few"));
        let ends = begins.plus(WINDOW * u32::try_from(COUNTED).expect("few"));
        let mut n_asked = 0;
        while world.clock.now() < ends {
            world.ask(n_asked % nodes, &quota, 1);
            n_asked += 1;
            world.advance(gap).await;
        }
        let counted = world.history();
        let counted = counted.iter().filter(|it| it.at >= begins && it.at < ends);
        let admitted: u64 = counted.map(|it| it.cost).sum();
        (admitted / COUNTED, world.calls() * 1_000 / n_asked as u64)
    })
}

#[track_caller]
fn check(algorithm: Algorithm) {
    for nodes in [1, 4] {
        let (admitted, calls) = run(algorithm, nodes);
        assert!(
            (LIMIT * 98 / 100..=LIMIT).contains(&admitted),
            "{admitted} of {LIMIT} a second through {nodes} nodes, {calls} calls per 1,000"
        );
    }
}

#[test]
fn of_a_fixed_window() {
    check(Algorithm::FixedWindow);
}

#[test]
fn of_a_token_bucket() {
    check(Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    });
}

#[test]
fn of_a_sliding_counter() {
    check(Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    });
}

#[test]
fn of_a_sliding_log() {
    check(Algorithm::SlidingLog { log_refused: false });
}
