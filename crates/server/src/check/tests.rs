//! Questions and answers without a server.

use std::fmt::Write;

use serde_json::{Value, json};
use tidegate_limiter::{Hits, Limiter, LimiterConfig};
use tidegate_rules::{CompileOptions, Source, compile};
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

use super::{Check, CheckRequest, Checked, Fault, Json};

/// One check as text: its domain, then each descriptor with its hits.
fn text(check: &Check<'_>) -> String {
    let mut text = check.domain.to_owned();
    for descriptor in check.descriptors() {
        let entries = descriptor.entries.iter();
        let entries: Vec<_> = entries
            .map(|it| format!("{}={}", it.key, it.value))
            .collect();
        let hits = match descriptor.hits {
            Hits::OfRequest => "?".to_owned(),
            Hits::Take(cost) => format!("-{cost}"),
            Hits::Refund(refund) => format!("+{refund}"),
        };
        let _ = write!(text, " ({}){hits}", entries.join(","));
    }
    text
}

#[track_caller]
fn check_one(body: &str, expected: &str) {
    let json: Json<'_> = serde_json::from_str(body).unwrap();
    match CheckRequest::read(&json) {
        Ok(CheckRequest::One(check)) => assert_eq!(text(&check), expected, "{body}"),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn a_check_is_read_in_every_form() {
    check_one(
        r#"{"domain": "d", "descriptors": [{"user": "42"}, {"path": "/login", "ip": "::1"}]}"#,
        "d (user=42)-1 (path=/login,ip=::1)-1",
    );
    check_one(
        r#"{"cost": 3, "domain": "d", "descriptors": [[["a", "1"], ["a", "2"]]]}"#,
        "d (a=1,a=2)-3",
    );
    check_one(
        r#"{"domain": "d", "descriptors": [{"entries": {"a": "1"}, "cost": 0}, {"b": "2"}]}"#,
        "d (a=1)-0 (b=2)-1",
    );
    check_one(
        r#"{"domain": "d", "cost": 2, "descriptors": [
            {"entries": [["a", "1"]], "refund": 7}, {"entries": {"b": "2"}}]}"#,
        "d (a=1)+7 (b=2)-2",
    );
    check_one(
        r#"{"domain": "d", "refund": 2, "descriptors": [{"a": "1"}, {"entries": {"b": "2"}, "cost": 1}]}"#,
        "d (a=1)+2 (b=2)-1",
    );
}

#[test]
fn keys_may_be_named_like_our_fields() {
    check_one(
        r#"{"domain": "d", "descriptors": [{"entries": "x", "cost": "y"}]}"#,
        "d (entries=x,cost=y)-1",
    );
    check_one(
        r#"{"domain": "d", "descriptors": [{"entries": {"entries": "x"}}]}"#,
        "d (entries=x)-1",
    );
}

#[test]
fn null_is_as_good_as_absent() {
    check_one(
        r#"{"domain": "d", "cost": null, "refund": 4, "descriptors": [{"a": "\u0062"}]}"#,
        "d (a=b)+4",
    );
}

#[test]
fn a_batch_is_read_in_order() {
    let body = r#"{"checks": [
        {"domain": "a", "descriptors": [{"k": "1"}]},
        {"domain": "b", "descriptors": [{"k": "2"}], "cost": 5}]}"#;
    let json: Json<'_> = serde_json::from_str(body).unwrap();
    let Ok(CheckRequest::Batch(checks)) = CheckRequest::read(&json) else {
        panic!("no batch");
    };
    let texts: Vec<String> = checks.iter().map(text).collect();
    assert_eq!(texts, ["a (k=1)-1", "b (k=2)-5"]);
}

/// Reads a bad body and compares each fault's `pointer: detail`.
#[track_caller]
fn check_faults(body: &str, expected: &[&str]) {
    let json: Json<'_> = serde_json::from_str(body).unwrap();
    let faults = CheckRequest::read(&json).unwrap_err();
    let line = |fault: &Fault| format!("{}: {}", fault.pointer, fault.detail);
    let lines: Vec<String> = faults.shown().iter().map(line).collect();
    assert_eq!(lines, expected, "{body}");
}

