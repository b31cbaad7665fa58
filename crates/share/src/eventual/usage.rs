//! Use of a limit at one instant, as the limit's own algorithm sees it.

use smallvec::SmallVec;
use tidegate_algorithms::sliding_log::Log;
use tidegate_algorithms::sub_windows::Counts;
use tidegate_algorithms::{
    Algorithm, Decision, Meter, Quota, RefundTo, Ticks, Time, fixed_window, interval_bucket,
    sliding_counter, token_bucket,
};

use super::slots::SlotLayout;
use crate::capacity::capacity;

/// Use of a limit after some admissions were charged, slot by slot, in order.
///
/// What does not fit is debt. It is charged as soon as there is room, before anything newer.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    layout: SlotLayout,
    level: Level,
    /// What was admitted above the limit and is not paid off.
    pub(super) debt: u64,
    /// The slot that was charged last.
    slot: u64,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for one decision, which allocates nothing"
)]
enum Level {
    TokenBucket(token_bucket::State),
    IntervalBucket(interval_bucket::State),
    /// What counts in each slot, oldest first.
    Slots(SlotCounts),
}

/// A gap of more windows than this is not walked slot by slot.
const LONG_GAP: u64 = 2;

/// Counts by slot, oldest first.
pub(super) type SlotCounts = SmallVec<[(u64, u64); 18]>;

/// A log whose entries are dated at the end of their slot, so that none leaves the window early.
struct SlotLog<'a> {
    counts: &'a [(u64, u64)],
    layout: SlotLayout,
    grain: u64,
}

/// Sub-windows of which each slot is a group, dated at the last one of the group that has begun.
struct SlotGroups<'a> {
    counts: &'a [(u64, u64)],
    group: u64,
    parts: u64,
    newest: u64,
}

// === impl Usage ===

