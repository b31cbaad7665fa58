//! The store's time between its replies, as far as a node can know it.
//!
//! A reply that was asked for at `asked` and was here at `answered`, by the node's own clock, and says
//! `now`, means: at no moment since has the store's time been before `now` plus the time since
//! `answered`, nor after `now` plus the time since `asked`. The node's clock measures those spans and
//! nothing else, so that it does not matter what date it has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_algorithms::Time;
use tidegate_store::Clock;

use crate::reckoning::Heard;

/// By how much two clocks may run apart: one part in so many. Ten times what clocks do, and twice what
/// those do that are being set.
const DRIFT: u32 = 1_000;

/// What a store rounds its time down to.
const GRAIN: Duration = Duration::from_micros(1);

/// A clock that lags further behind than this is set at once.
const LARGEST_LAG: Duration = Duration::from_millis(50);

/// A clock that goes by the store's time, as a node last heard it.
///
/// It tells the earliest that the store's time can be. When a reply shows it to be late it runs faster by
/// one part in a thousand until it is not, rather than jump and cut short the windows that are measured
/// by it.
#[derive(Debug)]
pub(super) struct StoreTime<C> {
    own: C,
    /// What to add to the node's nanoseconds, wrapping.
    offset: AtomicU64,
    heard: ArcSwapOption<Heard>,
}

/// Between what times the store's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// It is not before this.
    pub(super) earliest: Time,
    /// It is not after this.
    pub(super) latest: Time,
}

// === impl StoreTime ===

impl<C: Clock> StoreTime<C> {
    /// A clock that has heard nothing yet, and measures spans by `own`.
    pub(super) fn new(own: C) -> Self {
        Self {
            own,
            offset: AtomicU64::new(0),
            heard: ArcSwapOption::empty(),
        }
    }

    /// The clock that spans are measured by.
    pub(super) const fn own(&self) -> &C {
        &self.own
    }

    /// Sets the clock by a reply. Of replies that overtake each other the later one counts.
    pub(super) fn hear(&self, heard: Heard) {
        let before = self.heard.load();
        let since = match before.as_deref() {
            Some(before) if heard.asked < before.asked => return,
            Some(before) => Some(heard.answered.since(before.answered)),
            None => None,
        };
        let target = heard.now.nanos().wrapping_sub(heard.answered.nanos());
        let offset = match since {
            Some(since) => self.approach(target, since),
            None => target,
        };
        // The offset first: whoever finds the reply finds a clock that was set by it.
        self.offset.store(offset, Ordering::Release);
        self.heard.store(Some(heard.into()));
    }

    /// How long ago the store was heard; `None` if it never was.
    pub(super) fn age(&self) -> Option<Duration> {
        let heard = self.heard.load();
        heard
            .as_deref()
            .map(|heard| self.own.now().since(heard.answered))
    }

    /// Between what times the store's is, and that of this clock too; `None` before the first reply.
    pub(super) fn bounds(&self) -> Option<Bounds> {
        let heard = self.heard.load();
        let heard = heard.as_deref()?;
        let own = self.own.now();
        let since_answered = own.since(heard.answered);
        let since_asked = own.since(heard.asked);
        let bounds = Bounds {
            earliest: heard
                .now
                .plus(since_answered.saturating_sub(since_answered / DRIFT)),
            latest: heard
                .now
                .plus(since_asked.saturating_add(since_asked / DRIFT))
                .plus(GRAIN),
        };
        Some(bounds.with(self.at(own)))
    }

    fn at(&self, own: Time) -> Time {
        let offset = self.offset.load(Ordering::Acquire);
        Time::from_nanos(own.nanos().wrapping_add(offset))
    }

    /// The offset to go by when `target` is the true one, and the last one is so old.
    fn approach(&self, target: u64, since: Duration) -> u64 {
        let offset = self.offset.load(Ordering::Relaxed);
        // Wrapping: as large as nothing a clock lags by if it is ahead.
        let lag = Duration::from_nanos(target.wrapping_sub(offset));
        if lag > LARGEST_LAG {
            return target;
        }
        let step = lag.min(since / DRIFT);
        offset.wrapping_add(u64::try_from(step.as_nanos()).unwrap_or(0))
    }
}

impl<C: Clock> Clock for StoreTime<C> {
    fn now(&self) -> Time {
        self.at(self.own.now())
    }
}

// === impl Bounds ===

impl Bounds {
    /// The same, and `time` is between them too.
    fn with(self, time: Time) -> Self {
        Self {
            earliest: self.earliest.min(time),
            latest: self.latest.max(time),
        }
    }

    /// Whether it is surely not before `starts`, and surely before `ends`.
    pub(super) fn are_within(self, starts: Time, ends: Time) -> bool {
        starts <= self.earliest && self.latest < ends
    }

    /// Whether all of it lies in one and the same window.
    pub(super) fn are_in_one(self, window: Duration) -> bool {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.earliest.nanos() / window == self.latest.nanos() / window
    }
}
