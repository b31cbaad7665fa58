//! The contract of a way of sharing that decides from memory, seen from the request.

use tidegate_algorithms::{Decision, Time};
use tidegate_store::{Charge, Charging, StoreError};

/// The decision of memory on one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) decision: Decision,
    /// When what it took was charged, by the clock of whoever did. A permit in hand was when the store lent
    /// it: it goes back into the same loan or none, for another one may end later than the store has charged
    /// it for. A counter in memory takes nothing back in another window.
    pub(crate) charged: Option<Time>,
    /// Whether an eventual limit charged this node's share, because its counter found no room.
    pub(crate) is_untracked: bool,
}

/// Decides on single limits from what this node holds in memory. Nothing here waits.
///
/// A request takes its limits one by one; refused as a whole, it puts back all that it took and then
/// asks what truly remains, in two steps because it may have named one counter twice.
pub(crate) trait FromMemory {
    /// Decides on one limit and charges it if it admits, whatever its mode, if that can be done from
    /// memory; `None` if the common store is to be asked.
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Result<Option<Took>, StoreError>;

    /// Takes back what [`take`](Self::take) charged when it admitted, for the request is refused as a
    /// whole.
    fn put_back(&self, charge: &Charge<'_>, took: &Took);

    /// Corrects an admitting `decision` on what was put back: it then says what truly remains.
    fn correct(&self, charge: &Charge<'_>, took: &Took, decision: &mut Decision);

    /// Counts a request that is decided as demand for its limits.
    fn note_demand(&self, _: &[Charge<'_>], _: &[Decision], _is_charged: bool) {}
}

// === impl Took ===

impl Took {
    pub(crate) const fn new(decision: Decision, charged: Option<Time>) -> Self {
        Self {
            decision,
            charged,
            is_untracked: false,
        }
    }
}

impl From<Decision> for Took {
    fn from(decision: Decision) -> Self {
        Self::new(decision, None)
    }
}
