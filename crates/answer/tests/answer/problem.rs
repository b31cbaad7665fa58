//! The body of a refusal.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_answer::{Dialect, problem};
use tidegate_limiter::{BanTerm, Hits, Limiter, LimiterConfig, Verdict};

use crate::broken::Broken;
use crate::fixture::{ask, ban, compiled, header, limiter, lines};

const RULES: &str = r#"
- {key: login, rate_limit: {unit: second, requests_per_unit: 2, name: "the \"login\" page"}}
- {key: api, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: banned, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: monthly, quota_mode: true, rate_limit: {unit: month, requests_per_unit: 1}}
- {key: bought, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 5}}
"#;

fn body(verdict: &Verdict) -> Value {
    serde_json::from_slice(&problem(verdict, 429, None).unwrap()).unwrap()
}

/// Asks `keys` at `cost` so often that it is refused, and compares a part of the body.
#[track_caller]
fn check(keys: &[&str], cost: u64, part: &str, expected: &Value) {
    let limiter = limiter(RULES);
    let mut verdicts = (0..10).map(|_| ask(&limiter, keys, Hits::Take(cost)));
    let refused = verdicts.find(|verdict| !verdict.is_allowed()).unwrap();
    assert_eq!(&body(&refused)[part], expected);
}

#[test]
fn it_says_which_limits_refuse_and_when_to_come_back() {
    let detail = r#"the limit "the \"login\" page" is used up; come back in 1 second"#;
    check(&["login"], 1, "detail", &json!(detail));
    check(&["login"], 1, "retry-after", &json!(1));
    check(
        &["login"],
        1,
        "violated-policies",
        &json!(["the \"login\" page"]),
    );
    let detail = r#"the limit "per-minute" is used up; come back in 60 seconds"#;
    check(&["login", "api"], 1, "detail", &json!(detail));
    check(
        &["login", "api"],
        1,
        "violated-policies",
        &json!(["per-minute"]),
    );
}

#[test]
fn it_says_why_no_wait_helps() {
    let detail = r#"the limit "per-day" lets nothing pass"#;
    check(&["banned"], 1, "detail", &json!(detail));
    check(&["banned"], 1, "retry-after", &Value::Null);
    let detail = r#"the request costs more than the limit "per-minute" ever lets pass at once"#;
    check(&["api"], 2, "detail", &json!(detail));
    check(&["api"], 2, "retry-after", &Value::Null);
}

#[test]
fn a_quota_limit_refuses_only_with_all_others() {
    let both = json!(["per-month", "per-year"]);
    check(&["monthly", "bought"], 1, "violated-policies", &both);
    // The year's is left when the minute's refuses.
    let limiter = limiter(RULES);
    ask(&limiter, &["monthly"], Hits::OfRequest);
    ask(&limiter, &["api"], Hits::OfRequest);
    let refused = ask(&limiter, &["monthly", "bought", "api"], Hits::OfRequest);
    assert_eq!(body(&refused)["violated-policies"], json!(["per-minute"]));
}

#[test]
fn who_is_banned_is_told_until_when() {
    let (minute, lifted) = (BanTerm::For(Duration::from_mins(1)), BanTerm::UntilLifted);
    let ends = "the caller is banned; come back in 60 seconds";
    let lasts = "the caller is banned until the ban is lifted";
    for (term, detail, retry_after) in [(minute, ends, Some(60)), (lifted, lasts, None)] {
        let limiter = limiter(RULES);
        ban(&limiter, "login", term);
        let refused = ask(&limiter, &["login", "api"], Hits::OfRequest);
        let body = body(&refused);
        assert_eq!(
            body["type"],
            json!("https://iana.org/assignments/http-problem-types#abnormal-usage-detected")
        );
        assert_eq!(body["detail"], json!(detail));
        assert_eq!(body["retry-after"].as_u64(), retry_after);
        assert_eq!(body.get("violated-policies"), None);
        let told = header(&refused, Dialect::XRateLimit, "retry-after");
        assert_eq!(told, retry_after.map(|seconds| seconds.to_string()));
    }
}

#[test]
fn where_the_store_failed_nobody_knows_of_a_quota() {
    let rules = "- {key: a, rate_limit: {unit: day, requests_per_unit: 1, on_failure: deny, name: daily}}\n";
    let limiter = Limiter::new(Broken, compiled(rules), LimiterConfig::default());
    let refused = ask(&limiter, &["a"], Hits::OfRequest);
    let expected = json!({
        "title": "Too Many Requests",
        "status": 429,
        "detail": "the limits could not be checked, and the rules refuse what is not checked; \
                   come back in 1 second",
        "violated-policies": ["daily"],
        "retry-after": 1,
    });
    assert_eq!(body(&refused), expected);
    let expected = ["x-ratelimit-retry-after: 1", "retry-after: 1"];
    assert_eq!(lines(&refused, &Dialect::XRateLimit.into()), expected);
    for dialect in [Dialect::GitHub, Dialect::Envoy, Dialect::Ietf06] {
        assert_eq!(lines(&refused, &dialect.into()), ["retry-after: 1"]);
    }
    // The policy stands, whatever is left of it.
    let expected = ["ratelimit-policy: \"daily\";q=1;w=86400", "retry-after: 1"];
    assert_eq!(lines(&refused, &Dialect::Ietf.into()), expected);
}

#[test]
fn the_status_is_the_one_it_goes_out_with() {
    let limiter = limiter(RULES);
    let refused = ask(&limiter, &["banned"], Hits::OfRequest);
    let body: Value = serde_json::from_slice(&problem(&refused, 403, None).unwrap()).unwrap();
    assert_eq!(body["status"], json!(403));
}

#[test]
fn what_may_pass_is_no_problem() {
    let verdict = ask(&limiter(RULES), &["login"], Hits::OfRequest);
    assert_eq!(problem(&verdict, 200, None), None);
}

#[test]
fn the_decision_has_a_uri_if_it_is_kept() {
    let refused = ask(&limiter(RULES), &["banned"], Hits::OfRequest);
    let urn = "urn:tidegate:decision:3f9a0c1b2d4e5f60";
    let problem = problem(&refused, 429, Some(urn)).unwrap();
    let with_urn: Value = serde_json::from_slice(&problem).unwrap();
    assert_eq!(with_urn["instance"], urn);
    assert_eq!(body(&refused).get("instance"), None);
}
