//! What a way of sharing that decides from memory does, seen from the request.

use tidegate_algorithms::Decision;
use tidegate_store::{Charge, Charging};

/// Decides on single limits from what this node holds in memory. Nothing here waits.
///
/// A request takes its limits one by one; refused as a whole, it puts back what it took.
pub(crate) trait FromMemory {
    /// Decides on one limit and charges it, if that can be done from memory; `None` if the common
    /// store is to be asked.
    fn take(&self, charge: &Charge<'_>, charging: Charging) -> Option<Decision>;

    /// Takes back what [`take`](Self::take) charged, for the request is refused as a whole. `decision`
    /// then says what truly remains.
    fn put_back(&self, charge: &Charge<'_>, decision: &mut Decision);
}
