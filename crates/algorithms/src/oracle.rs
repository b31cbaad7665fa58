//! The algorithms once more, in the dumbest way that is right: for tests, here and in the stores.
//!
//! A model says only whether a request fits at some time, from plain lists and wide integers. All
//! else is found by trying: what remains is the largest cost that fits, the retry is the first
//! nanosecond at which the request fits. Slow, and independent of the arithmetic it checks.

mod bucket;
mod log;
mod period;
mod postpaid;
mod window;

use std::time::Duration;

use bucket::{Drip, Portions};
use log::Stamps;
use period::Period;
use window::{Buckets, Clocked};

use crate::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Quota, QuotaError, QuotaSpec, Refill,
    RefundTo, Retry, Standing, Time,
};

/// Decides on the requests of one caller.
#[derive(Clone, Debug)]
pub struct Oracle {
    limit: u128,
    /// What an unused counter admits at one instant.
    capacity: u128,
    /// The most that may pass over it.
    extra: u128,
    allowance: Allowance,
    window: u128,
    log_refused: bool,
    period: Option<Period>,
    model: Model,
}

/// What becomes of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is forgotten, as when another limit of the same request refuses.
    Nothing,
    /// An admitted request is charged; a refused one is logged with `log_refused`. Either way the
    /// state is brought up to the time of the request.
    Charge,
    /// The same, and a fixed window counts what it refuses, as `charging: every_match` asks.
    CountRefused,
}

/// The numbers a model works with, in requests and nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    limit: u128,
    window: u128,
    capacity: u128,
    extra: u128,
    is_postpaid: bool,
}

#[derive(Clone, Debug)]
enum Model {
    Drip(Drip),
    Queue(Drip),
    Portions(Portions),
    Clocked(Clocked),
    Buckets(Buckets),
    Stamps(Stamps),
}

/// Later than anything a model waits for.
const HORIZON: u128 = 1 << 66;

// === impl Oracle ===

impl Oracle {
    /// An oracle for a caller never seen.
    ///
    /// # Errors
    /// As [`Quota::new`], whose validation it shares.
    pub fn new(spec: &QuotaSpec) -> Result<Self, QuotaError> {
        Quota::new(spec)?;
        let limit = u128::from(spec.limit);
        let capacity = match spec.algorithm {
            _ if limit == 0 => 0,
            Algorithm::TokenBucket {
                burst: Some(burst), ..
            } => u128::from(burst),
            Algorithm::LeakyBucket { queue } => queue.map_or(limit, u128::from) + 1,
            _ => limit,
        };
        let extra = match spec.allowance {
            Allowance::Hard => 0,
            Allowance::Soft { over, .. } | Allowance::Elastic { over } => {
                capacity * u128::from(over.0) / 100
            }
            Allowance::Postpaid { .. }
                if capacity == 0 || matches!(spec.algorithm, Algorithm::SlidingLog { .. }) =>
            {
                0
            }
            Allowance::Postpaid { max_debt } => max_debt.map_or(limit, u128::from),
        };
        let model = Model::new(
            spec.algorithm,
            Numbers {
                limit,
                window: spec.window.as_nanos(),
                capacity,
                extra,
                is_postpaid: matches!(spec.allowance, Allowance::Postpaid { .. }),
            },
        );
        let allowance = spec.allowance;
        Ok(Self {
            limit,
            capacity,
            extra,
            allowance,
            window: spec.window.as_nanos(),
            log_refused: spec.algorithm == Algorithm::SlidingLog { log_refused: true },
            period: None,
            model,
        })
    }

