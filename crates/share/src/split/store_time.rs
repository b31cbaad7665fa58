//! The store's time between its replies, as far as a node can know it.
//!
//! A reply that was asked for at `asked` and was here at `answered`, by the node's own clock, and says
//! `now`, means: at no moment since has the store's time been before `now` plus the time since
//! `answered`, nor after `now` plus the time since `asked`. The node's clock measures those spans and
//! nothing else, so that it does not matter what date it has.

use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_algorithms::Time;
use tidegate_store::Clock;

use crate::reckoning::Heard;

/// By how much two clocks may run apart: one part in so many. Ten times what clocks do, and twice what
/// those do that are being set. A step of the store's clock that is smaller than the bounds are apart is noticed
/// when they have drifted as far.
const DRIFT: u32 = 1_000;

/// What a store rounds its time down to.
const GRAIN: Duration = Duration::from_micros(1);

/// What a node knows of the store's time. As a clock it tells the earliest that it can be.
#[derive(Debug)]
pub(super) struct StoreTime<C> {
    own: C,
    known: ArcSwapOption<DatedBounds>,
}

/// The bounds that follow from all replies, at one moment of the node's clock.
#[derive(Clone, Copy, Debug)]
struct DatedBounds {
    bounds: Bounds,
    at: Time,
}

/// The earliest and the latest time that the store's clock can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) earliest: Time,
    pub(super) latest: Time,
}

// === impl StoreTime ===

impl<C: Clock> StoreTime<C> {
    /// A clock that has heard nothing yet, and measures spans by `own`.
    pub(super) fn new(own: C) -> Self {
        Self {
            own,
            known: ArcSwapOption::empty(),
        }
    }

    /// The clock that spans are measured by.
    pub(super) const fn own(&self) -> &C {
        &self.own
    }

    /// Learns from a reply, which came after all others. A quick way there makes the latest time exact, a quick way
    /// back the earliest, so each bound is taken from the reply that has the better one. A reply that contradicts
    /// them replaces both: the store's clock was set.
    pub(super) fn hear(&self, heard: Heard) {
        let news = DatedBounds::from(heard);
        let known = self.known.load();
        let known = known.as_deref().map(|known| known.at(heard.answered));
        let bounds = known
            .and_then(|known| known.intersection(news.bounds))
            .unwrap_or(news.bounds);
        self.known
            .store(Some(DatedBounds { bounds, ..news }.into()));
    }

    /// Between what times the store's is now; `None` before the first reply.
    pub(super) fn bounds(&self) -> Option<Bounds> {
        let known = self.known.load();
        Some(known.as_deref()?.at(self.own.now()))
    }
}

impl<C: Clock> Clock for StoreTime<C> {
    fn now(&self) -> Time {
        self.bounds().map_or(Time::ZERO, |bounds| bounds.earliest)
    }
}

// === impl DatedBounds ===

impl DatedBounds {
    /// The bounds at the moment that a reply is here.
    fn from(heard: Heard) -> Self {
        let way = heard.answered.since(heard.asked);
        let latest = heard.now.plus(way.saturating_add(way / DRIFT)).plus(GRAIN);
        Self {
            bounds: Bounds {
                earliest: heard.now,
                latest,
            },
            at: heard.answered,
        }
    }

    /// The bounds at a later time of the node's clock.
    fn at(&self, own: Time) -> Bounds {
        let since = own.since(self.at);
        Bounds {
            earliest: self
                .bounds
                .earliest
                .plus(since.saturating_sub(since / DRIFT)),
            latest: self.bounds.latest.plus(since.saturating_add(since / DRIFT)),
        }
    }
}

// === impl Bounds ===

impl Bounds {
    /// The times that lie within both; `None` if both cannot be true.
    fn intersection(self, other: Self) -> Option<Self> {
        let both = Self {
            earliest: self.earliest.max(other.earliest),
            latest: self.latest.min(other.latest),
        };
        (both.earliest <= both.latest).then_some(both)
    }

    /// Whether it is surely not before `starts`, and surely before `ends`.
    pub(super) fn are_within(self, starts: Time, ends: Time) -> bool {
        starts <= self.earliest && self.latest < ends
    }

    /// Whether all of it lies in one and the same window.
    pub(super) fn are_in_one(self, window: Duration) -> bool {
        let window = nanos(window);
        self.earliest.nanos() / window == self.latest.nanos() / window
    }
}

fn nanos(window: Duration) -> u64 {
    u64::try_from(window.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_store::ManualClock;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn milli(milli: u64) -> Time {
        Time::from_micros(milli * 1_000)
    }

    /// A node whose clock shows `own`, in milliseconds, and what it knows.
    fn node(own: u64) -> (Arc<ManualClock>, StoreTime<Arc<ManualClock>>) {
        let clock = Arc::new(ManualClock::at(milli(own)));
        (Arc::clone(&clock), StoreTime::new(clock))
    }

    fn heard(now: u64, asked: u64, answered: u64) -> Heard {
        Heard {
            now: milli(now),
            asked: milli(asked),
            answered: milli(answered),
        }
    }

    #[track_caller]
    fn check(time: &StoreTime<Arc<ManualClock>>, earliest: Time, latest: Time) {
        let latest = latest.plus(GRAIN);
        assert_eq!(time.bounds(), Some(Bounds { earliest, latest }));
        assert_eq!(time.now(), earliest);
    }

    #[test]
    fn nothing_is_known_before_the_first_reply() {
        let (_, time) = node(5);
        assert_eq!(time.bounds(), None);
    }

    #[test]
    fn the_stores_time_lies_between_two_spans_and_further_apart_with_time() {
        let (clock, time) = node(14);
        time.hear(heard(70_000, 10, 14));
        check(&time, milli(70_000), milli(70_004).plus(MILLI * 4 / DRIFT));
        clock.advance(MILLI * 1_000);
        check(&time, milli(70_999), milli(71_005).plus(MILLI * 4 / DRIFT));
    }

    #[test]
    fn each_reply_tells_the_bound_that_it_knows_better() {
        let (clock, time) = node(14);
        time.hear(heard(70_000, 10, 14));
        clock.set(milli(40));
        let known = time.bounds().unwrap();
        // Says between 70,015 and 70,035, of which both are known better.
        time.hear(heard(70_015, 20, 40));
        assert_eq!(time.bounds(), Some(known));
        // Was slow on its way back only.
        time.hear(heard(70_011, 24, 40));
        let narrower = time.bounds().unwrap();
        assert_eq!(narrower.earliest, known.earliest);
        assert_eq!(
            narrower.latest,
            milli(70_027).plus(MILLI * 16 / DRIFT).plus(GRAIN)
        );
    }

    #[test]
    fn a_store_whose_clock_was_set_is_believed() {
        let (clock, time) = node(14);
        time.hear(heard(70_000, 13, 14));
        clock.set(milli(40));
        time.hear(heard(60_000, 20, 40));
        assert_eq!(time.now(), milli(60_000));
    }
}
