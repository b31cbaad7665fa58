//! `ShouldRateLimit`, field by field.

use tidegate_limiter::{GlobalShadow, LimiterConfig};
use tidegate_server::GrpcConfig;

use crate::client::{SHOULD_RATE_LIMIT, Server, framed, run};
use crate::wire::{
    Code, Kind, RateLimit, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
    RateLimitResponse, Struct, UInt64Value, ask, descriptor,
};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2, name: per-user }
  - key: staff
    rate_limit: { unlimited: true }
  - key: odd
    rate_limit: { window: 90s, limit: 10000000000 }
  - key: watched
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 0 }
  - key: soft
    rate_limit: { unit: minute, requests_per_unit: 1, soft: 100% }
  - key: tagged
    metadata: { plan: free, tags: [a, 1, true, null] }
    rate_limit: { unit: day, requests_per_unit: 1 }
";

const MINUTE: i32 = 2;
const DAY: i32 = 4;

/// Asks each question in turn, of one server.
fn answers(questions: &[RateLimitRequest]) -> Vec<RateLimitResponse> {
    answers_of(LimiterConfig::default(), questions)
}

fn answers_of(config: LimiterConfig, questions: &[RateLimitRequest]) -> Vec<RateLimitResponse> {
    let mut answers = Vec::new();
    run(async {
        let server = Server::with(RULES, GrpcConfig::default(), config);
        let mut client = server.connect().await;
        for question in questions {
            answers.push(client.ask(question).await);
        }
    });
    answers
}

fn by(descriptors: &[RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest {
        domain: "api".to_owned(),
        descriptors: descriptors.to_vec(),
        hits_addend: 0,
    }
}

fn user() -> RateLimitDescriptor {
    descriptor(&[("user", "7")])
}

fn remaining(answers: &[RateLimitResponse]) -> Vec<u32> {
    let first = |answer: &RateLimitResponse| answer.statuses[0].limit_remaining;
    answers.iter().map(first).collect()
}

fn headers(answer: &RateLimitResponse) -> Vec<(&str, &str)> {
    let headers = answer.response_headers_to_add.iter();
    headers.map(|it| (&it.key[..], &it.value[..])).collect()
}

fn text<'a>(metadata: &'a Struct, name: &str) -> &'a str {
    match &metadata.fields[name].kind {
        Some(Kind::Text(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_caller_is_admitted_up_to_the_limit() {
    let answers = answers(&[by(&[user()]), by(&[user()]), by(&[user()])]);
    let codes = answers.iter().map(RateLimitResponse::overall_code);
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [Code::Ok, Code::Ok, Code::OverLimit]
    );
    assert_eq!(remaining(&answers), [1, 0, 0]);

    let status = &answers[0].statuses[0];
    let limit = RateLimit {
        requests_per_unit: 2,
        unit: MINUTE,
        name: "per-user".to_owned(),
    };
    assert_eq!(status.current_limit, Some(limit));
    // Whole seconds: Envoy drops the rest, and would tell its clients to come early.
    let reset = status.duration_until_reset.unwrap();
    assert!((1..=60).contains(&reset.seconds), "{reset:?}");
    assert_eq!(reset.nanos, 0);
    assert_eq!(
        headers(&answers[0]),
        [("x-ratelimit-limit", "2"), ("x-ratelimit-remaining", "1")]
    );
    assert_eq!(answers[0].dynamic_metadata, None, "nothing is worth a word");
}

#[test]
fn a_request_that_passes_over_a_soft_limit_is_marked() {
    let soft = by(&[descriptor(&[("soft", "x")])]);
    let answers = answers(&[soft.clone(), soft.clone(), soft]);
    let codes = answers.iter().map(RateLimitResponse::overall_code);
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [Code::Ok, Code::Ok, Code::OverLimit]
    );
    for (answer, is_marked) in answers.iter().zip([false, true, false]) {
        let header = headers(answer).contains(&("x-ratelimit-over", "true"));
        let fact = answer.dynamic_metadata.as_ref();
        let fact = fact.and_then(|metadata| metadata.fields.get("over"));
        let fact = fact.is_some_and(|fact| fact.kind == Some(Kind::Bool(true)));
        assert_eq!((header, fact), (is_marked, is_marked));
    }
}

#[test]
fn a_refusal_says_why_to_the_client_and_to_the_proxy() {
    let answers = answers(&[by(&[user()]), by(&[user()]), by(&[user()])]);
    let refusal = answers.last().unwrap();
    let names = headers(refusal).iter().map(|it| it.0).collect::<Vec<_>>();
    assert!(names.contains(&"retry-after"), "{names:?}");
    assert!(headers(refusal).contains(&("content-type", "application/problem+json")));
    let problem: serde_json::Value = serde_json::from_slice(&refusal.raw_body).unwrap();
    assert_eq!(problem["status"], 429);

    let metadata = refusal.dynamic_metadata.as_ref().unwrap();
    let Some(Kind::Struct(decided_by)) = &metadata.fields["decidedBy"].kind else {
        panic!("{metadata:?}");
    };
    assert_eq!(text(decided_by, "rule"), "user");
    assert_eq!(text(decided_by, "limit"), "2 per minute, fixed_window");
    assert!(text(decided_by, "retry").starts_with("in "));
}

/// Envoy copies headers of its clients into descriptors, as often as its config says.
#[test]
fn a_client_cannot_make_a_question_too_large_to_be_asked() {
    let long = "x".repeat(60 * 1024);
    let same = vec![descriptor(&[("user", &long)]); 32];
    let answers = answers(&[by(&same)]);
    assert_eq!(answers[0].overall_code(), Code::OverLimit);
}

#[test]
fn statuses_stand_in_the_order_of_the_descriptors() {
    let over = RateLimitOverride {
        requests_per_unit: 5,
        unit: DAY,
    };
    let with_limit = RateLimitDescriptor {
        limit: Some(over),
        ..descriptor(&[("a", "b")])
    };
    let others = ["staff", "unknown", "odd", "watched"].map(|key| descriptor(&[(key, "x")]));
    let answer = &answers(&[by(&[&others[..], &[with_limit]].concat())])[0];
    assert_eq!(answer.overall_code(), Code::Ok);
    let statuses = answer.statuses.iter().map(|status| {
        let limit = status.current_limit.as_ref();
        let limit = limit.map(|limit| (limit.requests_per_unit, limit.unit));
        (status.code(), limit, status.limit_remaining)
    });
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        [
            (Code::Ok, None, u32::MAX),
            (Code::Ok, None, 0),
            (Code::Ok, Some((u32::MAX, 0)), u32::MAX),
            (Code::Ok, Some((0, 3)), 0),
            (Code::Ok, Some((5, DAY)), 4),
        ]
    );
    let metadata = answer.dynamic_metadata.as_ref().unwrap();
    let Some(Kind::List(limits)) = &metadata.fields["limits"].kind else {
        panic!("{metadata:?}");
    };
    let words = Kind::Text("10000000000 per 1m30s, fixed_window".to_owned());
    assert_eq!(limits.values[0].kind, Some(words));
}

