//! One counter of a request while it is held: what it recalls, what the limit says to it, and what
//! is to be written.

use tidegate_algorithms::sliding_log::{Entry, Log, SlidingLog};
use tidegate_algorithms::sub_windows::{Counts, SubWindows};
use tidegate_algorithms::{
    Decision, Headroom, Inquiry, Meter, Outcome, Quota, Retry, SoftPeriod, Ticks, Time,
};

use super::block_counts::BlockCounts;
use super::block_log::BlockLog;
use super::state::State;
use crate::{Charge, Charging, OnFull};

/// A held counter.
#[derive(Debug)]
pub(super) struct Account<'a> {
    /// The largest of the quotas that its charges go by.
    pub(super) quota: &'a Quota,
    pub(super) memory: Memory<'a>,
    /// The period of soft admissions, of limits with `soft_for`.
    pub(super) soft_period: Option<SoftPeriod>,
    /// The same before the request.
    old_soft_period: Option<SoftPeriod>,
    /// Whether a charge of this request was denied.
    has_denied: bool,
    /// What this request has charged so far.
    due: u64,
    pub(super) change: Change,
    /// Whether the request asks for more than a look.
    pub(super) is_requested: bool,
}

/// What a counter recalls.
#[derive(Clone, Debug)]
pub(super) enum Memory<'a> {
    /// A state of fixed size.
    Fixed(State),
    /// A log, without its expired entries.
    Log(BlockLog<'a>),
    /// Sub-window counts, brought up to now.
    Counts(BlockCounts<'a>),
    /// Nothing: the caller was never seen.
    Unseen,
    /// Nothing, for there is no room for it before this instant.
    NoRoom { until: Time },
}

/// What is to be written to a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The new state of fixed size.
    pub(super) state: Option<State>,
    /// The old state, if it was found further ahead than the limit can have brought it. To be
    /// written even if the request is refused, or its retry would begin anew each time.
    pub(super) clamped: Option<State>,
    /// Admitted requests for the log.
    pub(super) admitted: Option<Entry>,
    /// Refused requests for a log that keeps those.
    pub(super) refused: Option<Entry>,
    /// Admitted requests for the newest sub-window.
    pub(super) added: u64,
}

/// The log of a caller never seen.
pub(super) struct NoLog;

/// The counts of a caller never seen.
pub(super) struct NoCounts;

// === impl Account ===

impl<'a> Account<'a> {
    pub(super) fn new(
        quota: &'a Quota,
        memory: Memory<'a>,
        soft_period: Option<SoftPeriod>,
    ) -> Self {
        Self {
            quota,
            memory,
            soft_period,
            old_soft_period: soft_period,
            has_denied: false,
            due: 0,
            change: Change::default(),
            is_requested: false,
        }
    }

    /// Returns true if there is no room for the counter.
    #[inline]
    pub(super) fn has_no_room(&self) -> bool {
        matches!(self.memory, Memory::NoRoom { .. })
    }

    /// Whether anything is to be written that says more than an empty slot.
    pub(super) fn is_changed(&self) -> bool {
        self.change != Change::default() || self.soft_period != self.old_soft_period
    }

    /// Decides on a charge, on top of what the request charged before, and notes what to write if
    /// the request is charged.
    pub(super) fn judge(&mut self, charge: &Charge<'_>, charging: Charging, now: Time) -> Decision {
        if let Some(denied) = self.deny_for_room(charge, now) {
            return denied;
        }
        let cost = self.due.saturating_add(charge.cost);
        let inquiry = Inquiry::of(charge.cost);
        let (mut decision, change) = self.decide(charge, cost, inquiry, now);
        if inquiry == Inquiry::Request {
            self.is_requested = true;
            self.soft_period = charge
                .quota
                .next_soft_period(self.soft_period, &decision, now);
        }
        if decision.is_allowed() || charge.quota.is_postpaid() {
            self.due = cost;
            if charge.cost > 0 {
                self.change = Change {
                    refused: self.change.refused,
                    ..change
                };
            }
        } else {
            self.has_denied |= charge.cost > 0;
            if charging == Charging::EveryMatch {
                self.count_refusal(charge, &mut decision, now);
            }
            self.note_refusal(charge, change);
        }
        decision
    }

    /// Decides on a look: what remains, denied if a cost of 1 does not fit.
    pub(super) fn look(&self, charge: &Charge<'_>, now: Time) -> Decision {
        if let Some(denied) = self.deny_for_room(charge, now) {
            return denied;
        }
        let (decision, _) = self.decide(charge, 0, Inquiry::Look, now);
        // A postpaid limit would be charged for the 1.
        if charge.quota.is_postpaid() {
            return decision;
        }
        let (next, _) = self.decide(charge, 1, Inquiry::Look, now);
        decision.unless_full(&next)
    }

