//! The short way for what most requests are: one limit, a key that is there, a narrow state.
//!
//! It does what the long way does and gives up, before anything is written, where something else
//! turns out to be needed. The stress and conformance tests take both ways.

use tidegate_algorithms::{Decision, Quota, Time};

use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::layout::Layout;
use super::ledger::expires_at;
use super::state::{State, fits_narrow};
use super::table::{Home, LockedSet};
use super::tag::{Form, Tag};
use crate::{Charge, Charging, Clock, StoreError};

// === impl Core ===

impl Core {
    /// Charges one limit; `None` if that takes the long way.
    #[inline]
    pub(super) fn charge_quickly(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Result<Option<(Decision, Time)>, StoreError> {
        let layout = Layout::of(charge.quota);
        if charging == Charging::EveryMatch || !fits_narrow(charge.quota, layout) {
            return Ok(None);
        }
        let hash = fingerprinter.hash(charge.key);
        let tag = Tag::new(hash, self.layouts.number(layout)?);
        let home = self.table.home(hash);
        let Some((set, slot)) = self.find_quickly(tag, &home) else {
            return Ok(None);
        };
        Ok(decide_at(&set, slot, layout, charge, clock))
    }

    /// The key's slot, with its set locked. The lock of the primary set is kept while the secondary
    /// one is looked at: it is what says that the key does not move.
    #[inline]
    fn find_quickly(&self, tag: Tag, home: &Home) -> Option<(LockedSet<'_>, usize)> {
        let primary = self.table.lock(home.primary);
        if self.table.size(home.primary.shard) != home.size {
            return None;
        }
        if let Some(slot) = primary.find(tag) {
            return Some((primary, slot));
        }
        let secondary = self.table.try_lock(home.secondary)?;
        let slot = secondary.find(tag)?;
        Some((secondary, slot))
    }
}

#[inline]
fn decide_at(
    set: &LockedSet<'_>,
    slot: usize,
    layout: Layout,
    charge: &Charge<'_>,
    clock: &impl Clock,
) -> Option<(Decision, Time)> {
    let tag = set.tag(slot);
    if tag.form() != Form::Narrow {
        return None;
    }
    let state = State::from_narrow(set.state(slot), layout)?;
    let now = clock.now();
    let quota: &Quota = charge.quota;
    let (decision, next) = quota.judge(None, charge.headroom, now, |extra| {
        state.decide(quota.meter(), charge.cost, extra, now)
    });
    let is_refused = !decision.is_allowed();
    // A refused bucket that was found too far ahead is written clamped.
    let is_written = if is_refused {
        next.instant() < state.instant()
    } else {
        charge.cost > 0
    };
    if is_written {
        set.put_state(slot, next.to_narrow(layout, expires_at(quota, next)));
    }
    if (is_refused || charge.cost > 0) && is_refused != tag.is_refused() {
        set.put_tag(slot, tag.with_refused(is_refused));
    }
    Some((decision, now))
}
