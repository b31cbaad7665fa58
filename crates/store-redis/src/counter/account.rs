//! One counter of a request, as it was found: what each limit that names it says.
//!
//! The script has decided and stored; this tells the same decision with all its fields, by the core's own
//! arithmetic.

use std::time::Duration;

use tidegate_algorithms::{
    Decision, Inquiry, Meter, Outcome, Retry, SoftPeriod, Standing, Time, fixed_window,
};
use tidegate_store::{Charge, Charging};

use super::Told;
use super::state::State;

/// A counter while a request is told.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    state: State,
    soft_period: Option<SoftPeriod>,
    /// The same before the request.
    old_soft_period: Option<SoftPeriod>,
    /// What this request has charged so far.
    due: u64,
    /// What a fixed window counts by now, its refusals included.
    counted: Option<fixed_window::State>,
}

// === impl Account ===

impl Account {
    pub(crate) fn new(told: Told) -> Self {
        Self {
            state: told.state,
            soft_period: told.soft_period,
            old_soft_period: told.soft_period,
            due: 0,
            counted: None,
        }
    }

    /// What the limit says to a charge, on top of what the request charged before.
    pub(crate) fn judge(&mut self, charge: &Charge<'_>, charging: Charging, now: Time) -> Decision {
        let cost = self.due.saturating_add(charge.cost);
        let inquiry = Inquiry::of(charge.cost);
        let mut decision = self.decide(charge, cost, inquiry, now);
        if inquiry == Inquiry::Request {
            let old = self.soft_period;
            self.soft_period = charge.quota.next_soft_period(old, &decision, now);
        }
        if decision.is_allowed() || charge.quota.is_postpaid() {
            self.due = cost;
            if charge.cost > 0 {
                self.counted = self.count(charge, cost, now);
            }
        } else if charging == Charging::EveryMatch {
            self.count_refusal(charge, &mut decision, now);
        }
        decision
    }

    /// What the limit says to a look: what remains, denied if a cost of 1 does not fit.
    pub(crate) fn look_at_next(&self, charge: &Charge<'_>, now: Time) -> Decision {
        let decide = |cost| self.decide(charge, cost, Inquiry::Look, now);
        // A postpaid limit would be charged for the 1, and says the same to a cost of 0.
        if charge.quota.is_postpaid() {
            return decide(0);
        }
        decide(0).unless_full(&decide(1))
    }

    /// What remains to a limit that admits a request which is refused as a whole.
    pub(crate) fn look(&self, charge: &Charge<'_>, decision: &mut Decision, now: Time) {
        let untouched = self.decide(charge, 0, Inquiry::Look, now);
        decision.remaining = untouched.remaining;
        decision.reset_after = untouched.reset_after;
    }

    /// The period of soft admissions before the request.
    pub(crate) const fn old_soft_period(&self) -> Option<SoftPeriod> {
        self.old_soft_period
    }

    fn decide(&self, charge: &Charge<'_>, cost: u64, inquiry: Inquiry, now: Time) -> Decision {
        let (quota, period) = (charge.quota, self.soft_period);
        let judged = quota.judge(period, charge.headroom, now, inquiry, |extra| {
            (self.state.decide(quota.meter(), cost, extra, now), ())
        });
        judged.0
    }

    fn count(&self, charge: &Charge<'_>, cost: u64, now: Time) -> Option<fixed_window::State> {
        match (charge.quota.meter(), &self.state) {
            (Meter::FixedWindow(meter), State::FixedWindow(state)) => {
                Some(meter.count_refused(*state, cost, now))
            }
            _ => None,
        }
    }

    /// A fixed window counts what it refuses, and has that much less left.
    fn count_refusal(&mut self, charge: &Charge<'_>, decision: &mut Decision, now: Time) {
        if let (Meter::FixedWindow(meter), State::FixedWindow(state)) =
            (charge.quota.meter(), &self.state)
        {
            let before = self.counted.unwrap_or(*state);
            let counted = meter.count_refused(before, charge.cost, now);
            self.due = self.due.saturating_add(charge.cost);
            self.counted = Some(counted);
            decision.remaining = decision.limit.saturating_sub(counted.count);
        }
    }
}

/// Bends a decision to the word of the script, which has charged by it.
pub(crate) fn bend(decision: &mut Decision, is_allowed: bool) {
    decision.outcome = if is_allowed {
        Outcome::Allowed {
            standing: Standing::Within,
            delay: Duration::ZERO,
        }
    } else {
        Outcome::Denied {
            retry: Retry::After(decision.reset_after),
        }
    };
}
