//! How a request with several limits is charged, and who decides it.

use std::time::Duration;

use tidegate_limiter::{Charging, LimiterConfig, Retry};

use crate::fixture::{Ask, ask, ask_hits, check, limiter, limiter_with, text};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5}
  - key: site
    rate_limit: {unit: hour, requests_per_unit: 3}
";

const USER: Ask<'_> = Ask::of(&[("user", "alice")]);
const SITE: Ask<'_> = Ask::of(&[("site", "shop")]);

const EVERY_MATCH: LimiterConfig = LimiterConfig {
    charging: Charging::EveryMatch,
    ..LimiterConfig::DEFAULT
};

#[test]
fn all_or_none_charges_nothing_on_refusal() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[SITE], 3);
    check(&limiter, &[USER, SITE], "refused: allowed 5/5, refused 0/3");
    check(&limiter, &[USER], "allowed: allowed 4/5");
}

#[test]
fn every_match_charges_each_limit_alone() {
    let limiter = limiter_with(RULES, EVERY_MATCH);
    ask_hits(&limiter, &[SITE], 3);
    check(&limiter, &[USER, SITE], "refused: allowed 4/5, refused 0/3");
    check(&limiter, &[USER], "allowed: allowed 3/5");
}

#[test]
fn the_domain_has_the_last_word_on_charging() {
    let rules = format!("{RULES}charging: all_or_none\n");
    let limiter = limiter_with(&rules, EVERY_MATCH);
    ask_hits(&limiter, &[SITE], 3);
    check(&limiter, &[USER, SITE], "refused: allowed 5/5, refused 0/3");
}

#[test]
fn retry_after_is_that_of_the_limit_that_refuses_longest() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[SITE], 3);
    ask_hits(&limiter, &[USER], 5);
    let verdict = ask(&limiter, &[USER, SITE]);
    assert_eq!(verdict.retry(), Some(Retry::After(Duration::from_hours(1))));
    assert_eq!(verdict.deciding().unwrap().quota().unwrap().limit(), 3);
    // A cost that never fits outlasts any wait.
    let never = ask_hits(&limiter, &[USER, SITE], 4);
    assert_eq!(never.retry(), Some(Retry::Never));
}

#[test]
fn limits_of_one_rule_are_charged_together() {
    let limiter = limiter(
        "
domain: test
descriptors:
  - key: user
    rate_limits:
      - {unit: second, requests_per_unit: 2, name: burst}
      - {unit: hour, requests_per_unit: 3, name: quota}
",
    );
    check(&limiter, &[USER], "allowed: allowed 1/2");
    check(&limiter, &[USER], "allowed: allowed 0/2 near");
    let refused = ask(&limiter, &[USER]);
    assert_eq!(text(&refused), "refused: refused 0/2");
    let limits: Vec<_> = refused
        .limits()
        .map(|it| {
            (
                it.name().unwrap(),
                it.decision().unwrap().remaining,
                it.is_refused(),
            )
        })
        .collect();
    assert_eq!(limits, [("burst", 0, true), ("quota", 1, false)]);
}
