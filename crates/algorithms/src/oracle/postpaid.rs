//! Costs that are charged whether or not they fit.

use super::{Model, Oracle, first};
use crate::Allowance;

// === impl Oracle ===

impl Oracle {
    pub(super) const fn is_postpaid(&self) -> bool {
        matches!(self.allowance, Allowance::Postpaid { .. }) && self.capacity > 0
    }

    /// Charges a cost that does not fit: as much of it as the debt has room for.
    pub(super) fn debit(&mut self, cost: u128, now: u128) {
        let most = self.capacity + self.extra;
        match &mut self.model {
            Model::Drip(drip) => drip.debit(cost, now),
            Model::Stamps(stamps) => stamps.debit(cost, now),
            model => {
                let room = first(0, most + 1, |more| {
                    more > most || !model.fits(more, most, now)
                });
                model.charge(cost.min(room.saturating_sub(1)), now);
            }
        }
    }
}
