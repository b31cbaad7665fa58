//! What each dialect says.

use std::time::Duration;

use tidegate_answer::{Dialect, HeaderNames, Headers};
use tidegate_limiter::Hits;

use crate::fixture::{advance, ask, limiter, lines};

/// A limit that runs out, one that does not, and one that only counts.
const TWO_LIMITS: &str = "
- {key: login, rate_limit: {unit: minute, requests_per_unit: 2, name: login}}
- {key: api, rate_limit: {window: 1d, limit: 1000}}
- {key: new, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
";

/// Asks `n_before` times, then once more a quarter of a second later, and compares the headers.
#[track_caller]
fn check(rules: &str, n_before: usize, otherwise: impl Into<Headers>, expected: &[&str]) {
    let limiter = limiter(rules);
    let keys = ["login", "api", "new"];
    for _ in 0..n_before {
        ask(&limiter, &keys, Hits::OfRequest);
    }
    advance(&limiter, Duration::from_millis(250));
    let verdict = ask(&limiter, &keys, Hits::OfRequest);
    assert_eq!(lines(&verdict, &otherwise.into()), expected);
}

#[test]
fn x_ratelimit() {
    check(
        TWO_LIMITS,
        0,
        Dialect::XRateLimit,
        &["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"],
    );
    check(
        TWO_LIMITS,
        2,
        Dialect::XRateLimit,
        &[
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-retry-after: 60",
            "retry-after: 60",
        ],
    );
}

#[test]
fn every_dialect_but_none_marks_a_soft_admission() {
    let rules = "- {key: login, rate_limit: {unit: minute, requests_per_unit: 1, soft: 100%}}";
    for (dialect, n_marks) in [
        (Dialect::XRateLimit, 1),
        (Dialect::Ietf, 1),
        (Dialect::Ietf06, 1),
        (Dialect::GitHub, 1),
        (Dialect::Envoy, 1),
        (Dialect::None, 0),
    ] {
        let limiter = limiter(rules);
        let marks = |_| {
            let lines = lines(&ask(&limiter, &["login"], Hits::OfRequest), &dialect.into());
            lines
                .iter()
                .filter(|it| *it == "x-ratelimit-over: true")
                .count()
        };
        assert_eq!([0, 1, 2].map(marks), [0, n_marks, 0], "{dialect:?}");
    }
}

#[test]
fn ietf_tells_of_every_limit() {
    check(
        TWO_LIMITS,
        0,
        Dialect::Ietf,
        &[
            "ratelimit-policy: \"login\";q=2;w=60, \"per-day\";q=1000;w=86400",
            "ratelimit: \"login\";r=1;t=60, \"per-day\";r=999;t=43200",
        ],
    );
    check(
        TWO_LIMITS,
        2,
        Dialect::Ietf,
        &[
            "ratelimit-policy: \"login\";q=2;w=60, \"per-day\";q=1000;w=86400",
            "ratelimit: \"login\";r=0;t=60, \"per-day\";r=998;t=43200",
            "retry-after: 60",
        ],
    );
}

#[test]
fn ietf_06() {
    check(
        TWO_LIMITS,
        2,
        Dialect::Ietf06,
        &[
            "ratelimit-limit: 2",
            "ratelimit-remaining: 0",
            "ratelimit-reset: 60",
            "ratelimit-policy: 2;w=60, 1000;w=86400",
            "retry-after: 60",
        ],
    );
}

#[test]
fn github_tells_the_time_of_the_clock() {
    check(
        TWO_LIMITS,
        2,
        Dialect::GitHub,
        &[
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-used: 2",
            "x-ratelimit-reset: 1794744060",
            "x-ratelimit-resource: login",
            "retry-after: 60",
        ],
    );
}

#[test]
fn envoy_lists_every_limit() {
    check(
        TWO_LIMITS,
        0,
        Dialect::Envoy,
        &[
            "x-ratelimit-limit: 2, 2;w=60;name=\"login\", 1000;w=86400",
            "x-ratelimit-remaining: 1",
            "x-ratelimit-reset: 60",
        ],
    );
}

#[test]
fn none_says_only_when_to_come_back() {
    check(TWO_LIMITS, 0, Dialect::None, &[]);
    check(TWO_LIMITS, 2, Dialect::None, &["retry-after: 60"]);
}

#[test]
fn headers_may_have_names_of_the_operators_own() {
    let names = HeaderNames::new("X-Limit", "X-Left", "X-Reset").unwrap();
    check(
        TWO_LIMITS,
        0,
        Headers::Named(names),
        &["x-limit: 2", "x-left: 1", "x-reset: 60"],
    );
}

#[test]
fn the_rule_of_the_deciding_limit_says_which_dialect() {
    let rules = TWO_LIMITS.replace("{key: login,", "{key: login, headers: none,");
    check(&rules, 0, Dialect::Ietf, &[]);
    check(&rules, 0, Headers::Named(HeaderNames::default()), &[]);
    // The other rule does not decide, so it does not speak.
    let rules = TWO_LIMITS.replace("{key: api,", "{key: api, headers: none,");
    let expected = ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"];
    check(&rules, 0, Dialect::XRateLimit, &expected);
}

#[test]
fn without_a_limit_there_is_nothing_to_tell() {
    let limiter = limiter(TWO_LIMITS);
    for keys in [&["unknown"][..], &["new"]] {
        let verdict = ask(&limiter, keys, Hits::OfRequest);
        for dialect in Dialect::ALL {
            assert_eq!(lines(&verdict, &dialect.into()), Vec::<String>::new());
        }
    }
}

#[test]
fn where_no_wait_helps_there_is_no_retry_after() {
    let limiter = limiter(TWO_LIMITS);
    let verdict = ask(&limiter, &["login"], Hits::Take(3));
    for dialect in Dialect::ALL {
        for line in lines(&verdict, &dialect.into()) {
            assert!(!line.contains("retry-after"), "{dialect:?}: {line}");
        }
    }
}

/// A bucket of 100 a minute gets a token every 0.6 seconds: that is when there is more, though it takes
/// a minute to fill.
#[test]
fn ietf_tells_when_there_is_more_and_not_when_it_is_full() {
    let limiter = limiter(
        "- {key: a, rate_limit: {unit: minute, requests_per_unit: 100, algorithm: token_bucket}}\n",
    );
    let verdict = ask(&limiter, &["a"], Hits::Take(100));
    let expected = [
        "ratelimit-policy: \"per-minute\";q=100;w=60",
        "ratelimit: \"per-minute\";r=0;t=1",
    ];
    assert_eq!(lines(&verdict, &Dialect::Ietf.into()), expected);
}

/// A bucket may hold more than it gets in its window, but no client is told to have more than all.
#[test]
fn where_the_window_is_told_no_more_remains_than_the_limit() {
    let limiter = limiter(
        "- {key: a, rate_limit: {unit: minute, requests_per_unit: 10, algorithm: token_bucket, burst: 50}}\n",
    );
    let verdict = ask(&limiter, &["a"], Hits::OfRequest);
    let expected = ["x-ratelimit-limit: 50", "x-ratelimit-remaining: 49"];
    assert_eq!(lines(&verdict, &Dialect::XRateLimit.into()), expected);
    let expected = [
        "ratelimit-policy: \"per-minute\";q=10;w=60",
        "ratelimit: \"per-minute\";r=10;t=6",
    ];
    assert_eq!(lines(&verdict, &Dialect::Ietf.into()), expected);
}

#[test]
fn one_limit_on_two_descriptors_has_two_names() {
    let limiter = limiter(TWO_LIMITS);
    let verdict = ask(&limiter, &["login", "login", "api"], Hits::Take(0));
    let policies = lines(&verdict, &Dialect::Ietf.into()).swap_remove(0);
    assert_eq!(
        policies,
        "ratelimit-policy: \"login\";q=2;w=60, \"login-2\";q=2;w=60, \"per-day\";q=1000;w=86400"
    );
}
