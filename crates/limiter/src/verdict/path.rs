//! The part of the system that decided on a limit.

use tidegate_store::{Consistency, DecisionSource};

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

    /// The path of a limit that is shared like this, in a request that was decided at `source`. Where the limits of one request
    /// went several ways, a leased one counts as decided by the common store.
    pub(super) const fn of(source: DecisionSource, consistency: Consistency) -> Self {
        match (source, consistency) {
            (DecisionSource::Memory, _) | (_, Consistency::Node) => Self::Memory,
            (_, Consistency::Eventual) => Self::Totals,
            (DecisionSource::Common, _) => Self::Common,
            (DecisionSource::Held, Consistency::Split) => Self::Share,
            (DecisionSource::Held, Consistency::Strict | Consistency::Leased) => Self::Lease,
        }
    }

    /// The path of a limit that this node decided alone, because the store failed.
    pub(super) const fn without_store(consistency: Consistency) -> Self {
        match consistency {
            Consistency::Node => Self::Memory,
            Consistency::Eventual => Self::Totals,
            Consistency::Strict | Consistency::Leased | Consistency::Split => Self::Fallback,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_follows_from_the_place_and_the_sharing() {
        use Consistency::{Eventual, Leased, Node, Split, Strict};
        use DecisionSource::{Common, Held, Memory};
        for (source, consistency, expected) in [
            (Memory, Strict, DecisionPath::Memory),
            (Memory, Leased, DecisionPath::Memory),
            (Held, Node, DecisionPath::Memory),
            (Held, Strict, DecisionPath::Lease),
            (Held, Leased, DecisionPath::Lease),
            (Held, Split, DecisionPath::Share),
            (Held, Eventual, DecisionPath::Totals),
            (Common, Node, DecisionPath::Memory),
            (Common, Strict, DecisionPath::Common),
            (Common, Leased, DecisionPath::Common),
            (Common, Split, DecisionPath::Common),
            (Common, Eventual, DecisionPath::Totals),
        ] {
            assert_eq!(DecisionPath::of(source, consistency), expected);
        }
        assert_eq!(DecisionPath::without_store(Leased), DecisionPath::Fallback);
        assert_eq!(DecisionPath::without_store(Node), DecisionPath::Memory);
    }
}
