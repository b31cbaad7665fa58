//! Looks: cost 0, before a debit that comes later.

use std::time::Duration;

use tidegate_limiter::{Charging, Hits, Limiter, LimiterConfig, LooksAtLimit, Retry};

use crate::failing::Failing;
use crate::fixture::{
    Ask, NOON, advance, ask, ask_hits, check, limiter, limiter_with, rules, text, with_descriptors,
};

const RULES: &str = "
domain: test
descriptors:
  - key: window
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: bucket
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: token_bucket}
  - key: log
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: sliding_log}
  - key: soft
    rate_limit: {unit: minute, requests_per_unit: 20, soft: 10%}
  - key: none
    rate_limit: {unit: minute, requests_per_unit: 0}
  - key: first_quota
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 20}
  - key: second_quota
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 20}
";

const EVERY_MATCH: LimiterConfig = LimiterConfig {
    charging: Charging::EveryMatch,
    ..LimiterConfig::DEFAULT
};

const REFERENCE: LimiterConfig = LimiterConfig {
    looks: LooksAtLimit::Allow,
    ..EVERY_MATCH
};

const WINDOW: Ask<'_> = Ask::of(&[("window", "a")]);
const BUCKET: Ask<'_> = Ask::of(&[("bucket", "a")]);

const fn look(ask: Ask<'_>) -> Ask<'_> {
    ask.hits(Hits::Take(0))
}

/// Looks and debits 1 where the look is allowed, until a look is denied: as many debits as the limit has.
#[test]
fn looks_and_debits_end_at_the_limit() {
    let all = ["window", "bucket", "log"].map(|key| (key, LimiterConfig::DEFAULT));
    for (key, config) in all.into_iter().chain([("window", EVERY_MATCH)]) {
        let limiter = limiter_with(RULES, config);
        let entries = [(key, "a")];
        let caller = Ask::of(&entries);
        let mut debits = 0;
        while ask(&limiter, &[look(caller)]).is_allowed() {
            assert!(ask(&limiter, &[caller]).is_allowed(), "{key}");
            debits += 1;
        }
        assert_eq!(debits, 20, "{key}");
        check(&limiter, &[look(caller)], "refused: refused 0/20");
    }
}

/// Standing in for envoyproxy/ratelimit: allowed at the limit, denied above it.
#[test]
fn a_window_that_counts_denials_allows_a_look_at_its_limit() {
    let limiter = limiter_with(RULES, REFERENCE);
    ask_hits(&limiter, &[WINDOW], 20);
    check(&limiter, &[look(WINDOW)], "allowed: allowed 0/20 near");
    assert!(!ask(&limiter, &[WINDOW]).is_allowed());
    check(&limiter, &[look(WINDOW)], "refused: refused 0/20");
    // A bucket does not count what it denies, so the look has to tell.
    ask_hits(&limiter, &[BUCKET], 20);
    check(&limiter, &[look(BUCKET)], "refused: refused 0/20");
}

#[test]
fn the_retry_of_a_look_is_that_of_a_cost_of_1() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[BUCKET], 20);
    let wait = Duration::from_secs(3);
    let retry = ask(&limiter, &[look(BUCKET)]).retry();
    assert_eq!(retry, Some(Retry::After(wait)));
    advance(&limiter, wait);
    check(&limiter, &[look(BUCKET)], "allowed: allowed 1/20 near");
    let never = ask(&limiter, &[look(Ask::of(&[("none", "a")]))]).retry();
    assert_eq!(never, Some(Retry::Never));
}

#[test]
fn a_denied_look_keeps_the_rest_from_being_charged() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[WINDOW], 20);
    let both = [look(WINDOW), BUCKET];
    check(&limiter, &both, "refused: refused 0/20, allowed 20/20");
    check(&limiter, &[BUCKET], "allowed: allowed 19/20");
}

#[test]
fn a_soft_allowance_has_room_for_a_look() {
    let limiter = limiter(RULES);
    let soft = Ask::of(&[("soft", "a")]);
    ask_hits(&limiter, &[soft], 20);
    assert!(ask(&limiter, &[look(soft)]).is_allowed());
    ask_hits(&limiter, &[soft], 2);
    assert!(!ask(&limiter, &[look(soft)]).is_allowed());
}

#[test]
fn looks_at_quota_limits_deny_only_together() {
    let limiter = limiter(RULES);
    let (first, second) = (
        Ask::of(&[("first_quota", "a")]),
        Ask::of(&[("second_quota", "a")]),
    );
    ask_hits(&limiter, &[first], 20);
    let looks = [look(first), look(second)];
    assert_eq!(
        text(&ask(&limiter, &looks)),
        "allowed: refused 0/20, allowed 20/20"
    );
    // The other quota limit allows it, so the window is charged.
    check(
        &limiter,
        &[look(first), second, WINDOW],
        "allowed: refused 0/20, allowed 19/20, allowed 19/20",
    );
    ask_hits(&limiter, &[second], 19);
    assert!(!ask(&limiter, &looks).is_allowed());
    check(
        &limiter,
        &[look(first), second, WINDOW],
        "refused: refused 0/20, refused 0/20, allowed 19/20",
    );
}

#[test]
fn a_refund_is_never_denied() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[WINDOW], 20);
    assert!(ask(&limiter, &[WINDOW.hits(Hits::Refund(0))]).is_allowed());
}

#[test]
fn a_node_alone_denies_a_look_at_what_is_used_up() {
    let limiter = Limiter::new(Failing::alone(NOON), rules(RULES), LimiterConfig::DEFAULT);
    let check_now = |hits| {
        with_descriptors(&[WINDOW.hits(hits)], |descriptors| {
            limiter.check_now("test", descriptors, 1).unwrap()
        })
    };
    assert!(check_now(Hits::Take(0)).is_allowed());
    assert!(check_now(Hits::Take(20)).is_allowed());
    let looked = check_now(Hits::Take(0));
    assert!(!looked.is_allowed());
    assert_eq!(looked.retry(), Some(Retry::After(Duration::from_mins(1))));
}
