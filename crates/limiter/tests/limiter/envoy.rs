//! `charging: every_match` with `looks_at_limit: allow` behaves as envoyproxy/ratelimit does, case by case.

use std::time::Duration;

use tidegate_limiter::{Hits, LimiterConfig, LimiterError, LooksAtLimit, Retry};

use crate::fixture::{
    Ask, TestLimiter, advance, ask, ask_hits, check, limiter_with, rules, text, try_ask,
};

const RULES: &str = "
domain: test
charging: every_match
descriptors:
  - key: key
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: other
    rate_limit: {unit: hour, requests_per_unit: 20}
  - key: never
    rate_limit: {unit: minute, requests_per_unit: 0}
";

const KEY: Ask<'_> = Ask::of(&[("key", "a")]);
const OTHER: Ask<'_> = Ask::of(&[("other", "a")]);
const NEVER: Ask<'_> = Ask::of(&[("never", "a")]);
const LOOK: Ask<'_> = KEY.hits(Hits::Take(0));

fn limiter(rules: &str) -> TestLimiter {
    let config = LimiterConfig {
        looks: LooksAtLimit::Allow,
        ..LimiterConfig::DEFAULT
    };
    limiter_with(rules, config)
}

#[track_caller]
fn check_hits(limiter: &TestLimiter, asks: &[Ask<'_>], hits: u64, expected: &str) {
    assert_eq!(text(&ask_hits(limiter, asks, hits)), expected);
}

#[test]
fn exactly_the_limit_passes() {
    let limiter = limiter(RULES);
    check_hits(&limiter, &[KEY], 10, "allowed: allowed 0/10 near");
    check(&limiter, &[KEY], "refused: refused 0/10");
}

#[test]
fn a_request_that_crosses_is_refused_whole_but_counted() {
    let limiter = limiter(RULES);
    check_hits(&limiter, &[KEY], 8, "allowed: allowed 2/10");
    check_hits(&limiter, &[KEY], 5, "refused: refused 0/10");
    // 13 are counted, so not even the two that were left fit now.
    check(&limiter, &[KEY], "refused: refused 0/10");
}

#[test]
fn a_look_is_refused_only_above_the_limit() {
    let limiter = limiter(RULES);
    check_hits(&limiter, &[KEY], 10, "allowed: allowed 0/10 near");
    check(&limiter, &[LOOK], "allowed: allowed 0/10 near");
    check(&limiter, &[KEY], "refused: refused 0/10");
    check(&limiter, &[LOOK], "refused: refused 0/10");
}

#[test]
fn windows_begin_at_multiples_of_the_unit() {
    let limiter = limiter(RULES);
    advance(&limiter, Duration::from_secs(59));
    check_hits(&limiter, &[KEY], 10, "allowed: allowed 0/10 near");
    let refused = ask(&limiter, &[KEY]);
    assert_eq!(refused.retry(), Some(Retry::After(Duration::from_secs(1))));
    advance(&limiter, Duration::from_secs(1));
    check_hits(&limiter, &[KEY], 10, "allowed: allowed 0/10 near");
}

#[test]
fn the_time_until_reset_runs_from_the_whole_unit_down_and_is_never_zero() {
    let limiter = limiter(RULES);
    let reset = || {
        ask(&limiter, &[LOOK])
            .deciding()
            .unwrap()
            .decision()
            .unwrap()
            .reset_after
    };
    assert_eq!(reset(), Duration::from_mins(1));
    advance(&limiter, Duration::from_secs(59));
    assert_eq!(reset(), Duration::from_secs(1));
    advance(&limiter, Duration::from_secs(1));
    assert_eq!(reset(), Duration::from_mins(1));
}

#[test]
fn every_descriptor_is_counted_even_when_one_is_over() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[KEY], 10);
    check(
        &limiter,
        &[KEY, OTHER],
        "refused: refused 0/10, allowed 19/20",
    );
    check(
        &limiter,
        &[KEY, OTHER],
        "refused: refused 0/10, allowed 18/20",
    );
    check(&limiter, &[OTHER], "allowed: allowed 17/20");
}

#[test]
fn the_same_descriptor_twice_is_counted_twice() {
    let limiter = limiter(RULES);
    check(&limiter, &[KEY, KEY], "allowed: allowed 9/10, allowed 8/10");
    ask_hits(&limiter, &[KEY], 7);
    check(
        &limiter,
        &[KEY, KEY],
        "refused: allowed 0/10 near, refused 0/10",
    );
}

#[test]
fn a_limit_of_zero_refuses_all_but_a_look() {
    let limiter = limiter(RULES);
    check(
        &limiter,
        &[NEVER.hits(Hits::Take(0))],
        "allowed: allowed 0/0",
    );
    check(&limiter, &[NEVER], "refused: refused 0/0");
    assert_eq!(ask(&limiter, &[NEVER]).retry(), Some(Retry::Never));
}

#[test]
fn a_changed_limit_applies_to_the_counts_of_the_window() {
    let limiter = limiter(RULES);
    check_hits(&limiter, &[KEY], 8, "allowed: allowed 2/10");
    limiter.replace_rules(rules(
        &RULES.replace("requests_per_unit: 10", "requests_per_unit: 5"),
    ));
    check(&limiter, &[KEY], "refused: refused 0/5");
    limiter.replace_rules(rules(
        &RULES.replace("requests_per_unit: 10", "requests_per_unit: 12"),
    ));
    // The refused one was counted: 9 before this one.
    check(&limiter, &[KEY], "allowed: allowed 2/12 near");
}

#[test]
fn what_makes_no_sense_is_told_in_their_words() {
    let limiter = limiter(RULES);
    let error = |domain, asks: &[Ask<'_>]| -> LimiterError {
        try_ask(&limiter, domain, asks, 1).unwrap_err()
    };
    assert_eq!(
        error("", &[KEY]).to_string(),
        "rate limit domain must not be empty"
    );
    let empty = "rate limit descriptor list must not be empty";
    assert_eq!(error("test", &[]).to_string(), empty);
    // A descriptor without entries is legal.
    check(&limiter, &[Ask::of(&[])], "allowed: allowed free");
}
