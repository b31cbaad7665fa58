//! One caller's counter in plain memory, for tests: does with a quota what a store does.

use std::collections::VecDeque;

use crate::oracle::Commit;
use crate::sliding_log::{Entry, Log, LogMut};
use crate::sub_windows::Counts;
use crate::{
    Decision, Headroom, Inquiry, Meter, Quota, RefundTo, SoftPeriod, Time, fixed_window,
    interval_bucket, leaky_bucket, sliding_counter, token_bucket,
};

/// A counter of one quota.
#[derive(Clone, Debug)]
pub struct Counter {
    quota: Quota,
    soft_period: Option<SoftPeriod>,
    state: State,
}

/// A log that owns its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(VecDeque<u64>);

/// Counts of sub-windows, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    newest: u64,
    /// Of the counts; they never add up to more than 64 bits hold.
    total: u64,
    counts: VecDeque<u64>,
}

#[derive(Clone, Debug)]
enum State {
    TokenBucket(token_bucket::State),
    IntervalBucket(interval_bucket::State),
    LeakyBucket(leaky_bucket::State),
    FixedWindow(fixed_window::State),
    SlidingLog(Stamps),
    SlidingCounter(sliding_counter::State),
    SubWindows(Ring),
}

/// What to write when a decision is kept.
enum Kept {
    State(State),
    Entry(Option<Entry>),
    Charged(u64),
}

// === impl Counter ===

impl Counter {
    /// The counter of a caller never seen.
    pub fn new(quota: Quota) -> Self {
        let state = match quota.meter() {
            Meter::TokenBucket(_) => State::TokenBucket(token_bucket::State::default()),
            Meter::IntervalBucket(_) => State::IntervalBucket(interval_bucket::State::default()),
            Meter::LeakyBucket(_) => State::LeakyBucket(leaky_bucket::State::default()),
            Meter::FixedWindow(_) => State::FixedWindow(fixed_window::State::default()),
            Meter::SlidingLog(_) => State::SlidingLog(Stamps::default()),
            Meter::SlidingCounter(_) => State::SlidingCounter(sliding_counter::State::default()),
            Meter::SubWindows(meter) => State::SubWindows(Ring::new(meter.parts())),
        };
        Self {
            quota,
            soft_period: None,
            state,
        }
    }

    /// The quota it counts for.
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Goes on with other numbers, as after a reload of the rules.
    ///
    /// # Panics
    /// If the new quota keeps another sort of state.
    pub fn change_quota(&mut self, quota: Quota) {
        let fresh = Self::new(quota);
        assert!(
            std::mem::discriminant(&fresh.state) == std::mem::discriminant(&self.state),
            "a changed algorithm starts a new counter"
        );
        self.quota = fresh.quota;
    }

    /// Decides on one request, as a store would.
    pub fn decide(&mut self, cost: u64, headroom: Headroom, now: Time, commit: Commit) -> Decision {
        let (period, inquiry) = (self.soft_period, Inquiry::of(cost));
        let (mut decision, kept) = self.quota.judge(period, headroom, now, inquiry, |extra| {
            self.decide_with(cost, extra, now)
        });
        if commit != Commit::Nothing {
            self.keep(kept, now);
            if inquiry == Inquiry::Request {
                self.soft_period = self.quota.next_soft_period(period, &decision, now);
            }
        }
        if commit == Commit::CountRefused
            && !decision.is_allowed()
            && !self.quota.is_postpaid()
            && let (Meter::FixedWindow(meter), State::FixedWindow(state)) =
                (self.quota.meter(), &mut self.state)
        {
            *state = meter.count_refused(*state, cost, now);
            decision.remaining = decision.limit.saturating_sub(state.count);
        }
        decision
    }

    /// Refunds `cost`.
    pub fn refund(&mut self, cost: u64, to: RefundTo, now: Time) {
        match (self.quota.meter(), &mut self.state) {
            (Meter::TokenBucket(meter), State::TokenBucket(state)) => {
                *state = meter.refund(*state, cost, to, now);
            }
            (Meter::IntervalBucket(meter), State::IntervalBucket(state)) => {
                *state = meter.refund(*state, cost, to, now);
            }
            (Meter::LeakyBucket(meter), State::LeakyBucket(state)) => {
                *state = meter.refund(*state, cost, to, now);
            }
            (Meter::FixedWindow(meter), State::FixedWindow(state)) => {
                *state = meter.refund(*state, cost, to, now);
            }
            (Meter::SlidingLog(meter), State::SlidingLog(log)) => meter.refund(log, cost, to, now),
            (Meter::SlidingCounter(meter), State::SlidingCounter(state)) => {
                *state = meter.refund(*state, cost, to, now);
            }
            (Meter::SubWindows(meter), State::SubWindows(ring)) => {
                meter.refund(ring, cost, to, now);
            }
            _ => unreachable!("a counter's state is its quota's"),
        }
    }

    /// When the counter says no more than a new one.
    pub fn expires_at(&self) -> Time {
        let period_expires_at = self.quota.soft_period_expires_at(self.soft_period);
        self.state_expires_at().max(period_expires_at)
    }