#[test]
fn every_fault_is_told_with_its_place() {
    check_faults("7", &["#: must be an object, not a number"]);
    check_faults(
        "{}",
        &["#: `domain` is missing", "#: `descriptors` is missing"],
    );
    check_faults(
        r#"{"domain": "", "descriptors": []}"#,
        &[
            "#/domain: must not be empty",
            "#/descriptors: must not be empty",
        ],
    );
    check_faults(
        r#"{"domian": "d", "domain": 1, "cost": -1, "descriptors": [
            {"user": 42, "a/b ~": true}, {}, 7, [["a"]], {"entries": [], "hits": 1, "cost": "1"}]}"#,
        &[
            "#/domian: unknown field `domian`; there are `domain`, `descriptors`, `cost`, `refund`",
            "#/domain: must be a string, not a number",
            "#/cost: must be a whole number from 0 on, not a number",
            "#/descriptors/0/user: must be a string, not a number",
            "#/descriptors/0/a~1b%20~0: must be a string, not true or false",
            "#/descriptors/1: has no entry, so no rule matches it; write {\"key\": \"value\"}, or [[\"key\", \"value\"]]",
            "#/descriptors/2: must be the entries of a descriptor; write {\"key\": \"value\"}, or [[\"key\", \"value\"]], not a number",
            "#/descriptors/3/0: must be a pair of strings, [\"key\", \"value\"]",
            "#/descriptors/4/hits: unknown field `hits`; there are `entries`, `cost`, `refund`",
            "#/descriptors/4/entries: has no entry, so no rule matches it; write {\"key\": \"value\"}, or [[\"key\", \"value\"]]",
            "#/descriptors/4/cost: must be a whole number from 0 on, not a string",
        ],
    );
    check_faults(
        r#"{"domain": "d", "cost": 1, "refund": 1, "descriptors": [{"a": "1", "a": "2"}]}"#,
        &[
            "#/refund: `cost` and `refund` exclude each other",
            "#/descriptors/0/a: stands twice; write the entries as a list of pairs if that is meant",
        ],
    );
    check_faults(
        r#"{"checks": [{"domain": "d", "descriptors": [{"a": "1"}]}, {"domain": "d"}], "domain": "d"}"#,
        &[
            "#/domain: unknown field `domain`; there are `checks`",
            "#/checks/1: `descriptors` is missing",
        ],
    );
    check_faults(
        r#"{"domain": "d", "descriptors": [{"a": "1"}], "cost": 1, "domain": "e"}"#,
        &["#/domain: stands twice"],
    );
    check_faults(r#"{"checks": []}"#, &["#/checks: must not be empty"]);
    check_faults(
        r#"{"checks": null, "domain": "d", "descriptors": [{"a": "1"}]}"#,
        &["#/checks: unknown field `checks`; there are `domain`, `descriptors`, `cost`, `refund`"],
    );
}

#[test]
fn what_is_too_large_is_a_fault() {
    let descriptors = vec![json!({"a": "b"}); 33];
    let body = json!({"domain": "d", "descriptors": descriptors}).to_string();
    check_faults(&body, &["#/descriptors: has 33 elements, more than 32"]);
    let pairs = vec![json!(["a", "b"]); 33];
    let body = json!({"domain": "d", "descriptors": [pairs]}).to_string();
    check_faults(&body, &["#/descriptors/0: has 33 entries, more than 32"]);
    let body = json!({"checks": vec![json!({}); 257]}).to_string();
    check_faults(&body, &["#/checks: has 257 elements, more than 256"]);
}

#[test]
fn very_many_faults_are_counted() {
    let body = json!({"checks": vec![json!({}); 100]}).to_string();
    let json: Json<'_> = serde_json::from_str(&body).unwrap();
    let faults = CheckRequest::read(&json).unwrap_err();
    assert_eq!(faults.shown().len(), 20);
    assert_eq!(
        faults.to_string(),
        "the question has 200 faults, see the first 20 in `errors`"
    );
}