#[test]
fn hits_add_up_are_looked_at_and_are_given_back() {
    let hits = |value, is_negative_hits| RateLimitDescriptor {
        hits_addend: Some(UInt64Value { value }),
        is_negative_hits,
        ..user()
    };
    let twice = RateLimitRequest {
        hits_addend: 2,
        ..by(&[user()])
    };
    let questions = [
        by(&[hits(0, false)]),
        twice,
        by(&[hits(0, false)]),
        by(&[hits(1, true)]),
        by(&[hits(0, false)]),
        by(&[hits(u64::MAX, false)]),
    ];
    let answers = answers(&questions);
    assert_eq!(remaining(&answers)[..3], [2, 0, 0]);
    let codes: Vec<Code> = answers[..3]
        .iter()
        .map(RateLimitResponse::overall_code)
        .collect();
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::OverLimit]);
    assert_eq!(answers[3].overall_code(), Code::Ok);
    assert_eq!(remaining(&answers)[4], 1);
    assert_eq!(answers[5].overall_code(), Code::OverLimit);
}

#[test]
fn a_limit_without_a_unit_is_an_error_and_no_crash() {
    run(async {
        let server = Server::new(RULES);
        let mut client = server.connect().await;
        for unit in [0, 8, -1, i32::MAX] {
            let limit = RateLimitOverride {
                requests_per_unit: 5,
                unit,
            };
            let question = by(&[RateLimitDescriptor {
                limit: Some(limit),
                ..user()
            }]);
            let reply = client.call(SHOULD_RATE_LIMIT, &framed(&question)).await;
            let message = "descriptor 0: a `limit` needs a `unit` other than UNKNOWN";
            assert_eq!(reply.status(), ("3", message));
        }
        client.ask(&by(&[user()])).await;
    });
}

#[test]
fn a_server_that_only_watches_keeps_the_statuses() {
    let config = LimiterConfig {
        shadow: GlobalShadow::On,
        ..LimiterConfig::default()
    };
    let answers = answers_of(config, &[by(&[user()]), by(&[user()]), by(&[user()])]);
    let last = answers.last().unwrap();
    assert_eq!(last.overall_code(), Code::Ok);
    assert_eq!(last.statuses[0].code(), Code::OverLimit);
    assert_eq!(last.raw_body, b"");
}

#[test]
fn metadata_of_rules_that_admit_is_handed_on() {
    let tagged = by(&[descriptor(&[("tagged", "x")]), user()]);
    let answers = answers(&[tagged.clone(), tagged]);
    let metadata = answers[0].dynamic_metadata.as_ref().unwrap();
    let Some(Kind::Struct(free)) = &metadata.fields["metadata"].kind else {
        panic!("{metadata:?}");
    };
    assert_eq!(text(free, "plan"), "free");
    let Some(Kind::List(tags)) = &free.fields["tags"].kind else {
        panic!("{free:?}");
    };
    let tags = tags.values.iter().map(|it| it.kind.clone().unwrap());
    let expected = [
        Kind::Text("a".to_owned()),
        Kind::Number(1.0),
        Kind::Bool(true),
        Kind::Null(0),
    ];
    assert_eq!(tags.collect::<Vec<_>>(), expected);

    assert_eq!(answers[1].overall_code(), Code::OverLimit);
    let metadata = answers[1].dynamic_metadata.as_ref().unwrap();
    assert!(!metadata.fields.contains_key("metadata"));
}

#[test]
fn an_unknown_domain_has_no_limits() {
    let answer = &answers(&[ask("other", &[("user", "7")])])[0];
    assert_eq!(answer.overall_code(), Code::Ok);
    assert_eq!(answer.statuses.len(), 1);
    assert_eq!(answer.statuses[0].current_limit, None);
    assert!(answer.response_headers_to_add.is_empty());
}
