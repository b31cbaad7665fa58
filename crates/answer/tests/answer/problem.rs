//! The body of a refusal.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_answer::problem;
use tidegate_limiter::{BanTerm, Entry, Hits, NewBan, Verdict};

use crate::fixture::{ask, limiter};

const RULES: &str = r#"
- {key: login, rate_limit: {unit: second, requests_per_unit: 2, name: "the \"login\" page"}}
- {key: api, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: banned, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: monthly, quota_mode: true, rate_limit: {unit: month, requests_per_unit: 1}}
- {key: bought, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 5}}
"#;

fn body(verdict: &Verdict) -> Value {
    serde_json::from_slice(&problem(verdict, 429).unwrap()).unwrap()
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
fn the_status_is_the_one_it_goes_out_with() {
    let limiter = limiter(RULES);
    let refused = ask(&limiter, &["banned"], Hits::OfRequest);
    let body: Value = serde_json::from_slice(&problem(&refused, 403).unwrap()).unwrap();
    assert_eq!(body["status"], json!(403));
}

#[test]
fn what_may_pass_is_no_problem() {
    let verdict = ask(&limiter(RULES), &["login"], Hits::OfRequest);
    assert_eq!(problem(&verdict, 200), None);
}

#[test]
fn a_ban_is_called_one() {
    let limiter = limiter(RULES);
    let entries = [Entry {
        key: "api",
        value: "somebody",
    }];
    let ban = |term| {
        let reason = None;
        let banned = std::pin::pin!(limiter.ban("test", &entries, NewBan { term, reason }));
        let polled = banned.poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(())));
        body(&ask(&limiter, &["api"], Hits::Take(1)))
    };
    let expected = json!({
        "title": "Too Many Requests",
        "status": 429,
        "detail": "the caller is banned; come back in 60 seconds",
        "violated-policies": [],
        "retry-after": 60,
    });
    assert_eq!(ban(BanTerm::For(Duration::from_mins(1))), expected);
    let lasting = ban(BanTerm::UntilLifted);
    assert_eq!(
        lasting["detail"],
        "the caller is banned until the ban is lifted"
    );
    assert_eq!(lasting["retry-after"], Value::Null);
}
