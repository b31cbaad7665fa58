//! Slots: the pieces of time by which a limit's admissions are dated.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, Refill, Time};

use crate::capacity::capacity;

/// The most slots of a window, so that admissions are dated to within a 16th of it.
pub(super) const WINDOW_SLOTS: u64 = 16;

/// The cut of a limit's time into slots, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotLayout {
    /// Nanoseconds in a slot, not zero.
    pub(super) nanos: u64,
    /// The number of slots before the current one that still matter. As many make an epoch, so
    /// that all that matters is in two epochs.
    pub(super) span: u64,
}

// === impl SlotLayout ===

impl SlotLayout {
    /// Slots of a fixed window, an interval bucket and a sliding counter are its windows, because these
    /// forget at their edges only. Those of sub-windows are whole sub-windows. A log has 16 in a
    /// window, a token bucket 16 in a window or, if that is longer, in the time it takes to refill.
    pub(super) fn of(quota: &Quota) -> Self {
        let window = nanos(quota.window());
        match quota.algorithm() {
            Algorithm::FixedWindow | Algorithm::LeakyBucket { .. } => Self::new(window, 1),
            Algorithm::SlidingCounter { sub_windows, .. } => {
                let parts = u64::from(sub_windows).max(1);
                Self::grouped(window.div_ceil(parts), parts)
            }
            Algorithm::SlidingLog { .. } => Self::new(window.div_ceil(WINDOW_SLOTS), WINDOW_SLOTS),
            Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => Self::grouped(
                window,
                capacity(quota).div_ceil(quota.limit().max(1)).max(1),
            ),
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => {
                let refill = time_to_refill(quota, window);
                let length = window.max(refill).div_ceil(WINDOW_SLOTS);
                Self::new(length, refill.div_ceil(length.max(1)))
            }
        }
    }

    /// Groups `parts` pieces of time into at most 16 slots.
    fn grouped(part: u64, parts: u64) -> Self {
        let group = parts.div_ceil(WINDOW_SLOTS);
        Self::new(part.saturating_mul(group), parts.div_ceil(group))
    }

    fn new(nanos: u64, span: u64) -> Self {
        Self {
            nanos: nanos.max(1),
            span: span.max(1),
        }
    }

    /// The slot at a time.
    pub(super) const fn at(&self, time: Time) -> u64 {
        time.nanos() / self.nanos
    }

    /// The first slot of the epoch of `slot`.
    pub(super) const fn epoch_start(&self, slot: u64) -> u64 {
        slot - slot % self.span
    }

    /// The last instant of a slot.
    pub(super) const fn end(&self, slot: u64) -> Time {
        let next = slot.saturating_add(1).saturating_mul(self.nanos);
        Time::from_nanos(next.saturating_sub(1))
    }

    /// The time for which a counter can matter after its last use: two epochs.
    pub(super) const fn expiry(&self) -> Duration {
        Duration::from_nanos(self.nanos.saturating_mul(self.span.saturating_mul(2)))
    }
}

fn time_to_refill(quota: &Quota, window: u64) -> u64 {
    let tokens = u128::from(capacity(quota)) * u128::from(window);
    let refill = tokens.div_ceil(u128::from(quota.limit().max(1)));
    u64::try_from(refill).unwrap_or(u64::MAX)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
