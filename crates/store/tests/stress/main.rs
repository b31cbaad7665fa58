//! Threads race for counters, and every single decision is explained afterwards.
//!
//! The store reads its clock once per charge while it holds all counters of the charge. The clock
//! here hands out a number with each reading, so the numbers are the order in which the charges took
//! effect. Replayed in that order the naive model must come to the same decisions, one by one.

mod clock;
mod crew;
mod random;

use tidegate_algorithms::{Algorithm, Allowance, Percent, Refill, Rounding};
use tidegate_store::Charging;

use crew::{Crew, Plan, spec};

/// Each algorithm, in every form that the store keeps differently: one word, several, a block.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::TokenBucket {
        burst: Some(40),
        refill: Refill::Interval,
    },
    Algorithm::LeakyBucket { queue: Some(30) },
    Algorithm::FixedWindow,
    Algorithm::SlidingLog { log_refused: false },
    Algorithm::SlidingLog { log_refused: true },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Up,
    },
    Algorithm::SlidingCounter {
        sub_windows: 10,
        rounding: Rounding::Down,
    },
];

/// A limit that is also kept in a block, for it minds how long it is exceeded.
const SOFT: Allowance = Allowance::Soft {
    over: Percent(20),
    only_for: Some(std::time::Duration::from_millis(70)),
};

const CHARGINGS: [Charging; 2] = [Charging::AllOrNone, Charging::EveryMatch];

/// All threads charge one counter.
#[test]
fn one_limit() {
    for (algorithm, charging) in ALGORITHMS.iter().flat_map(|&it| CHARGINGS.map(|c| (it, c))) {
        Crew::new(vec![spec(40, algorithm, Allowance::Hard)]).race(Plan {
            requests: 400,
            most_limits: 1,
            charging,
            newcomers: false,
        });
    }
}

/// All threads charge one counter of a limit that is soft for a while.
#[test]
fn one_soft_limit() {
    for algorithm in ALGORITHMS {
        Crew::new(vec![spec(40, algorithm, SOFT)]).race(Plan {
            requests: 400,
            most_limits: 1,
            charging: Charging::AllOrNone,
            newcomers: false,
        });
    }
}

/// Threads charge overlapping sets of counters, in different orders, some of them twice, while new
/// callers come in and the table grows.
#[test]
fn several_limits_and_newcomers() {
    for charging in CHARGINGS {
        let specs = ALGORITHMS.map(|algorithm| spec(60, algorithm, Allowance::Hard));
        Crew::new(specs.to_vec()).race(Plan {
            requests: 1_500,
            most_limits: 5,
            charging,
            newcomers: true,
        });
    }
}
