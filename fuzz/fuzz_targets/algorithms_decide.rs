//! Any quota and any history: no algorithm panics, and each agrees with the naive oracle, decision
//! by decision.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tidegate_algorithms::counter::Counter;
use tidegate_algorithms::oracle::{Commit, Oracle};
use tidegate_algorithms::{
    Algorithm, Allowance, Decision, Headroom, Outcome, Percent, Quota, QuotaSpec, Refill, RefundTo,
    Retry, Rounding, Time,
};

/// Steps of a history. The oracle finds everything by trying, so that long ones take too long.
const MAX_STEPS: usize = 24;

/// The longest log, for the same reason.
const MAX_LOG: u64 = 200;

#[derive(Arbitrary, Debug)]
struct History {
    limit: Magnitude,
    window: Magnitude,
    shape: Shape,
    allowance: Over,
    start: u64,
    steps: Vec<Step>,
}

/// A number of any size, small ones as likely as large ones.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Magnitude {
    bits: u64,
    shift: u8,
}

#[derive(Arbitrary, Debug)]
enum Shape {
    TokenBucket {
        burst: Option<Magnitude>,
        at_once: bool,
    },
    LeakyBucket {
        queue: Option<Magnitude>,
    },
    FixedWindow,
    SlidingLog {
        log_refused: bool,
    },
    SlidingCounter {
        sub_windows: u8,
        round_up: bool,
    },
}

#[derive(Arbitrary, Debug)]
enum Over {
    Hard,
    Soft {
        percent: u16,
        only_for: Option<Magnitude>,
    },
    Elastic {
        percent: u16,
    },
}

#[derive(Arbitrary, Debug)]
struct Step {
    after: Magnitude,
    backwards: bool,
    act: Act,
}

#[derive(Arbitrary, Debug)]
enum Act {
    Decide {
        cost: Magnitude,
        has_headroom: bool,
        commit: Kept,
    },
    Refund {
        cost: Magnitude,
    },
}

/// What becomes of a decision.
#[derive(Arbitrary, Debug)]
enum Kept {
    Nothing,
    Charge,
    CountRefused,
}

fuzz_target!(|history: History| {
    let spec = history.spec();
    let Ok(quota) = Quota::new(&spec) else { return };
    let mut oracle = Oracle::new(&spec).expect("the oracle takes what the quota takes");
    let mut counter = Counter::new(quota);
    let mut now = Time::from_nanos(history.start);
    for step in history.steps.iter().take(MAX_STEPS) {
        now = step.time_from(now);
        match &step.act {
            Act::Decide {
                cost,
                has_headroom,
                commit,
            } => {
                let headroom = if *has_headroom {
                    Headroom::Available
                } else {
                    Headroom::Absent
                };
                let commit = commit.commit();
                let decision = counter.decide(cost.value(), headroom, now, commit);
                let expected = oracle.decide(cost.value(), headroom, now, commit);
                if is_beyond_time(&expected, now) {
                    return;
                }
                assert_eq!(decision, expected);
            }
            Act::Refund { cost } => {
                counter.refund(cost.value(), RefundTo::Current, now);
                oracle.refund(cost.value(), RefundTo::Current, now);
            }
        }
    }
});

/// Whether the oracle, which counts without end, names a moment at which our time has stopped.
fn is_beyond_time(decision: &Decision, now: Time) -> bool {
    let wait = match decision.outcome {
        Outcome::Allowed { delay, .. } => delay,
        Outcome::Denied {
            retry: Retry::After(wait),
        } => wait,
        Outcome::Denied {
            retry: Retry::Never,
        } => Duration::ZERO,
    };
    let last = u128::from(now.nanos()) + wait.max(decision.reset_after).as_nanos();
    last >= u128::from(Time::MAX.nanos())
}

// === impl History ===

impl History {
    fn spec(&self) -> QuotaSpec {
        let limit = match self.shape {
            Shape::SlidingLog { .. } => self.limit.value() % MAX_LOG,
            _ => self.limit.value(),
        };
        QuotaSpec {
            limit,
            window: Duration::from_nanos(self.window.value()),
            algorithm: self.shape.algorithm(),
            allowance: self.allowance.allowance(),
        }
    }
}

// === impl Magnitude ===

impl Magnitude {
    const fn value(self) -> u64 {
        self.bits >> (self.shift % 64)
    }
}

// === impl Shape ===

impl Shape {
    fn algorithm(&self) -> Algorithm {
        match *self {
            Self::TokenBucket { burst, at_once } => Algorithm::TokenBucket {
                burst: burst.map(Magnitude::value),
                refill: if at_once {
                    Refill::Interval
                } else {
                    Refill::Continuous
                },
            },
            Self::LeakyBucket { queue } => Algorithm::LeakyBucket {
                queue: queue.map(Magnitude::value),
            },
            Self::FixedWindow => Algorithm::FixedWindow,
            Self::SlidingLog { log_refused } => Algorithm::SlidingLog { log_refused },
            Self::SlidingCounter {
                sub_windows,
                round_up,
            } => Algorithm::SlidingCounter {
                sub_windows: sub_windows.into(),
                rounding: if round_up {
                    Rounding::Up
                } else {
                    Rounding::Down
                },
            },
        }
    }
}

// === impl Over ===

impl Over {
    fn allowance(&self) -> Allowance {
        match *self {
            Self::Hard => Allowance::Hard,
            Self::Soft { percent, only_for } => Allowance::Soft {
                over: Percent(percent.into()),
                only_for: only_for.map(|span| Duration::from_nanos(span.value())),
            },
            Self::Elastic { percent } => Allowance::Elastic {
                over: Percent(percent.into()),
            },
        }
    }
}

// === impl Step ===

impl Step {
    fn time_from(&self, now: Time) -> Time {
        let span = self.after.value();
        if self.backwards {
            Time::from_nanos(now.nanos().saturating_sub(span))
        } else {
            now.plus(Duration::from_nanos(span))
        }
    }
}

// === impl Kept ===

impl Kept {
    const fn commit(&self) -> Commit {
        match self {
            Self::Nothing => Commit::Nothing,
            Self::Charge => Commit::Charge,
            Self::CountRefused => Commit::CountRefused,
        }
    }
}
