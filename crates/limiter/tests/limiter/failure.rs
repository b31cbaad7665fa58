//! A store that fails or waits: the failure policy of each limit speaks.

use std::future::{Future, pending, ready};

use tidegate_algorithms::{Decision, Headroom, Quota, Time};
use tidegate_limiter::{Hits, Limiter, LimiterConfig, LimiterError, Verdict};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, Page, Receipt, Store, StoreError,
};

use crate::fixture::{Ask, rules, text, with_descriptors};

const RULES: &str = "
domain: test
descriptors:
  - key: default
    rate_limit: {unit: minute, requests_per_unit: 5}
  - key: allow
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: allow}
  - key: deny
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: deny}
  - key: shadow
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: deny}
  - key: quota_deny
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: deny}
  - key: quota_allow
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 5, on_failure: allow}
  - key: free
";

const ERROR: StoreError = StoreError::TooManyWindows { most: 1 };

/// A store that always fails.
struct Broken;

/// A store that never answers.
struct Stuck;

// === impl Broken ===

impl Store for Broken {
    fn charge(
        &self,
        _charges: &[Charge<'_>],
        _charging: Charging,
        _decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn peek(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _headroom: Headroom,
        _: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn refund(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _cost: u64,
        _: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn reset(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        ready(Err(ERROR))
    }

    fn list(
        &self,
        _cursor: Cursor,
        _most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        ready(Err(ERROR))
    }
}

// === impl Stuck ===

impl Store for Stuck {
    fn charge(
        &self,
        _charges: &[Charge<'_>],
        _charging: Charging,
        _decisions: &mut Decisions,
    ) -> impl Future<Output = Result<Receipt, StoreError>> + Send {
        pending()
    }

    fn peek(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _headroom: Headroom,
        _: Consistency,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        pending()
    }

    fn refund(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _cost: u64,
        _: Consistency,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        pending()
    }

    fn reset(
        &self,
        _key: CounterKey<'_>,
        _quota: &Quota,
        _: Consistency,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        pending()
    }

    fn now(&self) -> impl Future<Output = Result<Time, StoreError>> + Send {
        pending()
    }

    fn list(
        &self,
        _cursor: Cursor,
        _most: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send {
        pending()
    }
}

fn try_ask<S: Store>(store: S, asks: &[Ask<'_>]) -> Result<Verdict, LimiterError> {
    let limiter = Limiter::new(store, rules(RULES), LimiterConfig::default());
    with_descriptors(asks, |descriptors| {
        limiter.check_now("test", descriptors, 1)
    })
}

#[track_caller]
fn check(asks: &[Ask<'_>], expected: &str) {
    let verdict = try_ask(Broken, asks).unwrap();
    assert_eq!(text(&verdict), expected);
    assert_eq!(verdict.failure(), Some(&ERROR));
    assert_eq!(verdict.retry(), None);
}

const DEFAULT: Ask<'_> = Ask::of(&[("default", "x")]);
const ALLOW: Ask<'_> = Ask::of(&[("allow", "x")]);
const DENY: Ask<'_> = Ask::of(&[("deny", "x")]);
const SHADOW: Ask<'_> = Ask::of(&[("shadow", "x")]);
const QUOTA_DENY: Ask<'_> = Ask::of(&[("quota_deny", "x")]);
const QUOTA_ALLOW: Ask<'_> = Ask::of(&[("quota_allow", "x")]);

#[test]
fn the_policy_of_each_limit_answers_for_a_broken_store() {
    check(&[DEFAULT], "allowed: allowed undecided");
    check(&[ALLOW], "allowed: allowed undecided");
    check(&[DENY], "refused: refused undecided");
    check(
        &[ALLOW, DENY],
        "refused: allowed undecided, refused undecided",
    );
}

#[test]
fn modes_hold_for_the_policy_too() {
    check(&[SHADOW], "allowed: allowed undecided shadowed");
    check(&[QUOTA_DENY], "refused: refused undecided");
    check(
        &[QUOTA_DENY, QUOTA_ALLOW],
        "allowed: refused undecided, allowed undecided",
    );
}

#[test]
fn a_limit_that_came_with_the_request_passes() {
    check(
        &[DENY.limit(1, std::time::Duration::from_secs(1))],
        "allowed: allowed undecided",
    );
}

#[test]
fn a_refund_that_fails_is_told() {
    check(
        &[DENY.hits(Hits::Refund(1))],
        "allowed: allowed undecided shadowed",
    );
}

#[test]
fn a_store_that_is_not_asked_cannot_fail() {
    let verdict = try_ask(Broken, &[Ask::of(&[("free", "x")])]).unwrap();
    assert_eq!(text(&verdict), "allowed: allowed free");
    assert_eq!(verdict.failure(), None);
}

#[test]
fn a_store_that_waits_is_not_for_check_now() {
    assert_eq!(
        try_ask(Stuck, &[ALLOW]).unwrap_err(),
        LimiterError::WouldWait
    );
    assert!(try_ask(Stuck, &[Ask::of(&[("free", "x")])]).is_ok());
}
