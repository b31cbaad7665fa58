//! The embedded store as a lender, for tests: nodes in one process that have it in common.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};

use tidegate_algorithms::token_bucket::TokenBucket;
use tidegate_algorithms::{Algorithm, Meter, Quota, Refill, RefundTo, Time};

use super::EmbeddedStore;
use crate::{
    Charge, Charging, Clock, Consistency, CounterKey, Decisions, Draw, GivenBack, Lender, Loan,
    OnFull, StoreError,
};

/// What was given back to each bucket in all, in nanoseconds, by the hash of its key.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<HashMap<u64, u64>>);

// === impl EmbeddedStore ===

impl<C: Clock> EmbeddedStore<C> {
    fn draw_now(&self, key: CounterKey<'_>, quota: &Quota, draw: Draw) -> Result<Loan, StoreError> {
        let look = Charge {
            on_full: OnFull::Deny,
            ..Charge::look(key, quota, Consistency::Leased)
        };
        let permits = draw.permits(self.peek_now(&look)?.remaining);
        let charge = Charge {
            cost: permits,
            ..look
        };
        let mut decisions = Decisions::new();
        let receipt = self.charge_now(&[charge], Charging::AllOrNone, &mut decisions)?;
        let decision = decisions[0];
        let now = receipt.now;
        Ok(Loan {
            now,
            permits: if decision.is_allowed() { permits } else { 0 },
            ends: ends(quota, now.plus(draw.life), now),
            decision,
            given_back: GivenBack(
                self.notes
                    .with(self.fingerprinter.hash(key), |total| *total),
            ),
        })
    }

    fn give_back_now(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        let now = self.clock().now();
        if edge(quota, loan.now).is_some_and(|edge| now >= edge) {
            return Ok(0);
        }
        let taken = match quota.meter() {
            Meter::TokenBucket(meter) => self.notes.with(self.fingerprinter.hash(key), |total| {
                take_back(meter, quota, loan, permits, now, total)
            }),
            // The newest entries by then belong to other requests.
            Meter::SlidingLog(_) if now > loan.now => 0,
            _ => permits,
        };
        self.refund_now(key, quota, taken, RefundTo::Current)?;
        Ok(taken)
    }
}

impl<C: Clock> Lender for EmbeddedStore<C> {
    fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> impl Future<Output = Result<Loan, StoreError>> + Send {
        ready(self.draw_now(key, quota, draw))
    }

    fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send {
        ready(self.give_back_now(key, quota, loan, permits))
    }
}

// === impl Notes ===

impl Notes {
    fn with<T>(&self, key: u64, work: impl FnOnce(&mut u64) -> T) -> T {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(notes.entry(key).or_default())
    }
}

/// How many of these permits a bucket cannot have got back by itself, see [`Lender::give_back`]; noted in
/// `total`.
fn take_back(
    meter: &TokenBucket,
    quota: &Quota,
    loan: &Loan,
    permits: u64,
    now: Time,
    total: &mut u64,
) -> u64 {
    if now >= loan.refundable_until(quota) {
        return 0;
    }
    let interval = meter.spans().interval.ceil().nanos().max(1);
    let since = total.saturating_sub(loan.given_back.0);
    let whole = loan.whole_at(quota).nanos().saturating_sub(since);
    let missing = whole.saturating_sub(now.nanos()) / interval;
    let back = permits.min(missing);
    *total = total.saturating_add(back.saturating_mul(interval));
    back
}

/// When permits drawn at `now` end. This store cannot date those of a log to their end, so they end at
/// once.
fn ends(quota: &Quota, latest: Time, now: Time) -> Time {
    match quota.algorithm() {
        Algorithm::SlidingLog { .. } => now,
        _ => edge(quota, now).map_or(latest, |edge| latest.min(edge)),
    }
}

/// Where the window that `now` lies in ends, for limits that count by windows.
fn edge(quota: &Quota, now: Time) -> Option<Time> {
    let parts = match quota.algorithm() {
        Algorithm::SlidingCounter { sub_windows, .. } => u64::from(sub_windows.max(1)),
        Algorithm::FixedWindow
        | Algorithm::TokenBucket {
            refill: Refill::Interval,
            ..
        } => 1,
        _ => return None,
    };
    let window = u64::try_from(quota.window().as_nanos()).unwrap_or(u64::MAX);
    let span = window.div_ceil(parts).max(1);
    let index = now.nanos() / span;
    Some(Time::from_nanos(
        index.saturating_add(1).saturating_mul(span),
    ))
}
