//! Room for the limits of new rules in every store of this node.

use tidegate_algorithms::Quota;
use tidegate_store::{Clock, Consistency, OldCounters, StoreError};

use super::SharedStore;
use crate::split::divisible;

// === impl SharedStore ===

impl<R, W: Clock, M: Clock> SharedStore<R, W, M> {
    /// Reserves room in each store that counts some of `limits`: in all of them or in none.
    pub(super) fn reserve_room(
        &self,
        limits: &mut dyn Iterator<Item = (&Quota, Consistency)>,
        old: OldCounters,
    ) -> Result<(), StoreError> {
        let (mut own, mut alone) = (Vec::new(), Vec::new());
        let (mut eventual, mut split) = (Vec::new(), Vec::new());
        for (quota, consistency) in limits {
            match consistency {
                Consistency::Node => own.push(quota),
                Consistency::Eventual if self.eventual.suits(quota) => eventual.push(quota),
                consistency => {
                    alone.push(quota);
                    if consistency == Consistency::Split && divisible(quota).is_ok() {
                        split.push(quota);
                    }
                }
            }
        }
        let own = self.local().reserve_limits(own.into_iter(), old)?;
        let alone = self.common.alone().reserve_limits(alone.into_iter(), old)?;
        let shares = self.eventual.shares();
        let eventual = shares.reserve_limits(eventual.into_iter(), old)?;
        let [aligned, measured] = self.split.reserve_limits(&split, old)?;
        for reservation in [own, alone, eventual, aligned, measured] {
            reservation.commit();
        }
        Ok(())
    }
}
