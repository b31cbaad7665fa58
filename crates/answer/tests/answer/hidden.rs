//! Limits that clients are not told of (`announce: false`).

use tidegate_answer::{Dialect, Headers, Policies, problem};
use tidegate_limiter::Hits;

use crate::fixture::{ask, limiter, lines};

/// A hidden limit of two beside one of five that all may know.
const RULES: &str = "
- {key: login, rate_limit: {unit: day, requests_per_unit: 2, name: secret, announce: false}}
- {key: api, rate_limit: {unit: minute, requests_per_unit: 5, name: open}}
";

const DIALECTS: [Dialect; 6] = [
    Dialect::XRateLimit,
    Dialect::Ietf,
    Dialect::Ietf06,
    Dialect::GitHub,
    Dialect::Envoy,
    Dialect::None,
];

/// The headers of the last of so many requests, in each dialect.
fn told(rules: &str, keys: &[&str], n_requests: usize) -> Vec<Vec<String>> {
    let limiter = limiter(rules);
    for _ in 1..n_requests {
        ask(&limiter, keys, Hits::OfRequest);
    }
    let verdict = ask(&limiter, keys, Hits::OfRequest);
    let lines = |dialect: Dialect| lines(&verdict, &Headers::from(dialect));
    DIALECTS.into_iter().map(lines).collect()
}

/// Whether the hidden limit decides or not: each dialect says what it would if there were only the other.
#[test]
fn an_allowed_request_tells_of_the_others_only() {
    for n_requests in [1, 2] {
        let both = told(RULES, &["login", "api"], n_requests);
        let alone = told(RULES, &["api"], n_requests);
        assert_eq!(both, alone);
        assert!(both[0].contains(&format!("x-ratelimit-remaining: {}", 5 - n_requests)));
    }
}

#[test]
fn a_denial_tells_when_to_come_back_and_nothing_else_of_it() {
    for lines in told(RULES, &["login", "api"], 3) {
        let text = lines.join("\n");
        assert!(text.ends_with("retry-after: 43200"), "{text}");
        for part in ["secret", "86400", "limit: 2", ";q=2", "remaining: 0"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
    }
    let alone = told(RULES, &["login"], 3);
    assert_eq!(alone[1..5].concat(), vec!["retry-after: 43200"; 4]);
}

#[test]
fn a_body_does_not_name_it() {
    let limiter = limiter(RULES);
    for _ in 0..2 {
        ask(&limiter, &["login"], Hits::OfRequest);
    }
    let verdict = ask(&limiter, &["login", "api"], Hits::OfRequest);
    assert_eq!(Policies::of(&verdict).iter().count(), 1);
    let body = String::from_utf8(problem(&verdict, 429, None).unwrap()).unwrap();
    assert_eq!(
        body,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Quota Exceeded\",\"status\":429,\
         \"detail\":\"a limit is used up; come back in 43200 seconds\",\"retry-after\":43200}"
    );
}

/// If an announced limit denies too, it is the one that is told of, though the hidden one lasts longer.
#[test]
fn an_announced_denial_is_told_beside_a_hidden_one() {
    let limiter = limiter(RULES);
    for _ in 0..2 {
        ask(&limiter, &["login"], Hits::OfRequest);
    }
    for _ in 0..5 {
        ask(&limiter, &["api"], Hits::OfRequest);
    }
    let verdict = ask(&limiter, &["login", "api"], Hits::OfRequest);
    let lines = lines(&verdict, &Headers::from(Dialect::XRateLimit));
    assert_eq!(
        lines,
        [
            "x-ratelimit-limit: 5",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-retry-after: 43200",
            "retry-after: 43200",
        ]
    );
    let body = String::from_utf8(problem(&verdict, 429, None).unwrap()).unwrap();
    assert!(body.contains("\"violated-policies\":[\"open\"]"), "{body}");
}

/// A hidden limit of the same window does not show in the numbering of names.
#[test]
fn names_are_as_without_it() {
    let rules = "
- {key: login, rate_limit: {unit: minute, requests_per_unit: 2, announce: false}}
- {key: api, rate_limit: {unit: minute, requests_per_unit: 5}}
";
    let limiter = limiter(rules);
    let verdict = ask(&limiter, &["login", "api"], Hits::OfRequest);
    let policies = Policies::of(&verdict);
    let names: Vec<_> = policies.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["per-minute"]);
}