    /// Decides on one request.
    pub fn decide(&mut self, cost: u64, headroom: Headroom, now: Time, commit: Commit) -> Decision {
        let (cost, now) = (u128::from(cost), u128::from(now.nanos()));
        let mut after = self.clone();
        after.model.settle(now);
        if cost > 0 && after.is_over(now) {
            after.period = None;
        }

        let outcome = if after.admits(cost, headroom, now) {
            let within = after.fits(cost, 0, now);
            let delay = if cost > 0 { after.model.delay(now) } else { 0 };
            after.model.charge(cost, now);
            if cost > 0 && !within {
                after.begin_period(now);
            }
            let standing = if within {
                Standing::Within
            } else {
                Standing::Over
            };
            Outcome::Allowed {
                standing,
                delay: nanos(delay),
            }
        } else {
            if self.is_postpaid() {
                after.debit(cost, now);
            } else {
                after.model.refuse(cost, now);
            }
            if cost > 0 {
                after.extend_period(now);
            }
            let retry = after.first_admitted(cost, headroom, now);
            Outcome::Denied {
                retry: retry.map_or(Retry::Never, |at| Retry::After(nanos(at - now))),
            }
        };
        let is_denied = matches!(outcome, Outcome::Denied { .. });
        if commit == Commit::CountRefused
            && is_denied
            && !self.is_postpaid()
            && let Model::Clocked(windows) = &mut after.model
        {
            windows.count_refused(cost);
        }
        let decision = after.decision(outcome, now);
        if commit != Commit::Nothing {
            *self = after;
        }
        decision
    }

    /// Decides on a look: what remains, denied if a cost of 1 does not fit.
    pub fn look(&self, headroom: Headroom, now: Time) -> Decision {
        let mut after = self.clone();
        let mut decision = after.decide(0, headroom, now, Commit::Nothing);
        let now = u128::from(now.nanos());
        after.model.settle(now);
        if !self.is_postpaid() && !after.admits(1, headroom, now) {
            after.model.refuse(1, now);
            let retry = after.first_admitted(1, headroom, now);
            decision.outcome = Outcome::Denied {
                retry: retry.map_or(Retry::Never, |at| Retry::After(nanos(at - now))),
            };
        }
        decision
    }

    /// Refunds `cost`, newest first, or of one charge.
    pub fn refund(&mut self, cost: u64, to: RefundTo, now: Time) {
        let (cost, now) = (u128::from(cost), u128::from(now.nanos()));
        self.model.settle(now);
        match to {
            RefundTo::Current => self.model.refund(cost),
            RefundTo::Charge(stamp) => {
                let resets_at = u128::from(stamp.resets_at.nanos());
                self.model
                    .refund_charge(cost, u128::from(stamp.at.nanos()), resets_at, now);
            }
        }
    }

    fn decision(&self, outcome: Outcome, now: u128) -> Decision {
        // The largest cost that fits, by trying: everything below the first that does not.
        let too_much = first(0, self.capacity + 1, |cost| {
            cost > self.capacity || !self.fits(cost, 0, now)
        });
        let reset = first(now, now + HORIZON, |at| self.model.resets(now, at));
        Decision {
            outcome,
            limit: count(self.capacity),
            remaining: count(too_much.saturating_sub(1)),
            reset_after: nanos(reset - now),
        }
    }

    /// Whether `cost` fits the capacity and `extra`.
    fn fits(&self, cost: u128, extra: u128, at: u128) -> bool {
        let most = self.capacity + extra;
        let ever = cost <= most && (self.limit > 0 || cost == 0);
        ever && self.model.fits(cost, most, at)
    }

    /// Whether `cost` would be admitted at `at` if nothing else came until then.
    fn admits(&self, cost: u128, headroom: Headroom, at: u128) -> bool {
        let available = match self.allowance {
            Allowance::Hard | Allowance::Postpaid { .. } => false,
            Allowance::Soft { .. } => self.is_over(at) || !self.is_hard(at),
            Allowance::Elastic { .. } => headroom == Headroom::Available,
        };
        let extra = if available { self.extra } else { 0 };
        // A look at a postpaid limit asks for room for one.
        let least = u128::from(self.is_postpaid());
        self.fits(cost.max(least), extra, at)
    }
}

// === impl Model ===

