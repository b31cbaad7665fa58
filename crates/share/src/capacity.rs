//! How much fits into a limit.

use tidegate_algorithms::{Algorithm, Quota};

/// What an unused limit admits at one instant, what it tolerates above left aside.
pub(crate) const fn capacity(quota: &Quota) -> u64 {
    match quota.algorithm() {
        Algorithm::TokenBucket {
            burst: Some(burst), ..
        } => burst,
        _ => quota.limit(),
    }
}

/// The most that an unused limit ever admits at one instant.
pub(crate) const fn most_at_once(quota: &Quota) -> u64 {
    let capacity = match quota.algorithm() {
        _ if quota.limit() == 0 => 0,
        Algorithm::TokenBucket {
            burst: Some(capacity),
            ..
        }
        | Algorithm::LeakyBucket {
            queue: Some(capacity),
        } => capacity,
        _ => quota.limit(),
    };
    capacity.saturating_add(quota.most_extra())
}
