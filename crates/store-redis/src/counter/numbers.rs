//! The numbers of a limit as the scripts take them: doubles that are all whole.
//!
//! All that needs a product is worked out here, in wide integers. What each place means is said at the
//! head of each script.

use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Meter, Quota, RefundTo, Rounding, SoftPeriod, Spans, Ticks,
    Time,
};
use tidegate_store::{Charging, Draw, Loan};

use crate::fit::COUNTS_END;

/// The numbers as bytes: doubles, the least significant byte first.
pub(crate) type Numbers = SmallVec<[u8; 112]>;

/// The period of soft admissions of a counter after a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodAfter {
    /// It stays as it is.
    Kept,
    /// It is as it was before a charge that is undone.
    Restored(Option<SoftPeriod>),
}

/// Ticks in a microsecond.
const MICRO: u128 = 1_000 * Ticks::PER_NANO;

/// More than any bucket has room for, and still small enough to add.
const NEVER: u128 = Ticks::PER_NANO << 63;

/// What a script is to know to charge `cost`.
pub(crate) fn numbers(quota: &Quota, cost: u64, headroom: Headroom, charging: Charging) -> Numbers {
    let extra = match (quota.allowance(), headroom) {
        (Allowance::Hard, _) | (Allowance::Elastic { .. }, Headroom::Absent) => 0,
        (Allowance::Soft { .. } | Allowance::Postpaid { .. }, _)
        | (Allowance::Elastic { .. }, Headroom::Available) => quota.most_extra(),
    };
    let mut to = Numbers::new();
    match quota.meter() {
        Meter::TokenBucket(meter) => bucket(&mut to, quota, &meter.spans(), cost, extra),
        Meter::LeakyBucket(meter) => bucket(&mut to, quota, &meter.spans(), cost, extra),
        Meter::FixedWindow(_) => {
            counted(&mut to, quota, quota.limit(), cost, extra);
            span(&mut to, quota.window());
            let counts_denials = charging == Charging::EveryMatch && !quota.is_postpaid();
            number(&mut to, u64::from(counts_denials));
        }
        Meter::IntervalBucket(meter) => {
            counted(&mut to, quota, meter.capacity(), cost, extra);
            span(&mut to, quota.window());
            number(&mut to, quota.limit());
            number(&mut to, meter.capacity().saturating_add(quota.most_extra()));
        }
        Meter::SlidingCounter(_) => {
            counted(&mut to, quota, quota.limit(), cost, extra);
            span(&mut to, quota.window());
            number(&mut to, rounds_up(quota));
        }
        Meter::SlidingLog(meter) => {
            counted(&mut to, quota, quota.limit(), cost, extra);
            span(&mut to, quota.window());
            number(&mut to, unit(meter.grain()));
            number(&mut to, meter.capacity());
            number(&mut to, u64::from(meter.logs_refused()));
        }
        Meter::SubWindows(meter) => {
            counted(&mut to, quota, quota.limit(), cost, extra);
            span(&mut to, meter.sub_window());
            number(&mut to, rounds_up(quota));
            number(&mut to, meter.parts());
            span(&mut to, quota.window());
        }
    }
    to
}

/// The same for the script that knows one limit only, and takes less for the most common of all.
pub(crate) fn numbers_of_one(
    quota: &Quota,
    cost: u64,
    headroom: Headroom,
    charging: Charging,
) -> Numbers {
    let spans = match (quota.allowance(), quota.meter()) {
        (Allowance::Hard, Meter::TokenBucket(meter)) => meter.spans(),
        (Allowance::Hard, Meter::LeakyBucket(meter)) => meter.spans(),
        _ => return numbers(quota, cost, headroom, charging),
    };
    let mut to = Numbers::new();
    pair(&mut to, asked(&spans, cost));
    pair(&mut to, spans.capacity.0);
    number(&mut to, expiry_step(quota));
    to
}

/// What a script is to know to refund `cost`.
pub(crate) fn refunded(quota: &Quota, cost: u64) -> Numbers {
    numbers(quota, cost, Headroom::Available, Charging::AllOrNone)
}

/// The period of soft admissions as the refund scripts take it: microseconds and step.
pub(crate) fn period_after(after: PeriodAfter) -> Numbers {
    let mut to = Numbers::new();
    let mut step = 0_u16;
    match after {
        PeriodAfter::Restored(Some(period)) => {
            let (micros, period_step) = period.parts();
            number(&mut to, micros);
            step = period_step;
        }
        PeriodAfter::Restored(None) => to.extend_from_slice(&(-1.0_f64).to_le_bytes()),
        PeriodAfter::Kept => to.extend_from_slice(&(-2.0_f64).to_le_bytes()),
    }
    number(&mut to, step);
    to
}

/// What a script is to know of the charge that a refund goes to: when it was made and, of a queue, when that was
/// to be empty again, in whole microseconds and the rest in nanoseconds; nothing without a charge.
pub(crate) fn charge_stamp(quota: &Quota, to: RefundTo) -> Numbers {
    let mut to_write = Numbers::new();
    let RefundTo::Charge(stamp) = to else {
        return to_write;
    };
    number(&mut to_write, stamp.at.nanos() / 1_000);
    match quota.meter() {
        // Times beyond the end of time cannot be told apart: no queue is empty at 0.
        Meter::LeakyBucket(_) if stamp.resets_at == Time::MAX => {
            number(&mut to_write, 0_u64);
            number(&mut to_write, 0_u64);
        }
        Meter::LeakyBucket(_) => {
            number(&mut to_write, stamp.resets_at.nanos() / 1_000);
            number(&mut to_write, stamp.resets_at.nanos() % 1_000);
        }
        _ => {
            for _ in 0..2 {
                to_write.extend_from_slice(&(-1.0_f64).to_le_bytes());
            }
        }
    }
    to_write
}

