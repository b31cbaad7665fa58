use super::super::question::{MAX_DESCRIPTORS, MAX_ENTRIES};
use super::*;
use tidegate_limiter::{Hits, LimitOverride};

const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

/// Reads `json` and hands what it asks to `assert`.
fn check(json: &str, assert: impl FnOnce(Result<Question<'_>, BadRequest>)) {
    let Object(request): Object<RateLimitRequest<'_>> = serde_json::from_str(json).unwrap();
    assert(Question::try_from(&request));
}

fn check_malformed(json: &str, expected: &str) {
    let error = serde_json::from_str::<Object<RateLimitRequest<'_>>>(json)
        .unwrap_err()
        .to_string();
    assert!(error.contains(expected), "{json} gives: {error}");
}

fn check_bad(json: &str, expected: &BadRequest) {
    check(json, |question| {
        assert_eq!(&question.unwrap_err(), expected);
    });
}

#[test]
fn both_spellings_of_the_fields_are_read() {
    let camel = r#"{"domain": "d", "hitsAddend": 2, "descriptors": [
        {"entries": [{"key": "a", "value": "1"}], "hitsAddend": "3",
         "limit": {"requestsPerUnit": 7, "unit": "HOUR"}}]}"#;
    let snake = r#"{"domain": "d", "hits_addend": "2", "descriptors": [
        {"entries": [{"key": "a", "value": "1"}], "hits_addend": 3,
         "limit": {"requests_per_unit": "7", "unit": 3}}]}"#;
    for json in [camel, snake] {
        check(json, |question| {
            let question = question.unwrap();
            assert_eq!((question.domain, question.hits()), ("d", 2));
            let descriptors = question.descriptors();
            assert_eq!(descriptors.len(), 1);
            assert_eq!(
                descriptors[0].entries,
                [Entry {
                    key: "a",
                    value: "1"
                }]
            );
            assert_eq!(descriptors[0].hits, Hits::Take(3));
            assert_eq!(
                descriptors[0].limit,
                Some(LimitOverride {
                    requests: 7,
                    window: HOUR,
                    consistency: None,
                })
            );
        });
    }
}

#[test]
fn what_is_absent_or_null_has_its_default() {
    let absent = r#"{"descriptors": [{}, {"entries": [{}]}]}"#;
    let null = r#"{"domain": null, "hitsAddend": null, "descriptors": [
        {"entries": null, "limit": null, "hitsAddend": null, "isNegativeHits": null},
        {"entries": [{"key": null, "value": null}]}]}"#;
    for json in [absent, null] {
        check(json, |question| {
            let question = question.unwrap();
            assert_eq!((question.domain, question.hits()), ("", 1));
            let descriptors = question.descriptors();
            assert_eq!(descriptors[0].entries, []);
            assert_eq!(descriptors[0].hits, Hits::OfRequest);
            assert_eq!(descriptors[0].limit, None);
            assert_eq!(descriptors[1].entries, [Entry { key: "", value: "" }]);
        });
    }
}

#[test]
fn hits_of_a_descriptor_may_look_or_give_back() {
    let json = r#"{"hitsAddend": 4, "descriptors": [
        {"hitsAddend": 0}, {"hitsAddend": 3, "isNegativeHits": true}, {"is_negative_hits": true}]}"#;
    check(json, |question| {
        let question = question.unwrap();
        let hits = question
            .descriptors()
            .iter()
            .map(|it| it.hits)
            .collect::<Vec<_>>();
        assert_eq!(hits, [Hits::Take(0), Hits::Refund(3), Hits::Refund(4)]);
    });
}

#[test]
fn escapes_in_strings_are_read() {
    let json =
        r#"{"domain": "a\"b", "descriptors": [{"entries": [{"key": "k\n", "value": "é"}]}]}"#;
    check(json, |question| {
        let question = question.unwrap();
        assert_eq!(question.domain, "a\"b");
        assert_eq!(
            question.descriptors()[0].entries,
            [Entry {
                key: "k\n",
                value: "é"
            }]
        );
    });
}

#[test]
fn a_limit_without_a_unit_is_refused() {
    let expected = BadRequest::NoUnit { descriptor: 1 };
    check_bad(
        r#"{"descriptors": [{}, {"limit": {"requestsPerUnit": 7}}]}"#,
        &expected,
    );
    check_bad(
        r#"{"descriptors": [{}, {"limit": {"unit": "UNKNOWN"}}]}"#,
        &expected,
    );
}

#[test]
fn too_much_is_refused() {
    let descriptors = vec!["{}"; MAX_DESCRIPTORS + 1].join(",");
    let expected = BadRequest::TooManyDescriptors;
    check_bad(&format!(r#"{{"descriptors": [{descriptors}]}}"#), &expected);

    let entries = vec!["{}"; MAX_ENTRIES + 1].join(",");
    let expected = BadRequest::TooManyEntries { descriptor: 0 };
    check_bad(
        &format!(r#"{{"descriptors": [{{"entries": [{entries}]}}]}}"#),
        &expected,
    );
}

#[test]
fn malformed_messages_are_refused_with_a_reason() {
    check_malformed("", "EOF");
    check_malformed("[]", "invalid type: sequence, expected an object");
    check_malformed("7", "invalid type: integer `7`, expected an object");
    check_malformed(r#"{"descriptors": [["a"]]}"#, "expected an object");
    check_malformed(
        r#"{"descriptors": [{"entries": [["a", "b"]]}]}"#,
        "expected an object",
    );
    check_malformed(r#"{"domian": "d"}"#, "unknown field `domian`");
    check_malformed(r#"{"hitsAddend": 1, "hits_addend": 1}"#, "duplicate field");
    check_malformed(r#"{"hitsAddend": -1}"#, "whole number from 0 on");
    check_malformed(
        r#"{"descriptors": [{"limit": {"unit": "FORTNIGHT"}}]}"#,
        "SECOND, MINUTE",
    );
    check_malformed(r#"{"domain": "d"} x"#, "trailing characters");
}

/// A gateway copies a header into the body as it is, or as its language reads bytes that are not UTF-8.
#[test]
fn a_value_that_is_not_utf8_is_a_value() {
    let check = |value: &[u8], expected: &str| {
        let before = br#"{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": ""#;
        let json = [&before[..], value, br#""}]}]}"#].concat();
        let request: Object<RateLimitRequest<'_>> = serde_json::from_slice(&json).unwrap();
        let question = Question::try_from(&request.0).unwrap();
        assert_eq!(question.descriptors()[0].entries[0].value, expected);
    };
    check(b"bob\xff", "bob\u{fffd}ff");
    check(br"bob\udcff", "bob\u{fffd}ed\u{fffd}b3\u{fffd}bf");
    check(br"bob\ufffd", "bob\u{fffd}ef\u{fffd}bf\u{fffd}bd");
    check(br"b\u00f6b", "b\u{f6}b");
}