const RULES: &str = "
domain: d
descriptors:
  - key: user
    rate_limits:
      - {unit: minute, requests_per_unit: 2, name: per_user}
      - {unit: day, requests_per_unit: 100}
  - {key: new, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 0}}
  - {key: queue, rate_limit: {unit: second, requests_per_unit: 3, algorithm: leaky_bucket}}
";

fn limiter() -> Limiter<EmbeddedStore<ManualClock>> {
    let source = Source {
        name: "test.yaml".to_owned(),
        bytes: RULES.into(),
    };
    let rules = compile(&[source], &CompileOptions::default())
        .unwrap()
        .rules;
    let store = EmbeddedStore::with_clock(StoreConfig::default(), ManualClock::default());
    Limiter::new(store, rules, LimiterConfig::default())
}

fn answer(limiter: &Limiter<EmbeddedStore<ManualClock>>, descriptors: &Value) -> Value {
    let body = json!({"domain": "d", "descriptors": descriptors}).to_string();
    let json: Json<'_> = serde_json::from_str(&body).unwrap();
    let Ok(CheckRequest::One(check)) = CheckRequest::read(&json) else {
        panic!("{body}");
    };
    let verdict = limiter.check_now(check.domain, &check.descriptors(), 1);
    serde_json::to_value(Checked::from(&verdict.unwrap())).unwrap()
}

#[test]
fn an_answer_tells_of_every_limit() {
    let limiter = limiter();
    let user = json!([{"user": "42"}, {"new": "1"}]);
    assert_eq!(
        answer(&limiter, &user),
        json!({
            "allowed": true, "deciding": "per_user", "delay": 0, "degraded": false,
            "limits": [
                {"descriptor": 0, "rule": "user", "policy": "per_user", "mode": "enforce",
                 "allowed": true, "limit": 2, "remaining": 1, "reset": 60},
                {"descriptor": 0, "rule": "user", "policy": "per-day", "mode": "enforce",
                 "allowed": true, "limit": 100, "remaining": 99, "reset": 86400},
                {"descriptor": 1, "rule": "new", "policy": "per-second", "mode": "shadow",
                 "allowed": false, "limit": 0, "remaining": 0, "reset": 1},
            ],
        })
    );
    answer(&limiter, &user);
    let refused = answer(&limiter, &json!([{"user": "42"}]));
    let detail = "the limit \"per_user\" is used up; come back in 60 seconds";
    assert_eq!(refused["allowed"], json!(false));
    assert_eq!(refused["detail"], json!(detail));
    assert_eq!(refused["retry_after"], json!(60));
    assert_eq!(refused["limits"][0]["retry_after"], json!(60));
    assert_eq!(refused["limits"][1].get("retry_after"), None);
}

#[test]
fn times_are_seconds_to_the_millisecond_and_never_early() {
    let limiter = limiter();
    answer(&limiter, &json!([{"queue": "q"}]));
    // A third of a second, and a bit.
    assert_eq!(
        answer(&limiter, &json!([{"queue": "q"}]))["delay"],
        json!(0.334)
    );
}

#[test]
fn a_request_that_never_fits_is_told_so() {
    let limiter = limiter();
    let refused = answer(&limiter, &json!([{"entries": {"user": "42"}, "cost": 3}]));
    assert_eq!(refused.get("retry_after"), None);
    let detail = "the request costs more than the limit \"per_user\" ever lets pass at once";
    assert_eq!(refused["detail"], json!(detail));
}

#[test]
fn a_refund_gives_back() {
    let limiter = limiter();
    answer(&limiter, &json!([{"entries": {"user": "42"}, "cost": 2}]));
    let refunded = answer(&limiter, &json!([{"entries": {"user": "42"}, "refund": 1}]));
    assert_eq!(refunded["limits"][0]["remaining"], json!(1));
    assert_eq!(
        answer(&limiter, &json!([{"user": "42"}]))["allowed"],
        json!(true)
    );
}