    /// Takes back what the request charged, because it is denied as a whole: what an allowing limit
    /// says remains, remains. A limit that denies remembers that a request above it came, and a postpaid one
    /// stays charged.
    pub(super) fn uncharge(&mut self, charge: &Charge<'_>, decision: &mut Decision, now: Time) {
        if charge.quota.is_postpaid() {
            return;
        }
        let Change {
            refused, clamped, ..
        } = self.change;
        self.change = Change {
            clamped,
            refused,
            ..Change::default()
        };
        if !self.has_denied {
            self.soft_period = self.old_soft_period;
        } else if !decision.is_allowed() && charge.cost > 0 {
            let old = self.old_soft_period;
            self.soft_period = charge.quota.next_soft_period(old, decision, now);
        }
        if decision.is_allowed() {
            let (untouched, _) = self.decide(charge, 0, Inquiry::Look, now);
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }

    /// A fixed window counts what it refuses, and has that much less left.
    fn count_refusal(&mut self, charge: &Charge<'_>, decision: &mut Decision, now: Time) {
        if let Meter::FixedWindow(meter) = charge.quota.meter() {
            let before = self.change.state.unwrap_or(self.fixed());
            let counted = meter.count_refused(before.window(), charge.cost, now);
            self.due = self.due.saturating_add(charge.cost);
            self.change.state = Some(State::Window(counted));
            decision.remaining = decision.limit.saturating_sub(counted.count);
        }
    }

    fn note_refusal(&mut self, charge: &Charge<'_>, change: Change) {
        if let (State::Instant(old), Some(State::Instant(clamped))) = (self.fixed(), change.state)
            && clamped < old
        {
            self.change.clamped = change.state;
        }
        if let Some(entry) = change.refused {
            self.change.refused = Some(Entry {
                n: entry.n.min(charge.cost),
                ..entry
            });
        }
    }

    /// The denial of a counter without room, unless its limit allows that.
    fn deny_for_room(&self, charge: &Charge<'_>, now: Time) -> Option<Decision> {
        let Memory::NoRoom { until } = self.memory else {
            return None;
        };
        // There is room for shared counters unless a single request fills all slots of one.
        if matches!(charge.on_full, OnFull::Allow | OnFull::Omit) {
            return None;
        }
        let wait = until.since(now);
        let charge = Charge {
            headroom: Headroom::Absent,
            ..*charge
        };
        Some(Decision {
            outcome: Outcome::Denied {
                retry: Retry::After(wait),
            },
            limit: self.decide(&charge, 0, Inquiry::Look, Time::ZERO).0.limit,
            remaining: 0,
            reset_after: wait,
        })
    }

    /// The decision on `cost` in all, and what to write if it is charged. It goes by the numbers of the
    /// charge: two overrides of one request may name one counter and allow it different counts.
    fn decide(
        &self,
        charge: &Charge<'_>,
        cost: u64,
        inquiry: Inquiry,
        now: Time,
    ) -> (Decision, Change) {
        let (quota, headroom) = (charge.quota, charge.headroom);
        quota.judge(self.soft_period, headroom, now, inquiry, |extra| {
            self.decide_with(quota.meter(), cost, extra, now)
        })
    }

    fn decide_with(&self, meter: &Meter, cost: u64, extra: u64, now: Time) -> (Decision, Change) {
        match meter {
            Meter::SlidingLog(meter) => self.decide_log(meter, cost, extra, now),
            Meter::SubWindows(meter) => self.decide_counts(meter, cost, extra, now),
            meter => {
                let (decision, next) = self.fixed().decide(meter, cost, extra, now);
                (
                    decision,
                    Change {
                        state: Some(next),
                        ..Change::default()
                    },
                )
            }
        }
    }

    fn decide_log(
        &self,
        meter: &SlidingLog,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, Change) {
        let (decision, entry) = match &self.memory {
            Memory::Log(log) => meter.decide(log, cost, extra, now),
            _ => meter.decide(&NoLog, cost, extra, now),
        };
        let change = if decision.is_allowed() || meter.is_postpaid() {
            Change {
                admitted: entry,
                ..Change::default()
            }
        } else {
            Change {
                refused: entry,
                ..Change::default()
            }
        };
        (decision, change)
    }

    fn decide_counts(
        &self,
        meter: &SubWindows,
        cost: u64,
        extra: u64,
        now: Time,
    ) -> (Decision, Change) {
        let (decision, added) = match &self.memory {
            Memory::Counts(counts) => meter.decide(counts, cost, extra, now),
            _ => meter.decide(&NoCounts, cost, extra, now),
        };
        (
            decision,
            Change {
                added,
                ..Change::default()
            },
        )
    }

    /// The state of fixed size, that of a caller never seen if there is none.
    fn fixed(&self) -> State {
        match self.memory {
            Memory::Fixed(state) => state,
            _ => State::Instant(Ticks::default()),
        }
    }
}

// === impl NoLog ===

impl Log for NoLog {
    fn len(&self) -> u64 {
        0
    }

    fn nth_oldest(&self, _n: u64) -> Option<u64> {
        None
    }
}

// === impl NoCounts ===

impl Counts for NoCounts {
    fn newest(&self) -> u64 {
        0
    }

    fn total(&self) -> u64 {
        0
    }

    fn count(&self, _age: u64) -> u64 {
        0
    }

    fn advance(&mut self, _sub_window: u64) {}

    fn add(&mut self, _cost: u64) {}

    fn take(&mut self, _age: u64, _cost: u64) -> u64 {
        0
    }
}
