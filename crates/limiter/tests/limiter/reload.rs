//! Rules that are replaced while their counters live on.

use std::thread;

use tidegate_limiter::LimiterConfig;
use tidegate_store::StoreError;

use crate::fixture::{Ask, ask_hits, check, limiter, limiter_with, rules, text};

const USER: Ask<'_> = Ask::of(&[("user", "alice")]);

fn with(rate_limit: &str) -> String {
    format!("domain: test\ndescriptors:\n  - key: user\n    rate_limit: {{{rate_limit}}}\n")
}

/// Uses 4 of 5 per minute, puts `rate_limit` in force, and compares the next verdict.
#[track_caller]
fn check_replaced(rate_limit: &str, expected: &str) {
    let limiter = limiter(&with("unit: minute, requests_per_unit: 5"));
    ask_hits(&limiter, &[USER], 4);
    limiter.replace_rules(rules(&with(rate_limit)));
    check(&limiter, &[USER], expected);
}

#[test]
fn a_changed_limit_applies_to_the_old_counts() {
    check_replaced(
        "unit: minute, requests_per_unit: 5",
        "allowed: allowed 0/5 near",
    );
    check_replaced("unit: minute, requests_per_unit: 9", "allowed: allowed 4/9");
    check_replaced("unit: minute, requests_per_unit: 4", "refused: refused 0/4");
    check_replaced("unit: minute, requests_per_unit: 2", "refused: refused 0/2");
}

#[test]
fn a_changed_window_or_algorithm_starts_anew() {
    check_replaced("unit: hour, requests_per_unit: 5", "allowed: allowed 4/5");
    check_replaced("window: 90s, limit: 5", "allowed: allowed 4/5");
    let bucket = "unit: minute, requests_per_unit: 5, algorithm: token_bucket";
    check_replaced(bucket, "allowed: allowed 4/5");
}

/// Rules for which the store has no numbers left are rejected while counters of earlier rules live,
/// and fit when those have expired.
#[test]
fn rules_that_do_not_fit_the_store_are_rejected() {
    let minutes = |first: u64, count: u64| {
        let rule =
            |it: u64| format!("  - {{key: k{it}, rate_limit: {{window: {it}m, limit: 1}}}}\n");
        let all: String = (first..first + count).map(rule).collect();
        format!("domain: test\ndescriptors:\n{all}")
    };
    let limiter = limiter("domain: test\ndescriptors:\n  - key: x\n");
    for (first, count) in [(1, 512), (513, 510)] {
        let set = minutes(first, count);
        limiter.try_replace_rules(rules(&set)).expect("they fit");
        for it in first..first + count {
            let key = format!("k{it}");
            check(
                &limiter,
                &[Ask::of(&[(&key, "a")])],
                "allowed: allowed 0/1 near",
            );
        }
    }
    let third = minutes(2_000, 3);
    let error = limiter
        .try_replace_rules(rules(&third))
        .expect_err("all windows are in use");
    assert_eq!(error, StoreError::TooManyWindows { most: 1_022 });
    check(
        &limiter,
        &[Ask::of(&[("k1000", "a")])],
        "refused: refused 0/1",
    );
    crate::fixture::advance(&limiter, std::time::Duration::from_hours(24 * 3));
    limiter
        .try_replace_rules(rules(&third))
        .expect("they fit now");
    check(
        &limiter,
        &[Ask::of(&[("k2000", "a")])],
        "allowed: allowed 0/1 near",
    );
}

#[test]
fn the_same_window_in_other_words_is_the_same_limit() {
    check_replaced("window: 60s, limit: 5", "allowed: allowed 0/5 near");
}

#[test]
fn a_lowered_bucket_is_clamped() {
    let bucket = |limit| {
        with(&format!(
            "unit: minute, requests_per_unit: {limit}, algorithm: token_bucket"
        ))
    };
    let limiter = limiter(&bucket(60));
    ask_hits(&limiter, &[USER], 60);
    limiter.replace_rules(rules(&bucket(6)));
    check(&limiter, &[USER], "refused: refused 0/6");
    // No longer than an empty bucket of the new size takes to drip one token.
    crate::fixture::advance(&limiter, std::time::Duration::from_secs(10));
    check(&limiter, &[USER], "allowed: allowed 0/6 near");
}

#[test]
fn the_old_rules_come_back_and_a_verdict_keeps_them() {
    let old = with("unit: minute, requests_per_unit: 5");
    let limiter = limiter_with(&old, LimiterConfig::DEFAULT);
    let verdict = ask_hits(&limiter, &[USER], 1);
    let returned = limiter.replace_rules(rules("domain: other\ndescriptors:\n  - key: x\n"));
    assert!(returned.domain("test").is_some());
    assert!(limiter.rules().domain("test").is_none());
    check(&limiter, &[USER], "allowed: allowed free");
    // It was made by the old rules and can still name them.
    assert_eq!(text(&verdict), "allowed: allowed 4/5");
    assert_eq!(verdict.deciding().unwrap().quota().unwrap().limit(), 5);
}

/// Rules are swapped under the feet of many checks; the counter is one and the same all the while.
#[test]
fn no_check_is_lost_or_doubled_while_rules_are_replaced() {
    const LIMIT: usize = 500;
    let user = format!("  - key: user\n    rate_limit: {{unit: year, limit: {LIMIT}}}\n");
    let before = "  - key: another\n    rate_limit: {unit: day, limit: 1}\n";
    let sets = [
        format!("domain: test\ndescriptors:\n{user}"),
        format!("domain: test\ndescriptors:\n{before}{user}"),
    ];
    let limiter = limiter(&sets[0]);
    let admitted = || {
        (0..LIMIT)
            .filter(|_| ask_hits(&limiter, &[USER], 1).is_allowed())
            .count()
    };
    let total: usize = thread::scope(|scope| {
        let callers = [scope.spawn(admitted), scope.spawn(admitted)];
        for set in sets.iter().cycle().take(50) {
            limiter.replace_rules(rules(set));
        }
        callers.map(|caller| caller.join().unwrap()).iter().sum()
    });
    assert_eq!(total, LIMIT);
}