impl Usage {
    /// Begins before the slot `first`, with the stored state of a bucket and with what is owed.
    pub(super) fn begin(
        quota: &Quota,
        layout: SlotLayout,
        first: u64,
        state: u64,
        debt: u64,
    ) -> Self {
        let level = match quota.meter() {
            Meter::TokenBucket(_) => Level::TokenBucket(token_bucket::State {
                tat: Ticks::from_nanos(state),
            }),
            Meter::IntervalBucket(_) => {
                let last = layout.end(first.saturating_sub(1)).nanos();
                let window = u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX);
                Level::IntervalBucket(interval_bucket::State {
                    period: last / window.max(1),
                    missing: state,
                })
            }
            _ => Level::Slots(SlotCounts::new()),
        };
        Self {
            layout,
            level,
            debt,
            slot: first.saturating_sub(1),
        }
    }

    /// The state of a bucket that is settled, to be stored: when a token bucket is full again, or what an
    /// interval bucket misses. Zero for all others.
    pub(super) fn state(&self) -> u64 {
        match &self.level {
            Level::TokenBucket(state) => state.tat.ceil().nanos(),
            Level::IntervalBucket(state) => state.missing,
            Level::Slots(_) => 0,
        }
    }

    /// Charges what all nodes admitted in a slot, or refunds it if that is below zero. `now` is the
    /// latest date that a charge may get. Slots come in order.
    pub(super) fn charge(&mut self, quota: &Quota, slot: u64, sum: i64, now: Time) {
        self.pay_until(quota, slot, now);
        self.slot = slot;
        let at = self.layout.end(slot).min(now);
        match u64::try_from(sum) {
            Ok(cost) => {
                let cost = self.debt.saturating_add(cost);
                self.debt = cost - self.charge_up_to(quota, cost, at);
                if quota.is_postpaid() {
                    // What was charged includes all debt that there may be.
                    self.debt = 0;
                }
            }
            Err(_) => self.refund(quota, sum.unsigned_abs(), at),
        }
    }

    /// Pays off debt as far as there is room at `now`, and drops what no longer counts.
    pub(super) fn settle(&mut self, quota: &Quota, now: Time) {
        self.charge(quota, self.layout.at(now).max(self.slot), 0, now);
        if let (Level::IntervalBucket(state), Meter::IntervalBucket(meter)) =
            (&mut self.level, quota.meter())
        {
            *state = meter.decide(*state, 0, 0, now).1;
        }
    }

    /// Pays off debt in the slots between the last charge and `slot`, in which nothing was admitted.
    fn pay_until(&mut self, quota: &Quota, slot: u64, now: Time) {
        let spans = slot.saturating_sub(self.slot) / self.layout.span;
        if self.debt > 0 && spans > LONG_GAP {
            let skipped = spans - LONG_GAP;
            self.debt = self
                .debt
                .saturating_sub(skipped.saturating_mul(most(quota)));
            self.slot += skipped * self.layout.span;
        }
        while self.debt > 0 && self.slot + 1 < slot {
            let room = self.debt;
            self.slot += 1;
            let at = self.layout.end(self.slot).min(now);
            self.debt -= self.charge_up_to(quota, room, at);
        }
    }

    /// Charges as much of `cost` as fits, and returns how much did.
    fn charge_up_to(&mut self, quota: &Quota, cost: u64, at: Time) -> u64 {
        if cost == 0 {
            return 0;
        }
        let slot = self.slot;
        match (&mut self.level, quota.meter()) {
            (Level::TokenBucket(state), Meter::TokenBucket(meter)) => {
                let decide = |cost, extra, state| meter.decide(state, cost, extra, at);
                force(quota, cost, state, decide)
            }
            (Level::IntervalBucket(state), Meter::IntervalBucket(meter)) => {
                let decide = |cost, extra, state| meter.decide(state, cost, extra, at);
                force(quota, cost, state, decide)
            }
            (Level::Slots(counts), _) => {
                counts.retain(|(old, _)| *old + self.layout.span > slot.saturating_sub(1));
                let recent = counts
                    .iter()
                    .filter(|(old, _)| *old + self.layout.span > slot);
                let used: u64 = recent.map(|(_, count)| count).sum();
                let fits = if keeps_debt(quota) {
                    most(quota).saturating_sub(used).min(cost)
                } else {
                    cost
                };
                match counts.last_mut() {
                    Some((last, count)) if *last == slot => *count = count.saturating_add(fits),
                    _ => counts.push((slot, fits)),
                }
                fits
            }
            // The quota is of the algorithm that this began with.
            _ => cost,
        }
    }

    fn refund(&mut self, quota: &Quota, cost: u64, at: Time) {
        let from_debt = cost.min(self.debt);
        self.debt -= from_debt;
        let mut rest = cost - from_debt;
        match (&mut self.level, quota.meter()) {
            (Level::TokenBucket(state), Meter::TokenBucket(meter)) => {
                *state = meter.refund(*state, rest, RefundTo::Current, at);
            }
            (Level::IntervalBucket(state), Meter::IntervalBucket(meter)) => {
                *state = meter.refund(*state, rest, RefundTo::Current, at);
            }
            (Level::Slots(counts), _) => {
                for (_, count) in counts.iter_mut().rev() {
                    let taken = rest.min(*count);
                    *count -= taken;
                    rest -= taken;
                }
            }
            _ => {}
        }
    }

    /// The amount in use at `now`, with all that is above the limit.
    pub(super) fn used(&self, quota: &Quota, now: Time) -> u64 {
        let current = self.layout.at(now).max(self.slot);
        let used = match (&self.level, quota.meter()) {
            (Level::TokenBucket(state), Meter::TokenBucket(meter)) => {
                let ahead = state.tat.0.saturating_sub(Ticks::at(now).0);
                let tokens = ahead.div_ceil(meter.spans().interval.0.max(1));
                u64::try_from(tokens).unwrap_or(u64::MAX)
            }
            (Level::IntervalBucket(state), Meter::IntervalBucket(meter)) => {
                meter.decide(*state, 0, 0, now).1.missing
            }
            (Level::Slots(counts), Meter::FixedWindow(_)) => count_in(counts, current),
            (Level::Slots(counts), _) => {
                let counts = counts.iter();
                let counts = counts.filter(|(slot, _)| *slot + self.layout.span >= current);
                counts.map(|(_, count)| count).sum()
            }
            _ => 0,
        };
        used.saturating_add(self.debt)
    }

    /// Decides on a request of `cost` at `now`, without charging it.
    pub(super) fn decide(&self, quota: &Quota, cost: u64, extra: u64, now: Time) -> Decision {
        let current = self.layout.at(now).max(self.slot);
        match (&self.level, quota.meter()) {
            (Level::TokenBucket(state), Meter::TokenBucket(meter)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Level::IntervalBucket(state), Meter::IntervalBucket(meter)) => {
                meter.decide(*state, cost, extra, now).0
            }
            (Level::Slots(counts), Meter::FixedWindow(meter)) => {
                let state = fixed_window::State {
                    window: current,
                    count: count_in(counts, current),
                };
                meter.decide(state, cost, extra, now).0
            }
            (Level::Slots(counts), Meter::SlidingCounter(meter)) => {
                let state = sliding_counter::State {
                    window: current,
                    previous: count_in(counts, current.saturating_sub(1)),
                    current: count_in(counts, current),
                };
                meter.decide(state, cost, extra, now).0
            }
            (Level::Slots(counts), Meter::SlidingLog(meter)) => {
                let log = SlotLog {
                    counts,
                    layout: self.layout,
                    grain: meter.grain(),
                };
                meter.decide(&log, cost, extra, now).0
            }
            (Level::Slots(counts), Meter::SubWindows(meter)) => {
                let sub_window = u64::try_from(meter.sub_window().as_nanos()).unwrap_or(u64::MAX);
                let groups = SlotGroups {
                    counts,
                    group: (self.layout.nanos / sub_window.max(1)).max(1),
                    parts: meter.parts(),
                    newest: now.nanos() / sub_window.max(1),
                };
                meter.decide(&groups, cost, extra, now).0
            }
            _ => unused(quota),
        }
    }
}

