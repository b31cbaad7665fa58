//! The part of the system that decided on a limit.

/// The part of the system that decided on a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionPath {
    /// A counter in the memory of this process.
    #[default]
    Memory,
    /// Permits that this node drew from the common store before, or the denial that the common store answered with last.
    Lease,
    /// The totals that the nodes exchange.
    Totals,
    /// The share of the limit that this node has.
    Share,
    /// The common store.
    Common,
    /// This node alone, because the common store failed.
    Fallback,
    /// The limit's `on_failure`, because the store failed.
    Policy,
    /// A ban.
    Ban,
    /// None: the limit was not asked.
    None,
}

// === impl DecisionPath ===

impl DecisionPath {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::Lease,
        Self::Totals,
        Self::Share,
        Self::Common,
        Self::Fallback,
        Self::Policy,
        Self::Ban,
        Self::None,
    ];
}
