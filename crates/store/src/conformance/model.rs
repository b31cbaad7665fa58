//! A store of the dumbest sort: a list of oracles, and invariant 2 of the design word for word.

use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{Algorithm, Decision, Headroom, Quota, QuotaSpec, RefundTo, Time};

use crate::{Admission, Charging, Mode};

/// A naive store.
#[derive(Clone, Debug)]
pub struct Model {
    counters: Vec<Counter>,
}

/// One charge of a request.
#[derive(Clone, Copy, Debug)]
pub struct ModelCharge {
    /// Which counter.
    pub counter: usize,
    /// How much.
    pub cost: u64,
    /// What the limit's word counts for.
    pub mode: Mode,
}

#[derive(Clone, Debug)]
struct Counter {
    oracle: Oracle,
    /// Whether it counts what it refuses when every match is charged.
    is_fixed_window: bool,
    /// Whether it is charged whatever comes of the request.
    is_postpaid: bool,
    /// What the request at hand asks of it so far.
    due: u64,
    /// What the request at hand asked last and did not get.
    denied: u64,
}

// === impl Model ===

impl Model {
    /// A counter for each of `specs`.
    pub fn new<'a>(specs: impl IntoIterator<Item = &'a QuotaSpec>) -> Self {
        let counter = |spec: &QuotaSpec| Counter {
            oracle: Oracle::new(spec).expect("valid"),
            is_fixed_window: spec.algorithm == Algorithm::FixedWindow,
            is_postpaid: Quota::new(spec).expect("valid").is_postpaid(),
            due: 0,
            denied: 0,
        };
        Self {
            counters: specs.into_iter().map(counter).collect(),
        }
    }

    /// Each limit speaks to all that the request has asked of its counter so far; then the request
    /// is weighed as a whole, and what is due is charged.
    ///
    /// Counters whose limits log refusals or mind for how long they are exceeded may be named only
    /// once: to them it matters which part of a request came first.
    pub fn charge(
        &mut self,
        charges: &[ModelCharge],
        charging: Charging,
        headroom: Headroom,
        now: Time,
    ) -> (Admission, Vec<Decision>) {
        for counter in &mut self.counters {
            (counter.due, counter.denied) = (0, 0);
        }
        let mut decisions: Vec<Decision> = charges
            .iter()
            .map(|charge| self.counters[charge.counter].judge(charge.cost, charging, headroom, now))
            .collect();
        let admission = admission(charges, &decisions);
        let is_charged = charging == Charging::EveryMatch || admission == Admission::Admitted;
        if !is_charged {
            for (charge, decision) in charges.iter().zip(&mut decisions) {
                self.counters[charge.counter].uncharge(decision, headroom, now);
            }
        }
        for counter in &mut self.counters {
            counter.close(is_charged, charging, headroom, now);
        }
        (admission, decisions)
    }

    /// Gives back `cost` to one counter.
    pub fn refund(&mut self, counter: usize, cost: u64, now: Time) {
        self.counters[counter]
            .oracle
            .refund(cost, RefundTo::Current, now);
    }
}

// === impl Counter ===

impl Counter {
    fn judge(&mut self, cost: u64, charging: Charging, headroom: Headroom, now: Time) -> Decision {
        let asked = self.due.saturating_add(cost);
        let decision = self.look(asked, commit(charging), headroom, now);
        let is_counted = charging == Charging::EveryMatch && self.is_fixed_window;
        if decision.is_allowed() || is_counted || self.is_postpaid {
            self.due = asked;
        } else {
            self.denied = asked;
        }
        decision
    }

    fn uncharge(&self, decision: &mut Decision, headroom: Headroom, now: Time) {
        if decision.is_allowed() && !self.is_postpaid {
            let untouched = self.look(0, Commit::Nothing, headroom, now);
            decision.remaining = untouched.remaining;
            decision.reset_after = untouched.reset_after;
        }
    }

    fn close(&mut self, is_charged: bool, charging: Charging, headroom: Headroom, now: Time) {
        // Even of a refused request a log may remember what it refused itself.
        let asked = match (is_charged || self.is_postpaid, self.due) {
            (false, _) | (true, 0) => self.denied,
            (true, due) => due,
        };
        if asked > 0 {
            self.oracle.decide(asked, headroom, now, commit(charging));
        }
    }

    /// What the counter would say if it were charged so.
    fn look(&self, cost: u64, commit: Commit, headroom: Headroom, now: Time) -> Decision {
        self.oracle.clone().decide(cost, headroom, now, commit)
    }
}

const fn commit(charging: Charging) -> Commit {
    match charging {
        Charging::AllOrNone => Commit::Charge,
        Charging::EveryMatch => Commit::CountRefused,
    }
}

/// Admitted if every enforce limit admits and, if there are quota limits, one of them does.
fn admission(charges: &[ModelCharge], decisions: &[Decision]) -> Admission {
    let answers = |mode| {
        charges
            .iter()
            .zip(decisions)
            .filter(move |(charge, _)| charge.mode == mode)
            .map(|(_, decision)| decision.is_allowed())
    };
    let is_enforced = answers(Mode::Enforce).all(|admits| admits);
    let has_quota = answers(Mode::Quota).next().is_none() || answers(Mode::Quota).any(|it| it);
    if is_enforced && has_quota {
        Admission::Admitted
    } else {
        Admission::Refused
    }
}