/// Charges as much as fits to a bucket, what it tolerates above its capacity included.
fn force<S: Copy>(
    quota: &Quota,
    cost: u64,
    state: &mut S,
    decide: impl Fn(u64, u64, S) -> (Decision, S),
) -> u64 {
    if quota.is_postpaid() {
        // Charged whatever it says, up to the debt that it may have.
        *state = decide(cost, 0, *state).1;
        return cost;
    }
    let mut charged = 0;
    let room = decide(0, 0, *state).0.remaining;
    for (most, extra) in [(room, 0), (quota.most_extra(), quota.most_extra())] {
        let part = most.min(cost - charged);
        let (decision, after) = decide(part, extra, *state);
        if part > 0 && decision.is_allowed() {
            *state = after;
            charged += part;
        }
    }
    charged
}

/// Whether what was admitted above a limit is paid off later. A log of refused requests is over its
/// limit for as long as somebody asks, and owes nothing.
pub(super) const fn keeps_debt(quota: &Quota) -> bool {
    !matches!(
        quota.algorithm(),
        Algorithm::SlidingLog { log_refused: true }
    )
}

/// The most of a limit that may be in use, what it tolerates included.
pub(super) const fn most(quota: &Quota) -> u64 {
    capacity(quota).saturating_add(quota.most_extra())
}

fn count_in(counts: &[(u64, u64)], slot: u64) -> u64 {
    let found = counts.iter().find(|(at, _)| *at == slot);
    found.map_or(0, |(_, count)| *count)
}

/// The decision of a limit that does not count.
pub(super) fn unused(quota: &Quota) -> Decision {
    Decision {
        outcome: tidegate_algorithms::Outcome::Allowed {
            standing: tidegate_algorithms::Standing::Within,
            delay: std::time::Duration::ZERO,
        },
        limit: capacity(quota),
        remaining: capacity(quota),
        reset_after: std::time::Duration::ZERO,
    }
}

// === impl SlotLog ===

impl Log for SlotLog<'_> {
    fn len(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        let mut before = 0;
        for (slot, count) in self.counts {
            before += count;
            if n < before {
                return Some(self.layout.end(*slot).nanos().div_ceil(self.grain.max(1)));
            }
        }
        None
    }
}

// === impl SlotGroups ===

impl SlotGroups<'_> {
    /// The sub-window that a slot is dated at.
    fn date(&self, slot: u64) -> u64 {
        (slot * self.group + self.group - 1).min(self.newest)
    }
}

impl Counts for SlotGroups<'_> {
    fn newest(&self) -> u64 {
        self.newest
    }

    fn total(&self) -> u64 {
        let is_recent = |slot| self.date(slot) + self.parts >= self.newest;
        let recent = self.counts.iter().filter(|(slot, _)| is_recent(*slot));
        recent.map(|(_, count)| count).sum()
    }

    fn count(&self, age: u64) -> u64 {
        let at = self.newest.saturating_sub(age);
        let dated = self
            .counts
            .iter()
            .filter(|(slot, _)| self.date(*slot) == at);
        dated.map(|(_, count)| count).sum()
    }

    // Only read here.
    fn advance(&mut self, _: u64) {}

    fn add(&mut self, _: u64) {}

    fn take(&mut self, _: u64, _: u64) -> u64 {
        0
    }
}
