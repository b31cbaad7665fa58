//! A subject on the bench: the store's calls without futures, and quotas by a few words.

use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Decision, Headroom, Outcome, Quota, QuotaSpec, Refill,
    RefundTo, Retry, Rounding, Time,
};

use super::Subject;
use crate::{
    Admission, Charge, Charging, Consistency, Counter, CounterKey, Cursor, Decisions, Draw, Lender,
    LimitId, Loan, Mode, OnFull, Receipt, Store, StoreError,
};

/// When most cases begin: an edge of minutes and hours in the year 2027.
pub(super) const START: Time = Time::from_nanos(1_800_000_000_000_000_000);

/// The usual window.
pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// A decision of another request.
const STALE: Decision = Decision {
    outcome: Outcome::Denied {
        retry: Retry::Never,
    },
    limit: 0,
    remaining: 0,
    reset_after: Duration::ZERO,
};

/// A subject and its time.
pub(super) struct Bench<S> {
    subject: S,
    now: Time,
}

// === impl Bench ===

impl<S: Subject> Bench<S> {
    pub(super) fn new() -> Self {
        Self::at(START)
    }

    pub(super) fn at(now: Time) -> Self {
        let subject = S::new(now);
        Self { subject, now }
    }

    pub(super) fn set_time(&mut self, now: Time) {
        self.now = now;
        self.subject.set_time(now);
    }

    pub(super) const fn now(&self) -> Time {
        self.now
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.set_time(self.now.plus(by));
    }

    pub(super) fn try_charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
    ) -> Result<(Receipt, Decisions), StoreError> {
        // What is left of another request is to be cleared.
        let mut decisions = Decisions::from_elem(STALE, 1);
        let answer = self
            .subject
            .store()
            .charge(charges, charging, &mut decisions);
        let receipt = self.subject.wait(answer)?;
        assert_eq!(decisions.len(), charges.len(), "one decision per charge");
        Ok((receipt, decisions))
    }

    pub(super) fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
    ) -> (Admission, Decisions) {
        let (receipt, decisions) = self.try_charge(charges, charging).expect("a decision");
        assert_eq!(receipt.now, self.now, "the store's own time");
        (receipt.admission, decisions)
    }

    /// Charges one enforced limit.
    pub(super) fn take(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) -> Decision {
        let charge = enforce(key, quota, cost);
        let (admission, decisions) = self.charge(&[charge], Charging::AllOrNone);
        let is_admitted = admission == Admission::Admitted;
        assert_eq!(is_admitted, decisions[0].is_allowed(), "the only limit");
        decisions[0]
    }

    pub(super) fn peek(&self, key: CounterKey<'_>, quota: &Quota) -> Decision {
        self.peek_with(key, quota, Headroom::Absent)
    }

    pub(super) fn peek_with(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        headroom: Headroom,
    ) -> Decision {
        let look = Charge {
            headroom,
            ..Charge::look(key, quota, Consistency::Strict)
        };
        let answer = self.subject.store().peek(&look);
        self.subject.wait(answer).expect("a decision")
    }

    /// Charges one enforced limit; the stamp of the charge, if it is allowed.
    pub(super) fn take_stamped(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
    ) -> (Decision, Option<ChargeStamp>) {
        let charge = enforce(key, quota, cost);
        let charged = self.try_charge(&[charge], Charging::AllOrNone);
        let (receipt, decisions) = charged.expect("a decision");
        let stamp = receipt.stamp(0, &decisions[0]);
        (decisions[0], decisions[0].is_allowed().then_some(stamp))
    }

    pub(super) fn refund(&self, key: CounterKey<'_>, quota: &Quota, cost: u64) {
        self.refund_to(key, quota, cost, RefundTo::Current);
    }

    pub(super) fn refund_to(&self, key: CounterKey<'_>, quota: &Quota, cost: u64, to: RefundTo) {
        let answer = self
            .subject
            .store()
            .refund(key, quota, cost, to, Consistency::Strict);
        self.subject.wait(answer).expect("a refund");
    }

    pub(super) fn reset(&self, key: CounterKey<'_>, quota: &Quota) -> bool {
        let answer = self.subject.store().reset(key, quota, Consistency::Strict);
        self.subject.wait(answer).expect("a reset")
    }

    pub(super) fn time(&self) -> Time {
        self.subject
            .wait(self.subject.store().now())
            .expect("a time")
    }

    /// All counters, listed by pages of about `most`, by fingerprint.
    pub(super) fn list(&self, most: usize) -> Vec<Counter> {
        let mut all = Vec::new();
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            let answer = self.subject.store().list(at, most);
            let page = self.subject.wait(answer).expect("a page");
            all.extend(page.counters);
            assert_ne!(page.next, cursor, "the listing goes on");
            cursor = page.next;
        }
        all.sort_unstable_by_key(|counter| counter.fingerprint);
        all
    }
}

impl<S: Subject<Store: Lender>> Bench<S> {
    pub(super) fn draw(&self, key: CounterKey<'_>, quota: &Quota, draw: Draw) -> Loan {
        let answer = self.subject.store().draw(key, quota, draw);
        let loan = self.subject.wait(answer).expect("a loan");
        assert_eq!(loan.now, self.now, "the store's own time");
        loan
    }

    pub(super) fn give_back(&self, key: CounterKey<'_>, quota: &Quota, loan: &Loan, permits: u64) {
        let store = self.subject.store();
        let answer = store.give_back(key, quota, loan, permits);
        self.subject.wait(answer).expect("taken back");
    }
}

pub(super) const fn key<'a>(limit: u128, values: &'a [&'a str]) -> CounterKey<'a> {
    CounterKey {
        limit: LimitId(limit),
        values,
    }
}

pub(super) const fn enforce<'a>(key: CounterKey<'a>, quota: &'a Quota, cost: u64) -> Charge<'a> {
    Charge {
        key,
        quota,
        cost,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    }
}

pub(super) const fn in_mode(charge: Charge<'_>, mode: Mode) -> Charge<'_> {
    Charge { mode, ..charge }
}

/// `limit` a minute, hard.
pub(super) fn per_minute(limit: u64, algorithm: Algorithm) -> Quota {
    quota(&QuotaSpec {
        limit,
        window: MINUTE,
        algorithm,
        allowance: Allowance::Hard,
    })
}

pub(super) fn quota(spec: &QuotaSpec) -> Quota {
    Quota::new(spec).expect("a valid quota")
}

pub(super) const TOKEN_BUCKET: Algorithm = Algorithm::TokenBucket {
    burst: None,
    refill: Refill::Continuous,
};

pub(super) const SLIDING_LOG: Algorithm = Algorithm::SlidingLog { log_refused: false };

/// Each algorithm once.
pub(super) const ALGORITHMS: [Algorithm; 7] = [
    TOKEN_BUCKET,
    Algorithm::TokenBucket {
        burst: None,
        refill: Refill::Interval,
    },
    // With one that leaves at once and four that wait, five fit: as in the others.
    Algorithm::LeakyBucket { queue: Some(4) },
    Algorithm::FixedWindow,
    SLIDING_LOG,
    Algorithm::SlidingCounter {
        sub_windows: 1,
        rounding: Rounding::Down,
    },
    Algorithm::SlidingCounter {
        sub_windows: 12,
        rounding: Rounding::Down,
    },
];
