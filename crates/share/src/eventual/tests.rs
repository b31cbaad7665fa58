//! Nodes in virtual time, on a network that does what it likes.

mod cut;
mod judge;
mod memory;
mod outage;
mod pace;
mod random;
mod refund;
mod steady;
mod world;

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota, QuotaSpec, Refill, Rounding};

/// One limit for each way of counting: `limit` in ten seconds.
fn quotas(limit: u64) -> [Quota; 7] {
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Up,
    };
    [
        Algorithm::FixedWindow,
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Interval,
        },
        Algorithm::SlidingLog { log_refused: false },
        counter(1),
        counter(12),
        counter(60),
    ]
    .map(|algorithm| quota(limit, algorithm))
}

fn quota(limit: u64, algorithm: Algorithm) -> Quota {
    quota_with(limit, algorithm, Allowance::Hard)
}

fn quota_with(limit: u64, algorithm: Algorithm, allowance: Allowance) -> Quota {
    let spec = QuotaSpec {
        limit,
        window: Duration::from_secs(10),
        algorithm,
        allowance,
    };
    Quota::new(&spec).unwrap()
}
