//! State of a counter that is seldom needed.

use tidegate_algorithms::{SoftPeriod, Time};

/// Fields that most counters do not need.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// When the node began to decide by its share, if it does.
    pub(super) alone_since: Option<Time>,
    /// The period of soft admissions, of a limit with `soft_for`.
    pub(super) soft_period: Option<SoftPeriod>,
    /// The last slot of which the store lost sums.
    pub(super) lost_until: u64,
    /// Whether all nodes are to forget what is received next, too.
    pub(super) is_to_reset: bool,
}

// === impl Rare ===

impl Rare {
    /// Whether nothing here matters from a slot on.
    pub(super) const fn is_over(&self, first: u64) -> bool {
        self.alone_since.is_none()
            && self.soft_period.is_none()
            && self.lost_until < first
            && !self.is_to_reset
    }
}
