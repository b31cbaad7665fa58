//! Limits that come with the request.

use std::error::Error;
use std::time::Duration;

use tidegate_limiter::{LimiterError, Origin};

use crate::fixture::{Ask, ask, check, limiter, try_ask};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5}
";

const MINUTE: Duration = Duration::from_mins(1);
const USER: Ask<'_> = Ask::of(&[("user", "alice")]);

#[test]
fn an_override_is_used_instead_of_the_rules() {
    let limiter = limiter(RULES);
    check(&limiter, &[USER.limit(2, MINUTE)], "allowed: allowed 1/2");
    check(
        &limiter,
        &[USER.limit(2, MINUTE)],
        "allowed: allowed 0/2 near",
    );
    check(&limiter, &[USER.limit(2, MINUTE)], "refused: refused 0/2");
    // The rule's own counter has not been touched.
    check(&limiter, &[USER], "allowed: allowed 4/5");
}

#[test]
fn an_override_needs_no_rule() {
    let limiter = limiter(RULES);
    let unknown = Ask::of(&[("never", "heard"), ("of", "it")]).limit(1, MINUTE);
    check(&limiter, &[unknown], "allowed: allowed 0/1 near");
    check(&limiter, &[unknown], "refused: refused 0/1");
    check(
        &limiter,
        &[Ask::of(&[]).limit(1, MINUTE)],
        "allowed: allowed 0/1 near",
    );
}

#[test]
fn entries_and_window_tell_overrides_apart_and_the_number_does_not() {
    let limiter = limiter(RULES);
    let ab = Ask::of(&[("a", "b")]);
    check(&limiter, &[ab.limit(9, MINUTE)], "allowed: allowed 8/9");
    check(
        &limiter,
        &[ab.limit(9, Duration::from_secs(1))],
        "allowed: allowed 8/9",
    );
    check(
        &limiter,
        &[Ask::of(&[("a", "b"), ("c", "")]).limit(9, MINUTE)],
        "allowed: allowed 8/9",
    );
    check(
        &limiter,
        &[Ask::of(&[("b", "a")]).limit(9, MINUTE)],
        "allowed: allowed 8/9",
    );
    check(&limiter, &[ab.limit(5, MINUTE)], "allowed: allowed 3/5");
}

#[test]
fn an_override_of_zero_refuses() {
    let limiter = limiter(RULES);
    check(&limiter, &[USER.limit(0, MINUTE)], "refused: refused 0/0");
}

#[test]
fn the_verdict_knows_an_override() {
    let limiter = limiter(RULES);
    let verdict = ask(&limiter, &[USER.limit(7, MINUTE)]);
    let Origin::Override(quota) = verdict.deciding().unwrap().origin() else {
        panic!("not an override");
    };
    assert_eq!((quota.limit(), quota.window()), (7, MINUTE));
}

#[test]
fn an_override_that_is_no_limit_is_an_error() {
    let limiter = limiter(RULES);
    let asks = [USER, USER.limit(1, Duration::ZERO)];
    let error = try_ask(&limiter, "test", &asks, 1).unwrap_err();
    assert!(
        matches!(error, LimiterError::BadOverride { descriptor: 1, .. }),
        "{error:?}"
    );
    assert!(error.source().is_some());
    // Nothing was charged.
    check(&limiter, &[USER], "allowed: allowed 4/5");
}
