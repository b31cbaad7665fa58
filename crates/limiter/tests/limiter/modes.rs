//! Shadow and quota mode, `unlimited` and `replaces`.

use std::time::Duration;

use tidegate_limiter::{GlobalShadow, LimiterConfig, Retry, Ruling};

use crate::fixture::{Ask, ask, ask_hits, check, limiter, limiter_with};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5, name: user}
  - key: shadow
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: short
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: long
    quota_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: staff
    rate_limit: {unlimited: true, replaces: [{name: user}]}
  - key: partner
    rate_limit: {unit: minute, requests_per_unit: 50, name: partner, replaces: [{name: user}]}
  - key: guest
    rate_limit: {unit: minute, requests_per_unit: 1, name: guest, replaces: [{name: partner}]}
";

const USER: Ask<'_> = Ask::of(&[("user", "alice")]);
const SHADOW: Ask<'_> = Ask::of(&[("shadow", "x")]);
const SHORT: Ask<'_> = Ask::of(&[("short", "x")]);
const LONG: Ask<'_> = Ask::of(&[("long", "x")]);
const STAFF: Ask<'_> = Ask::of(&[("staff", "x")]);
const PARTNER: Ask<'_> = Ask::of(&[("partner", "x")]);
const GUEST: Ask<'_> = Ask::of(&[("guest", "x")]);

#[test]
fn shadow_counts_and_never_refuses() {
    let limiter = limiter(RULES);
    check(&limiter, &[SHADOW], "allowed: allowed 0/1 near");
    check(&limiter, &[SHADOW], "allowed: allowed 0/1 shadowed");
    check(
        &limiter,
        &[SHADOW, USER],
        "allowed: allowed 0/1 shadowed, allowed 4/5",
    );
    let shadowed = ask(&limiter, &[SHADOW]);
    assert_eq!(
        (shadowed.retry(), shadowed.deciding().is_none()),
        (None, true)
    );
}

#[test]
fn global_shadow_lets_pass_and_keeps_the_statuses() {
    let config = LimiterConfig {
        shadow: GlobalShadow::On,
        ..LimiterConfig::DEFAULT
    };
    let limiter = limiter_with(RULES, config);
    assert!(!ask_hits(&limiter, &[USER], 5).is_shadowed());
    let verdict = ask(&limiter, &[USER]);
    assert!(verdict.is_shadowed());
    assert_eq!(verdict.retry(), None);
    check(&limiter, &[USER], "allowed: refused 0/5");
}

#[test]
fn quota_limits_refuse_only_together() {
    let limiter = limiter(RULES);
    check(
        &limiter,
        &[SHORT, LONG],
        "allowed: allowed 0/1 near, allowed 1/2",
    );
    check(
        &limiter,
        &[SHORT, LONG],
        "allowed: refused 0/1, allowed 0/2 near",
    );
    check(
        &limiter,
        &[SHORT, LONG],
        "refused: refused 0/1, refused 0/2",
    );
    // Without a second one, one is all.
    check(&limiter, &[SHORT], "refused: refused 0/1");
}

#[test]
fn the_quota_limit_with_most_remaining_speaks_for_all() {
    let limiter = limiter(RULES);
    let deciding = |asks: &[Ask<'_>]| {
        let verdict = ask(&limiter, asks);
        let limit = verdict.deciding().unwrap();
        (limit.name().map(str::to_owned), *limit.decision().unwrap())
    };
    // One of the short limit's one is gone, and the next request passes all the same.
    let (_, decision) = deciding(&[SHORT, LONG]);
    assert_eq!((decision.remaining, decision.limit), (1, 2));
    // An enforced limit with less remaining goes before it.
    ask_hits(&limiter, &[USER], 4);
    let (name, decision) = deciding(&[LONG, USER]);
    assert_eq!((name.as_deref(), decision.remaining), (Some("user"), 0));
}

#[test]
fn the_first_quota_limit_to_admit_ends_the_wait() {
    let limiter = limiter(RULES);
    ask(&limiter, &[SHORT, LONG]);
    ask(&limiter, &[SHORT, LONG]);
    let verdict = ask(&limiter, &[SHORT, LONG]);
    assert_eq!(verdict.retry(), Some(Retry::After(Duration::from_mins(1))));
    assert_eq!(verdict.deciding().unwrap().quota().unwrap().limit(), 1);
}

#[test]
fn an_enforced_limit_refuses_whatever_the_quotas_say() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[USER], 5);
    check(&limiter, &[USER, LONG], "refused: refused 0/5, allowed 2/2");
}

#[test]
fn unlimited_admits_and_replaces() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[USER], 5);
    check(&limiter, &[USER], "refused: refused 0/5");
    check(
        &limiter,
        &[USER, STAFF],
        "allowed: allowed replaced, allowed unlimited",
    );
    check(&limiter, &[STAFF], "allowed: allowed unlimited");
}

#[test]
fn a_replaced_limit_is_not_charged() {
    let limiter = limiter(RULES);
    check(
        &limiter,
        &[PARTNER, USER],
        "allowed: allowed 49/50, allowed replaced",
    );
    check(&limiter, &[USER], "allowed: allowed 4/5");
}

#[test]
fn a_replaced_limit_still_replaces_others() {
    let limiter = limiter(RULES);
    let expected = "allowed: allowed replaced, allowed replaced, allowed 0/1 near";
    check(&limiter, &[USER, PARTNER, GUEST], expected);
}

#[test]
fn the_decisions_stand_by_their_limits_when_some_are_not_charged() {
    let limiter = limiter(RULES);
    let verdict = ask(&limiter, &[STAFF, SHORT, USER, LONG]);
    let rulings: Vec<Option<u64>> = verdict
        .limits()
        .map(|it| it.decision().map(|decision| decision.limit))
        .collect();
    assert_eq!(rulings, [None, Some(1), None, Some(2)]);
    assert_eq!(verdict.limits().next().unwrap().ruling(), Ruling::Unlimited);
    assert_eq!(verdict.limits().nth(2).unwrap().ruling(), Ruling::Replaced);
}
