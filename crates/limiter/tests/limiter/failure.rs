//! A store that fails or waits: the failure policy of each limit speaks.

use std::time::Duration;

use tidegate_limiter::{
    BanTerm, Entry, Hits, KeyError, Limiter, LimiterConfig, LimiterError, NewBan, Retry, Verdict,
};
use tidegate_store::{Charging, Store};

use crate::failing::{ERROR, Failing};
use crate::fixture::{Ask, NOON, rules, text, wait, with_descriptors};

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
  - key: of_node
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: node, on_failure: deny}
  - key: split
    rate_limit: {unit: minute, requests_per_unit: 5, consistency: split, on_failure: deny}
  - key: quota_local
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 5}
";

fn try_ask<S: Store>(store: S, asks: &[Ask<'_>]) -> Result<Verdict, LimiterError> {
    let limiter = Limiter::new(store, rules(RULES), LimiterConfig::default());
    with_descriptors(asks, |descriptors| {
        limiter.check_now("test", descriptors, 1)
    })
}

#[track_caller]
fn check(asks: &[Ask<'_>], expected: &str) {
    let verdict = try_ask(Failing::broken(), asks).unwrap();
    assert_eq!(text(&verdict), expected);
    assert_eq!(verdict.failure(), Some(&ERROR));
    assert_eq!(verdict.time(), None);
    let retry = (!verdict.is_allowed()).then_some(Retry::After(Duration::from_secs(1)));
    assert_eq!(verdict.retry(), retry);
}

const DEFAULT: Ask<'_> = Ask::of(&[("default", "x")]);
const ALLOW: Ask<'_> = Ask::of(&[("allow", "x")]);
const DENY: Ask<'_> = Ask::of(&[("deny", "x")]);
const SHADOW: Ask<'_> = Ask::of(&[("shadow", "x")]);
const QUOTA_DENY: Ask<'_> = Ask::of(&[("quota_deny", "x")]);
const QUOTA_ALLOW: Ask<'_> = Ask::of(&[("quota_allow", "x")]);
const QUOTA_LOCAL: Ask<'_> = Ask::of(&[("quota_local", "x")]);
const OF_NODE: Ask<'_> = Ask::of(&[("of_node", "x")]);

/// A limiter whose store fails and whose node stands by.
fn alone() -> Limiter<Failing> {
    alone_with(LimiterConfig::default())
}

fn alone_with(config: LimiterConfig) -> Limiter<Failing> {
    Limiter::new(Failing::alone(NOON), rules(RULES), config)
}

/// Asks `hits` of `asks` and compares the verdict's text. The store fails, whoever answers.
#[track_caller]
fn check_alone(limiter: &Limiter<Failing>, asks: &[Ask<'_>], hits: u64, expected: &str) {
    let verdict = with_descriptors(asks, |descriptors| {
        limiter.check_now("test", descriptors, hits)
    });
    let verdict = verdict.unwrap();
    assert_eq!(text(&verdict), expected);
    assert_eq!(verdict.failure(), Some(&ERROR));
}

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
    let verdict = try_ask(Failing::broken(), &[Ask::of(&[("free", "x")])]).unwrap();
    assert_eq!(text(&verdict), "allowed: allowed free");
    assert_eq!(verdict.failure(), None);
}

#[test]
fn a_store_that_waits_is_not_for_check_now() {
    assert_eq!(
        try_ask(Failing::stuck(), &[ALLOW]).unwrap_err(),
        LimiterError::WouldWait
    );
    assert!(try_ask(Failing::stuck(), &[Ask::of(&[("free", "x")])]).is_ok());
}

/// The caller's own deadline has passed: the limits are answered for at once, though the store is stuck.
#[test]
fn a_caller_who_cannot_wait_for_the_store_gets_the_answer_of_each_policy() {
    let check = |store: Failing, ask: Ask<'_>, expected: &str| {
        let limiter = Limiter::new(store, rules(RULES), LimiterConfig::default());
        let verdict = with_descriptors(&[ask], |descriptors| {
            limiter.check_without_store("test", descriptors, 1, ERROR)
        });
        let verdict = verdict.unwrap();
        assert_eq!(text(&verdict), expected);
        assert_eq!(verdict.failure(), Some(&ERROR));
    };
    check(Failing::stuck(), ALLOW, "allowed: allowed undecided");
    check(Failing::stuck(), DENY, "refused: refused undecided");
    check(Failing::alone(NOON), DEFAULT, "allowed: allowed 4/5");
}

#[test]
fn a_node_that_stands_by_goes_on_limiting() {
    let limiter = alone();
    check_alone(&limiter, &[DEFAULT], 4, "allowed: allowed 1/5");
    check_alone(&limiter, &[DEFAULT], 2, "refused: refused 1/5");
    check_alone(&limiter, &[DEFAULT], 1, "allowed: allowed 0/5 near");
    let verdict = with_descriptors(&[DEFAULT], |it| limiter.check_now("test", it, 1)).unwrap();
    assert_eq!(verdict.time(), Some(NOON));
    assert_eq!(
        verdict.retry(),
        Some(Retry::After(Duration::from_mins(1))),
        "the node's own word, not the policy's"
    );
}

#[test]
fn a_limit_that_needs_no_store_is_decided_whatever_its_policy() {
    let limiter = alone();
    check_alone(&limiter, &[OF_NODE], 5, "allowed: allowed 0/5 near");
    check_alone(&limiter, &[OF_NODE], 1, "refused: refused 0/5");
}

#[test]
fn a_split_limit_without_a_share_goes_by_its_policy() {
    check(&[Ask::of(&[("split", "x")])], "refused: refused undecided");
}

#[test]
fn policies_and_the_node_decide_all_or_none() {
    let limiter = alone();
    let both = [DEFAULT, DENY];
    check_alone(
        &limiter,
        &both,
        2,
        "refused: allowed 5/5, refused undecided",
    );
    // Nothing was charged.
    let both = [DEFAULT, ALLOW];
    check_alone(
        &limiter,
        &both,
        5,
        "allowed: allowed 0/5 near, allowed undecided",
    );
    check_alone(
        &limiter,
        &both,
        1,
        "refused: refused 0/5, allowed undecided",
    );
}

#[test]
fn every_match_charges_the_node_beside_a_refusal() {
    let limiter = alone_with(LimiterConfig {
        charging: Charging::EveryMatch,
        ..LimiterConfig::default()
    });
    let both = [DEFAULT, DENY];
    check_alone(
        &limiter,
        &both,
        2,
        "refused: allowed 3/5, refused undecided",
    );
    check_alone(
        &limiter,
        &both,
        2,
        "refused: allowed 1/5, refused undecided",
    );
}

#[test]
fn one_quota_limit_is_enough_whoever_speaks_for_it() {
    let limiter = alone();
    let refusing = [QUOTA_DENY, QUOTA_LOCAL];
    check_alone(
        &limiter,
        &refusing,
        5,
        "allowed: refused undecided, allowed 0/5 near",
    );
    check_alone(
        &limiter,
        &refusing,
        1,
        "refused: refused undecided, refused 0/5",
    );
    let admitting = [QUOTA_ALLOW, QUOTA_LOCAL];
    check_alone(
        &limiter,
        &admitting,
        1,
        "allowed: allowed undecided, refused 0/5",
    );
    // All quota limits refuse by policy: the others are not charged.
    let refused = [QUOTA_DENY, DEFAULT];
    check_alone(
        &limiter,
        &refused,
        1,
        "refused: refused undecided, allowed 5/5",
    );
}

#[test]
fn a_policy_in_shadow_mode_refuses_nobody_alone() {
    let limiter = alone();
    let both = [SHADOW, DEFAULT];
    check_alone(
        &limiter,
        &both,
        1,
        "allowed: allowed undecided shadowed, allowed 4/5",
    );
}

#[test]
fn a_limit_that_came_with_the_request_is_held_by_the_node() {
    let limiter = alone();
    let own = [DENY.limit(2, Duration::from_secs(1))];
    check_alone(&limiter, &own, 2, "allowed: allowed 0/2 near");
    check_alone(&limiter, &own, 1, "refused: refused 0/2");
}

#[test]
fn what_operators_ask_of_a_failed_store_is_told_not_guessed() {
    let limiter = alone();
    let entries = [Entry {
        key: "default",
        value: "x",
    }];
    check_alone(&limiter, &[DEFAULT], 1, "allowed: allowed 4/5");
    let failed = KeyError::Store(ERROR);
    let lookup = wait(limiter.lookup("test", &entries));
    assert_eq!(lookup.err(), Some(failed.clone()));
    assert_eq!(wait(limiter.reset("test", &entries)), Err(failed.clone()));
    assert_eq!(
        wait(limiter.grant("test", &entries, 1)),
        Err(failed.clone())
    );
    let ban = NewBan {
        term: BanTerm::UntilLifted,
        reason: None,
    };
    assert_eq!(wait(limiter.ban("test", &entries, ban)), Err(failed));
    // And none of it changed a thing.
    check_alone(&limiter, &[DEFAULT], 1, "allowed: allowed 3/5");
}
