//! Matching, costs, keys, and requests that make no sense.

use std::time::Duration;

use tidegate_limiter::{Hits, LimiterError, Origin, Retry};

use crate::fixture::{Ask, advance, ask, ask_hits, check, limiter, text, try_ask};

const RULES: &str = "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 5}
  - key: path
    value: /login
    rate_limit: {unit: hour, requests_per_unit: 3}
    descriptors:
      - key: user
        rate_limit: {unit: hour, requests_per_unit: 2}
  - key: free
";

const ALICE: Ask<'_> = Ask::of(&[("user", "alice")]);
const BOB: Ask<'_> = Ask::of(&[("user", "bob")]);
const LOGIN: Ask<'_> = Ask::of(&[("path", "/login")]);

#[test]
fn a_limit_admits_as_many_as_it_says() {
    let limiter = limiter(RULES);
    for remaining in ["4/5", "3/5", "2/5", "1/5", "0/5"] {
        assert!(text(&ask(&limiter, &[ALICE])).contains(remaining));
    }
    check(&limiter, &[ALICE], "refused: refused 0/5");
    check(&limiter, &[BOB], "allowed: allowed 4/5");
}

#[test]
fn retry_after_is_exact() {
    let limiter = limiter(RULES);
    advance(&limiter, Duration::from_millis(250));
    ask_hits(&limiter, &[ALICE], 5);
    let refused = ask(&limiter, &[ALICE]);
    assert_eq!(
        refused.retry(),
        Some(Retry::After(Duration::from_millis(59_750)))
    );
    advance(&limiter, Duration::from_nanos(59_749_999_999));
    check(&limiter, &[ALICE], "refused: refused 0/5");
    advance(&limiter, Duration::from_nanos(1));
    check(&limiter, &[ALICE], "allowed: allowed 4/5");
}

#[test]
fn a_cost_that_never_fits_says_so() {
    let limiter = limiter(RULES);
    let refused = ask_hits(&limiter, &[ALICE], 6);
    assert_eq!(refused.retry(), Some(Retry::Never));
    check(&limiter, &[ALICE], "allowed: allowed 4/5");
}

#[test]
fn what_no_rule_matches_is_free() {
    let limiter = limiter(RULES);
    check(
        &limiter,
        &[Ask::of(&[("other", "x")])],
        "allowed: allowed free",
    );
    check(&limiter, &[Ask::of(&[])], "allowed: allowed free");
    check(
        &limiter,
        &[Ask::of(&[("free", "x")])],
        "allowed: allowed free",
    );
    check(
        &limiter,
        &[ALICE, Ask::of(&[("other", "x")])],
        "allowed: allowed 4/5, allowed free",
    );
}

#[test]
fn an_unknown_domain_has_no_limits_and_is_counted() {
    let limiter = limiter(RULES);
    let bring_own = ALICE.limit(0, Duration::from_secs(1));
    let verdict = try_ask(&limiter, "unheard_of", &[ALICE, bring_own], 1).unwrap();
    assert_eq!(text(&verdict), "allowed: allowed free, allowed free");
    assert_eq!(limiter.unknown_domains(), 1);
    ask(&limiter, &[ALICE]);
    assert_eq!(limiter.unknown_domains(), 1);
}

#[test]
fn hits_count_and_none_is_one() {
    let limiter = limiter(RULES);
    assert_eq!(
        text(&ask_hits(&limiter, &[ALICE], 3)),
        "allowed: allowed 2/5"
    );
    assert_eq!(
        text(&ask_hits(&limiter, &[ALICE], 0)),
        "allowed: allowed 1/5"
    );
    // All or none: what does not fit costs nothing.
    assert_eq!(
        text(&ask_hits(&limiter, &[ALICE], 2)),
        "refused: refused 1/5"
    );
    check(&limiter, &[ALICE], "allowed: allowed 0/5 near");
}

#[test]
fn hits_of_a_descriptor_win_over_those_of_the_request() {
    let limiter = limiter(RULES);
    let asks = [ALICE.hits(Hits::Take(2)), BOB];
    assert_eq!(
        text(&ask_hits(&limiter, &asks, 4)),
        "allowed: allowed 3/5, allowed 1/5"
    );
}

#[test]
fn zero_hits_look_without_consuming() {
    let limiter = limiter(RULES);
    let look = ALICE.hits(Hits::Take(0));
    ask_hits(&limiter, &[ALICE], 4);
    check(&limiter, &[look], "allowed: allowed 1/5");
    check(&limiter, &[look], "allowed: allowed 1/5");
    check(&limiter, &[BOB.hits(Hits::Take(0))], "allowed: allowed 5/5");
}

