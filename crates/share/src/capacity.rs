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
