//! What is hammered.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Rounding};
use tidegate_store::conformance::model::{Model, ModelCharge};
use tidegate_store::{Charge, Consistency, CounterKey, LimitId, Mode, OnFull};

/// One limit, or two that are charged together.
#[derive(Debug)]
pub(crate) struct Scenario {
    number: u128,
    specs: Vec<QuotaSpec>,
    quotas: Vec<Quota>,
}

/// The window of every limit that is hammered.
pub(crate) const WINDOW_NANOS: u64 = 50_000_000;

const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Continuous,
    },
    Algorithm::TokenBucket {
        burst: Some(9),
        refill: Refill::Interval,
    },
    Algorithm::LeakyBucket { queue: None },
    Algorithm::FixedWindow,
    Algorithm::SlidingLog { log_refused: false },
    Algorithm::SlidingLog { log_refused: true },
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 5,
        rounding: Rounding::Up,
    },
];

// === impl Scenario ===

impl Scenario {
    /// Each algorithm alone, and each with a fixed window of four times the length.
    pub(crate) fn all() -> Vec<Self> {
        let window = Duration::from_nanos(WINDOW_NANOS);
        let spec = |limit, window, algorithm| QuotaSpec {
            limit,
            window,
            algorithm,
            allowance: Allowance::Hard,
        };
        let beside = spec(25, window * 4, Algorithm::FixedWindow);
        let alone = ALGORITHMS.map(|algorithm| vec![spec(7, window, algorithm)]);
        let pairs = ALGORITHMS.map(|algorithm| vec![spec(7, window, algorithm), beside.clone()]);
        let all = (0..).zip(alone.into_iter().chain(pairs));
        all.map(|(number, specs)| Self::new(number, specs))
            .collect()
    }

    fn new(number: u128, specs: Vec<QuotaSpec>) -> Self {
        let quotas = specs.iter().map(|spec| Quota::new(spec).expect("valid"));
        Self {
            number,
            quotas: quotas.collect(),
            specs,
        }
    }

    /// A naive store for it.
    pub(crate) fn model(&self) -> Model {
        Model::new(&self.specs)
    }

    pub(crate) fn charges(&self, cost: u64) -> Vec<Charge<'_>> {
        let charge = |(place, quota)| Charge {
            key: CounterKey {
                limit: LimitId(self.number << 8 | place),
                values: &["everybody"],
            },
            quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Deny,
            consistency: Consistency::Strict,
        };
        (0..).zip(&self.quotas).map(charge).collect()
    }

    pub(crate) fn model_charges(&self, cost: u64) -> Vec<ModelCharge> {
        let charge = |counter| ModelCharge {
            counter,
            cost,
            mode: Mode::Enforce,
        };
        (0..self.specs.len()).map(charge).collect()
    }
}