impl Model {
    fn new(algorithm: Algorithm, numbers: Numbers) -> Self {
        match algorithm {
            Algorithm::TokenBucket {
                refill: Refill::Continuous,
                ..
            } => Self::Drip(Drip::new(numbers)),
            Algorithm::TokenBucket {
                refill: Refill::Interval,
                ..
            } => Self::Portions(Portions::new(numbers)),
            Algorithm::LeakyBucket { .. } => Self::Queue(Drip::new(numbers)),
            Algorithm::FixedWindow => Self::Clocked(Clocked::new(numbers)),
            Algorithm::SlidingLog { log_refused } => {
                Self::Stamps(Stamps::new(numbers, log_refused))
            }
            Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            } => Self::Buckets(Buckets::new(numbers, sub_windows, rounding)),
        }
    }

    /// Whether `cost` fits at `at` if `most` may be used at once.
    fn fits(&self, cost: u128, most: u128, at: u128) -> bool {
        match self {
            Self::Drip(drip) | Self::Queue(drip) => drip.fits(cost, most, at),
            Self::Portions(portions) => portions.used(at) + cost <= most,
            Self::Clocked(windows) => windows.used(at) + cost <= most,
            Self::Buckets(buckets) => buckets.used(at) + cost <= most,
            Self::Stamps(stamps) => stamps.used(at) + cost <= most,
        }
    }

    /// Whether nothing is used at `at`.
    fn is_unused(&self, at: u128) -> bool {
        match self {
            Self::Drip(drip) | Self::Queue(drip) => drip.is_full(at),
            Self::Portions(portions) => portions.used(at) == 0,
            Self::Clocked(windows) => windows.used(at) == 0,
            Self::Buckets(buckets) => buckets.used(at) == 0,
            Self::Stamps(stamps) => stamps.used(at) == 0,
        }
    }

    /// Whether what was in force at `now` is reset at `at`.
    fn resets(&self, now: u128, at: u128) -> bool {
        match self {
            Self::Clocked(windows) => windows.window_at(at) > windows.window_at(now),
            _ => self.is_unused(at),
        }
    }

    /// How long a request admitted at `now` has to wait.
    fn delay(&self, now: u128) -> u128 {
        match self {
            Self::Queue(drip) => first(0, HORIZON, |wait| drip.is_full(now + wait)),
            _ => 0,
        }
    }

    fn settle(&mut self, now: u128) {
        match self {
            Self::Drip(drip) | Self::Queue(drip) => drip.settle(now),
            Self::Portions(portions) => portions.settle(now),
            Self::Clocked(windows) => windows.settle(now),
            Self::Buckets(buckets) => buckets.settle(now),
            Self::Stamps(stamps) => stamps.settle(now),
        }
    }

    fn charge(&mut self, cost: u128, now: u128) {
        match self {
            Self::Drip(drip) | Self::Queue(drip) => drip.charge(cost, now),
            Self::Portions(portions) => portions.charge(cost),
            Self::Clocked(windows) => windows.charge(cost),
            Self::Buckets(buckets) => buckets.charge(cost),
            Self::Stamps(stamps) => stamps.charge(cost, now),
        }
    }

    fn refuse(&mut self, cost: u128, now: u128) {
        if let Self::Stamps(stamps) = self {
            stamps.refuse(cost, now);
        }
    }

    fn refund(&mut self, cost: u128) {
        match self {
            Self::Drip(drip) | Self::Queue(drip) => drip.refund(cost),
            Self::Portions(portions) => portions.refund(cost),
            Self::Clocked(windows) => windows.refund(cost),
            Self::Buckets(buckets) => buckets.refund(cost),
            Self::Stamps(stamps) => stamps.refund(cost),
        }
    }

    /// Refunds a charge that was made `at` that time.
    fn refund_charge(&mut self, cost: u128, at: u128, resets_at: u128, now: u128) {
        match self {
            Self::Drip(drip) => drip.refund_late(cost, now.saturating_sub(at)),
            Self::Queue(drip) => {
                let is_last = resets_at > now && !drip.is_full(resets_at - 1);
                let is_told = resets_at < u128::from(Time::MAX.nanos());
                if is_told && is_last && drip.is_full(resets_at) {
                    drip.refund(cost);
                }
            }
            Self::Portions(portions) => portions.refund_late(cost, at),
            Self::Clocked(windows) => windows.refund_charge(cost, at),
            Self::Buckets(buckets) => buckets.refund_charge(cost, at),
            Self::Stamps(stamps) => stamps.refund_charge(cost, at, now),
        }
    }
}

/// The first number from `low` on at which `holds`, which holds at `high` and from its first time
/// on.
fn first(mut low: u128, mut high: u128, holds: impl Fn(u128) -> bool) -> u128 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

fn nanos(span: u128) -> Duration {
    Duration::from_nanos(count(span))
}

fn count(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