/// The numbers of a draw beyond the fewest permits: the most, one in how many, the reserve, and their life.
pub(crate) fn drawn(draw: &Draw) -> Numbers {
    let mut to = Numbers::new();
    number(&mut to, draw.most.min(COUNTS_END));
    number(&mut to, draw.one_in.max(1));
    number(&mut to, draw.reserve);
    span(&mut to, draw.life);
    to
}

/// The numbers of permits that a bucket may lend, most first, each half of the one before: the span that must
/// be left for it, what it takes, and the number.
pub(crate) fn lendings(quota: &Quota, draw: &Draw) -> Numbers {
    let mut to = Numbers::new();
    let Meter::TokenBucket(meter) = quota.meter() else {
        return to;
    };
    let spans = meter.spans();
    let mut permits = draw.most.min(COUNTS_END);
    while permits > draw.least {
        let shared = u128::from(permits - draw.least) * u128::from(draw.one_in.max(1));
        let shared = shared.max(u128::from(draw.reserve) + 1);
        let needed = spans
            .interval
            .0
            .saturating_mul(shared + u128::from(draw.least));
        let takes = spans.interval.0.saturating_mul(u128::from(permits));
        for ticks in [needed.min(NEVER), takes.min(NEVER)] {
            pair(&mut to, ticks);
        }
        number(&mut to, permits);
        permits = draw.least + (permits - draw.least) / 2;
    }
    to
}

/// The numbers of a loan of which permits are given back: when it was made, when it ends (a bucket: until when it
/// takes permits back), when the bucket would be full again if nobody else were charged, what had been given back to
/// it, and how many permits.
pub(crate) fn loaned(quota: &Quota, loan: &Loan, permits: u64) -> Numbers {
    let mut to = Numbers::new();
    number(&mut to, loan.now.nanos() / 1_000);
    let ends = match quota.meter() {
        Meter::TokenBucket(_) => loan.refundable_until(quota),
        _ => loan.ends,
    };
    number(&mut to, ends.nanos().div_ceil(1_000));
    number(&mut to, loan.whole_at(quota).nanos() / 1_000);
    number(&mut to, loan.given_back.0);
    number(&mut to, permits.min(COUNTS_END));
    to
}

/// Microseconds in the unit that scripts remember times of a log in: the core's grain, but not less than
/// Redis tells apart.
pub(super) const fn unit(grain: u64) -> u64 {
    if grain < 1_000 { 1 } else { grain / 1_000 }
}

fn bucket(to: &mut Numbers, quota: &Quota, spans: &Spans, cost: u64, extra: u64) {
    let Spans {
        interval,
        capacity,
        bound,
    } = *spans;
    let asked = asked(spans, cost);
    let most = capacity.0 + interval.0 * u128::from(extra);
    for Ticks(ticks) in [Ticks(asked), Ticks(most), capacity, bound] {
        pair(to, ticks);
    }
    soft_for(to, quota);
    number(to, expiry_step(quota));
    span(to, quota.window());
    pair(to, interval.0);
}

/// What a cost takes of a bucket.
fn asked(spans: &Spans, cost: u64) -> u128 {
    let takes = spans.interval.0.saturating_mul(u128::from(cost));
    takes.min(NEVER)
}

/// Half a window, in whole milliseconds and told in microseconds: it may not depend on numbers that a reload can
/// change.
fn expiry_step(quota: &Quota) -> u128 {
    (quota.window().as_millis() / 2).max(1) * 1_000
}

/// A span in microseconds, and the rest in ticks.
fn pair(to: &mut Numbers, ticks: u128) {
    number(to, ticks / MICRO);
    number(to, ticks % MICRO);
}

fn counted(to: &mut Numbers, quota: &Quota, limit: u64, cost: u64, extra: u64) {
    number(to, cost.min(COUNTS_END));
    number(to, limit);
    number(to, limit.saturating_add(extra));
    soft_for(to, quota);
}

fn soft_for(to: &mut Numbers, quota: &Quota) {
    match quota.allowance() {
        Allowance::Soft {
            only_for: Some(only_for),
            ..
        } => span(to, only_for),
        Allowance::Postpaid { .. } if quota.is_postpaid() => {
            to.extend_from_slice(&(-2.0_f64).to_le_bytes());
        }
        _ => to.extend_from_slice(&(-1.0_f64).to_le_bytes()),
    }
}

fn rounds_up(quota: &Quota) -> u64 {
    match quota.algorithm() {
        Algorithm::SlidingCounter {
            rounding: Rounding::Up,
            ..
        } => 1,
        _ => 0,
    }
}

/// A span in microseconds, rounded up: between two times in whole microseconds that makes no difference.
fn span(to: &mut Numbers, span: Duration) {
    number(to, span.as_nanos().div_ceil(1_000));
}

/// A number; all that are compared with another are below 2^53, and those above stay above.
fn number(to: &mut Numbers, number: impl Into<u128>) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "whole below 2^53, and what is above need only stay above"
    )]
    let double = number.into() as f64;
    to.extend_from_slice(&double.to_le_bytes());
}