#[test]
fn a_refund_gives_back_and_is_never_refused() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[ALICE], 5);
    check(
        &limiter,
        &[ALICE.hits(Hits::Refund(2))],
        "allowed: allowed 2/5",
    );
    check(
        &limiter,
        &[ALICE.hits(Hits::Refund(100))],
        "allowed: allowed 5/5",
    );
    // Beside a descriptor that refuses, the refund holds.
    ask_hits(&limiter, &[ALICE, BOB], 5);
    let asks = [ALICE.hits(Hits::Refund(1)), BOB];
    check(&limiter, &asks, "refused: allowed 1/5, refused 0/5");
    check(&limiter, &[ALICE], "allowed: allowed 0/5 near");
}

#[test]
fn the_same_counter_named_twice_adds_up() {
    let limiter = limiter(RULES);
    ask_hits(&limiter, &[ALICE], 4);
    // Two do not fit into the one that is left, so neither is charged.
    assert!(!ask(&limiter, &[ALICE, ALICE]).is_allowed());
    check(&limiter, &[ALICE], "allowed: allowed 0/5 near");
}

#[test]
fn values_that_do_not_tell_callers_apart_share_a_counter() {
    let limiter = limiter(RULES);
    check(&limiter, &[LOGIN], "allowed: allowed 2/3");
    let by_alice = Ask::of(&[("path", "/login"), ("user", "alice")]);
    let by_bob = Ask::of(&[("path", "/login"), ("user", "bob")]);
    check(&limiter, &[by_alice], "allowed: allowed 1/2");
    check(&limiter, &[by_bob], "allowed: allowed 1/2");
}

#[test]
fn keys_are_structured() {
    let limiter = limiter(
        "
domain: test
descriptors:
  - key: a
    descriptors:
      - key: b
        rate_limit: {unit: minute, requests_per_unit: 5}
",
    );
    check(
        &limiter,
        &[Ask::of(&[("a", "x_y"), ("b", "z")])],
        "allowed: allowed 4/5",
    );
    check(
        &limiter,
        &[Ask::of(&[("a", "x"), ("b", "y_z")])],
        "allowed: allowed 4/5",
    );
    check(
        &limiter,
        &[Ask::of(&[("a", "x_y_z"), ("b", "")])],
        "allowed: allowed 4/5",
    );
    check(
        &limiter,
        &[Ask::of(&[("a", "x_y"), ("b", "z")])],
        "allowed: allowed 3/5",
    );
}

#[test]
fn use_above_the_near_ratio_is_marked() {
    let limiter = limiter(
        "
domain: test
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 20}
",
    );
    assert_eq!(
        text(&ask_hits(&limiter, &[ALICE], 16)),
        "allowed: allowed 4/20"
    );
    check(&limiter, &[ALICE], "allowed: allowed 3/20 near");
    assert_eq!(
        text(&ask_hits(&limiter, &[ALICE], 3)),
        "allowed: allowed 0/20 near"
    );
    check(&limiter, &[ALICE], "refused: refused 0/20");
}

#[test]
fn the_verdict_names_the_rule_that_decided() {
    let limiter = limiter(RULES);
    let verdict = ask(&limiter, &[ALICE, LOGIN]);
    let deciding = verdict.deciding().unwrap();
    let Origin::Rule { rule, limit } = deciding.origin() else {
        panic!("not a rule's limit")
    };
    assert_eq!(rule.path(), "path=/login");
    assert!(
        limit.description().starts_with("3 per hour"),
        "{}",
        limit.description()
    );
    assert_eq!(deciding.quota().unwrap().limit(), 3);
}

#[test]
fn requests_that_make_no_sense_are_errors() {
    let limiter = limiter(RULES);
    let error = |domain, asks: &[Ask<'_>]| try_ask(&limiter, domain, asks, 1).unwrap_err();
    assert_eq!(error("", &[ALICE]), LimiterError::EmptyDomain);
    assert_eq!(error("test", &[]), LimiterError::NoDescriptors);
    assert_eq!(
        error("test", &[ALICE; 65]),
        LimiterError::TooManyLimits { most: 64 }
    );
    let most = tidegate_limiter::MAX_DESCRIPTORS;
    let too_many = vec![Ask::of(&[]); most + 1];
    assert_eq!(
        error("test", &too_many),
        LimiterError::TooManyDescriptors { most }
    );
    assert!(try_ask(&limiter, "test", &too_many[..most], 1).is_ok());
}

#[test]
fn spellings_of_one_address_share_its_counter() {
    let limiter = limiter(
        "
domain: test
descriptors:
  - key: remote_address
    cidr: [10.0.0.0/8, 2001:db8::/32]
    rate_limit: {unit: minute, requests_per_unit: 3}
",
    );
    let ask = |address: &'static str, expected| {
        check(
            &limiter,
            &[Ask::of(&[("remote_address", address)])],
            expected,
        );
    };
    ask("10.1.2.3", "allowed: allowed 2/3");
    ask("::ffff:10.1.2.3", "allowed: allowed 1/3");
    ask("::ffff:a01:203", "allowed: allowed 0/3 near");
    ask("10.1.2.3", "refused: refused 0/3");
    ask("2001:db8::7", "allowed: allowed 2/3");
    ask("2001:0DB8:0:0:0:0:0:7", "allowed: allowed 1/3");
}
