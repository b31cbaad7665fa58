//! Postpaid limits: looks, and debits that are always charged.

use tidegate_limiter::{Charging, Hits, LimiterConfig};

use crate::fixture::{Ask, ask, check, limiter, limiter_with};

const RULES: &str = "
domain: test
descriptors:
  - key: window
    rate_limit: {unit: minute, requests_per_unit: 20, postpaid: true}
  - key: bucket
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: token_bucket, postpaid: true}
  - key: log
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: sliding_log, postpaid: true}
  - key: counter
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: sliding_counter, postpaid: true}
  - key: sub_windows
    rate_limit: {unit: minute, requests_per_unit: 20, algorithm: sliding_counter, sub_windows: 6, postpaid: true}
  - key: requests
    rate_limit: {unit: minute, requests_per_unit: 1}
";

const EVERY_MATCH: LimiterConfig = LimiterConfig {
    charging: Charging::EveryMatch,
    ..LimiterConfig::DEFAULT
};

/// The report: 420 hits of 20, because a debit of 7 at 14 of 20 was denied and not counted.
#[test]
fn peek_then_debit_ends_for_costs_that_do_not_fit() {
    for config in [LimiterConfig::DEFAULT, EVERY_MATCH] {
        for key in ["window", "bucket", "log", "counter", "sub_windows"] {
            let limiter = limiter_with(RULES, config);
            let entries = [(key, "a")];
            let caller = Ask::of(&entries);
            let mut used = 0;
            for _ in 0..60 {
                if ask(&limiter, &[caller.hits(Hits::Take(0))]).is_allowed() {
                    ask(&limiter, &[caller.hits(Hits::Take(7))]);
                    used += 7;
                }
            }
            assert_eq!(used, 21, "{key}, {config:?}");
        }
    }
}

/// The tokens are used already, whatever another limit says.
#[test]
fn a_debit_is_charged_when_another_limit_denies() {
    let limiter = limiter(RULES);
    let tokens = Ask::of(&[("window", "a")]);
    let requests = Ask::of(&[("requests", "a")]);
    assert!(ask(&limiter, &[requests]).is_allowed());
    assert!(!ask(&limiter, &[requests, tokens.hits(Hits::Take(5))]).is_allowed());
    check(
        &limiter,
        &[tokens.hits(Hits::Take(0))],
        "allowed: allowed 15/20",
    );
    // The other way round, the debit that does not fit keeps the other limit from being charged.
    let other = Ask::of(&[("requests", "b")]);
    assert!(!ask(&limiter, &[other, tokens.hits(Hits::Take(30))]).is_allowed());
    check(
        &limiter,
        &[other.hits(Hits::Take(0))],
        "allowed: allowed 1/1",
    );
    // A denied look, too, lets the debit of another descriptor be charged.
    let bucket = Ask::of(&[("bucket", "a")]);
    assert!(
        !ask(
            &limiter,
            &[tokens.hits(Hits::Take(0)), bucket.hits(Hits::Take(4))]
        )
        .is_allowed()
    );
    check(
        &limiter,
        &[bucket.hits(Hits::Take(0))],
        "allowed: allowed 16/20",
    );
}

#[test]
fn a_refund_repays() {
    let limiter = limiter(RULES);
    let tokens = Ask::of(&[("window", "a")]);
    ask(&limiter, &[tokens.hits(Hits::Take(25))]);
    check(
        &limiter,
        &[tokens.hits(Hits::Take(0))],
        "refused: refused 0/20",
    );
    ask(&limiter, &[tokens.hits(Hits::Refund(10))]);
    check(
        &limiter,
        &[tokens.hits(Hits::Take(0))],
        "allowed: allowed 5/20",
    );
}