    fn state_expires_at(&self) -> Time {
        match (self.quota.meter(), &self.state) {
            (Meter::TokenBucket(meter), State::TokenBucket(state)) => meter.expires_at(*state),
            (Meter::IntervalBucket(meter), State::IntervalBucket(state)) => {
                meter.expires_at(*state)
            }
            (Meter::LeakyBucket(meter), State::LeakyBucket(state)) => meter.expires_at(*state),
            (Meter::FixedWindow(meter), State::FixedWindow(state)) => meter.expires_at(*state),
            (Meter::SlidingLog(meter), State::SlidingLog(Stamps(stamps))) => stamps
                .back()
                .map_or(Time::ZERO, |newest| meter.expires_at(*newest)),
            (Meter::SlidingCounter(meter), State::SlidingCounter(state)) => {
                meter.expires_at(*state)
            }
            (Meter::SubWindows(meter), State::SubWindows(ring)) => meter.expires_at(ring),
            _ => unreachable!("a counter's state is its quota's"),
        }
    }

    fn decide_with(&self, cost: u64, extra: u64, now: Time) -> (Decision, Kept) {
        let state = |(decision, state)| (decision, Kept::State(state));
        match (self.quota.meter(), &self.state) {
            (Meter::TokenBucket(meter), State::TokenBucket(old)) => {
                let (decision, new) = meter.decide(*old, cost, extra, now);
                state((decision, State::TokenBucket(new)))
            }
            (Meter::IntervalBucket(meter), State::IntervalBucket(old)) => {
                let (decision, new) = meter.decide(*old, cost, extra, now);
                state((decision, State::IntervalBucket(new)))
            }
            (Meter::LeakyBucket(meter), State::LeakyBucket(old)) => {
                let (decision, new) = meter.decide(*old, cost, extra, now);
                state((decision, State::LeakyBucket(new)))
            }
            (Meter::FixedWindow(meter), State::FixedWindow(old)) => {
                let (decision, new) = meter.decide(*old, cost, extra, now);
                state((decision, State::FixedWindow(new)))
            }
            (Meter::SlidingLog(meter), State::SlidingLog(log)) => {
                let (decision, entry) = meter.decide(log, cost, extra, now);
                (decision, Kept::Entry(entry))
            }
            (Meter::SlidingCounter(meter), State::SlidingCounter(old)) => {
                let (decision, new) = meter.decide(*old, cost, extra, now);
                state((decision, State::SlidingCounter(new)))
            }
            (Meter::SubWindows(meter), State::SubWindows(ring)) => {
                let mut ring = ring.clone();
                meter.advance(&mut ring, now);
                let (decision, charged) = meter.decide(&ring, cost, extra, now);
                (decision, Kept::Charged(charged))
            }
            _ => unreachable!("a counter's state is its quota's"),
        }
    }

    fn keep(&mut self, kept: Kept, now: Time) {
        match (kept, self.quota.meter(), &mut self.state) {
            (Kept::State(new), _, state) => *state = new,
            (Kept::Entry(entry), Meter::SlidingLog(meter), State::SlidingLog(log)) => match entry {
                Some(entry) => meter.write(log, entry),
                None => log.drop_oldest(meter.expired(log, now)),
            },
            (Kept::Charged(charged), Meter::SubWindows(meter), State::SubWindows(ring)) => {
                meter.advance(ring, now);
                ring.add(charged);
            }
            _ => unreachable!("a counter's state is its quota's"),
        }
    }
}

// === impl Stamps ===

impl Log for Stamps {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn nth_oldest(&self, n: u64) -> Option<u64> {
        self.0.get(usize::try_from(n).ok()?).copied()
    }
}

impl LogMut for Stamps {
    fn drop_oldest(&mut self, n: u64) {
        self.0.drain(..index(n));
    }

    fn drop_newest(&mut self, n: u64) {
        self.0.truncate(self.0.len() - index(n));
    }

    fn remove(&mut self, first: u64, n: u64) {
        self.0.drain(index(first)..index(first + n));
    }

    fn push(&mut self, stamp: u64, n: u64) {
        self.0.extend(std::iter::repeat_n(stamp, index(n)));
    }
}

// === impl Ring ===

impl Ring {
    /// The counts of a caller never seen, for a window of so many parts.
    pub fn new(parts: u64) -> Self {
        let counts = std::iter::repeat_n(0, index(parts) + 1).collect();
        Self {
            newest: 0,
            total: 0,
            counts,
        }
    }
}

impl Counts for Ring {
    fn newest(&self) -> u64 {
        self.newest
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn count(&self, age: u64) -> u64 {
        self.counts.get(index(age)).copied().unwrap_or(0)
    }

    fn advance(&mut self, sub_window: u64) {
        // Only empty counts go back, and then nothing moves.
        let steps = index(sub_window.saturating_sub(self.newest)).min(self.counts.len());
        self.counts.rotate_right(steps);
        for count in self.counts.iter_mut().take(steps) {
            self.total -= std::mem::take(count);
        }
        self.newest = sub_window;
    }

    fn add(&mut self, cost: u64) {
        let added = cost.min(u64::MAX - self.total);
        self.counts[0] += added;
        self.total += added;
    }

    fn take(&mut self, age: u64, cost: u64) -> u64 {
        let Some(count) = self.counts.get_mut(index(age)) else {
            return 0;
        };
        let taken = cost.min(*count);
        *count -= taken;
        self.total -= taken;
        taken
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
