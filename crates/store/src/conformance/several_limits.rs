//! Several limits charged together, in every mix of modes, against the model.

use proptest::prelude::*;
use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Time};

use super::Subject;
use super::bench::{Bench, enforce, key};
use super::history::{Advance, Cost, Course, cost, for_all, forwards, headroom, spec, start};
use super::model::{Model, ModelCharge};
use crate::{Charge, Charging, Mode};

/// Who calls. Each limit has a counter for each of them.
const CALLERS: [&[&str]; 2] = [&["ann", "api"], &["bob", "api"]];

/// One request, after the clock has moved.
#[derive(Clone, Debug)]
struct Request {
    advance: Advance,
    charging: Charging,
    headroom: Headroom,
    charges: Vec<Pick>,
}

/// One limit of a request.
#[derive(Clone, Copy, Debug)]
struct Pick {
    /// Which counter, modulo how many there are.
    counter: usize,
    cost: Cost,
    mode: Mode,
}

/// The limits, in the store and in the model.
struct Cast<S> {
    bench: Bench<S>,
    model: Model,
    limits: Vec<Limit>,
    courses: Vec<Course>,
    now: Time,
}

struct Limit {
    quota: Quota,
    /// Whether one request may name its counter twice. Not where it matters whether parts of the
    /// request came first: refused ones in a log, and those that end a time over the limit.
    adds_up: bool,
}

/// Whatever limits are charged together, in whatever modes and either charging: each decision and
/// the word on the whole request are the naive model's.
pub fn several_limits_decide_as_the_model<S: Subject>() {
    let specs = prop::collection::vec(spec::<S>(), 1..5);
    let requests = prop::collection::vec(request(), 1..40);
    for_all::<S, _>(
        700,
        (specs, start::<S>(), requests),
        |(specs, start, requests)| {
            let mut cast = Cast::<S>::new(&specs, start);
            requests.iter().try_for_each(|request| cast.check(request))
        },
    );
}

// === impl Cast ===

impl<S: Subject> Cast<S> {
    fn new(specs: &[QuotaSpec], now: Time) -> Self {
        let limits: Vec<Limit> = specs.iter().map(Limit::new).collect();
        let counters = || (0..specs.len() * CALLERS.len()).map(|counter| counter / CALLERS.len());
        Self {
            bench: Bench::at(now),
            model: Model::new(counters().map(|limit| &specs[limit])),
            courses: counters()
                .map(|limit| Course::new(&limits[limit].quota, S::grain()))
                .collect(),
            limits,
            now,
        }
    }

    fn check(&mut self, request: &Request) -> Result<(), TestCaseError> {
        let picks = self.cast(request);
        let Some(first) = picks.first() else {
            return Ok(());
        };
        self.now = self.courses[first.counter].advance(self.now, request.advance);
        self.bench.set_time(self.now);

        let charges: Vec<Charge<'_>> = picks
            .iter()
            .map(|pick| self.charge(pick, request))
            .collect();
        let (admission, decisions) = self.bench.charge(&charges, request.charging);
        let expected = self
            .model
            .charge(&picks, request.charging, request.headroom, self.now);
        prop_assert_eq!(
            (admission, decisions.to_vec()),
            expected,
            "{:?} of {:?} at {:?}",
            picks,
            request,
            self.now
        );
        for (pick, decision) in picks.iter().zip(decisions) {
            self.courses[pick.counter].learn(decision);
        }
        Ok(())
    }

    /// What a request asks of which counter, without what no request may ask twice.
    fn cast(&self, request: &Request) -> Vec<ModelCharge> {
        let mut picks: Vec<ModelCharge> = Vec::new();
        for pick in &request.charges {
            let counter = pick.counter % self.courses.len();
            let is_named = picks.iter().any(|other| other.counter == counter);
            if !is_named || self.limits[counter / CALLERS.len()].adds_up {
                picks.push(ModelCharge {
                    counter,
                    cost: self.courses[counter].cost(pick.cost),
                    mode: pick.mode,
                });
            }
        }
        picks
    }

    fn charge(&self, pick: &ModelCharge, request: &Request) -> Charge<'_> {
        let (limit, caller) = (pick.counter / CALLERS.len(), pick.counter % CALLERS.len());
        let counter = key(limit as u128, CALLERS[caller]);
        Charge {
            mode: pick.mode,
            headroom: request.headroom,
            ..enforce(counter, &self.limits[limit].quota, pick.cost)
        }
    }
}

// === impl Limit ===

impl Limit {
    fn new(spec: &QuotaSpec) -> Self {
        let minds_order = matches!(spec.algorithm, Algorithm::SlidingLog { log_refused: true })
            || matches!(
                spec.allowance,
                Allowance::Soft {
                    only_for: Some(_),
                    ..
                }
            );
        Self {
            quota: Quota::new(spec).expect("valid"),
            adds_up: !minds_order,
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let mode = prop_oneof![
        4 => Just(Mode::Enforce),
        2 => Just(Mode::Quota),
        1 => Just(Mode::Shadow),
    ];
    let pick = (0..8_usize, cost(), mode).prop_map(|(counter, cost, mode)| Pick {
        counter,
        cost,
        mode,
    });
    let charging = prop_oneof![
        2 => Just(Charging::AllOrNone),
        1 => Just(Charging::EveryMatch),
    ];
    (
        forwards(),
        charging,
        headroom(),
        prop::collection::vec(pick, 1..7),
    )
        .prop_map(|(advance, charging, headroom, charges)| Request {
            advance,
            charging,
            headroom,
            charges,
        })
}
