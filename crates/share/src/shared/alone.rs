//! Decisions of a node while the common store is unavailable.

use tidegate_algorithms::Decision;
use tidegate_store::{
    Charge, Charging, Clock, Consistency, DecisionSource, Decisions, Lender, Receipt, StoreError,
};

use super::SharedStore;
use crate::memory::FromMemory;
use crate::node::Node;
use crate::request::{Request, Ways};
use crate::split::SplitAlone;

/// The ways of sharing while the common store is unavailable.
struct AloneWays<'a, R, W, M> {
    shared: &'a SharedStore<R, W, M>,
    split: SplitAlone<'a, M>,
}

// === impl SharedStore ===

impl<R: Lender + 'static, W: Clock + 'static, M: Clock + 'static> SharedStore<R, W, M> {
    /// Decides by what memory has first, then by the standby.
    pub(super) fn decide_alone(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        let begun = self.common.clock().now();
        let ways = AloneWays {
            shared: self,
            split: SplitAlone::new(&self.split, self.standby(), self.common.alone()),
        };
        let mut request = Request::take(charges, charging, &ways)?;
        request.recall(|charge| self.standby().recall(self.common.alone(), charge));
        let rest = request.rest();
        if !rest.is_empty() {
            let reserves = self.split.reserves_alone(&rest);
            let rest = reserves.apply(&rest);
            let decided = self
                .standby()
                .charge(self.common.alone(), &rest, charging, decisions);
            if let Err(error) = decided {
                request.put_back(&ways);
                return Err(error);
            }
            request.fill(decisions);
        }
        let (earliest, shared) = (request.earliest_charge(), request.shared());
        let admission = request.close(&ways, decisions);
        self.standby().decided(admission);
        let earliest = earliest.map_or(begun, |time| time.min(begun));
        let receipt = Receipt::new(self.common.clock().now(), admission);
        Ok(receipt
            .charged_from(earliest)
            .charged_to_shared(shared)
            .decided_in(DecisionSource::Held))
    }
}

// === impl AloneWays ===

impl<R, W, M> Ways for AloneWays<'_, R, W, M>
where
    R: Lender + 'static,
    W: Clock + 'static,
    M: Clock + 'static,
{
    type Wall = W;

    fn node(&self) -> &Node<W> {
        self.shared.node()
    }

    fn way(&self, consistency: Consistency) -> Option<&dyn FromMemory> {
        match consistency {
            Consistency::Split => Some(&self.split),
            _ => self.shared.way(consistency),
        }
    }

    fn tell(&self, charge: &Charge<'_>) -> Option<Decision> {
        self.shared.tell(charge)
    }
}
