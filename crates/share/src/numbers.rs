//! The numbers of a limit, by which a node tells whether what it knows of a counter is of these rules.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Quota};

/// The numbers of a quota, which a reload of the rules may change under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    limit: u64,
    window: Duration,
    algorithm: Algorithm,
    allowance: Allowance,
}

// === impl Numbers ===

impl Numbers {
    #[inline]
    pub(crate) const fn of(quota: &Quota) -> Self {
        Self {
            limit: quota.limit(),
            window: quota.window(),
            algorithm: quota.algorithm(),
            allowance: quota.allowance(),
        }
    }
}
