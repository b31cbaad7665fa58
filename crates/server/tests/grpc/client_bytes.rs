//! What clients of a proxy can put into a question: bytes that are not UTF-8, and too much of everything. Envoy lets a request pass
//! whose call fails, so nothing of this may make the call fail.

use prost::Message;
use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;

use crate::client::{SHOULD_RATE_LIMIT, Server, framed, run};
use crate::wire::{Code, Kind, RateLimitRequest, RateLimitResponse, descriptor};

/// A question whose strings are bytes, as Envoy sends them.
#[derive(Clone, PartialEq, prost::Message)]
struct BytesRequest {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<BytesDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BytesDescriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<BytesEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BytesEntry {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: address
    rate_limit: { unit: minute, requests_per_unit: 3 }
  - key: \"\\uFFFDff\"
    rate_limit: { unit: minute, requests_per_unit: 1 }
";

fn by(entries: &[(&[u8], &[u8])]) -> BytesRequest {
    let descriptor = |(key, value): &(&[u8], &[u8])| BytesDescriptor {
        entries: vec![BytesEntry {
            key: key.to_vec(),
            value: value.to_vec(),
        }],
    };
    BytesRequest {
        domain: "api".to_owned(),
        descriptors: entries.iter().map(descriptor).collect(),
    }
}

/// Asks each question in turn, of one server. A call that fails is a panic.
fn answers(config: GrpcConfig, questions: &[impl Message]) -> Vec<RateLimitResponse> {
    let mut answers = Vec::new();
    run(async {
        let server = Server::with(RULES, config, LimiterConfig::default());
        let mut client = server.connect().await;
        for question in questions {
            let reply = client.call(SHOULD_RATE_LIMIT, &framed(question)).await;
            assert_eq!(reply.status(), ("0", ""));
            answers.push(RateLimitResponse::decode(&reply.body[5..]).unwrap());
        }
    });
    answers
}

fn codes(questions: &[impl Message]) -> Vec<Code> {
    let answers = answers(GrpcConfig::default(), questions);
    answers
        .iter()
        .map(RateLimitResponse::overall_code)
        .collect()
}

#[test]
fn a_value_that_is_not_utf8_is_a_caller_like_any_other() {
    for value in [&b"bob\xff"[..], b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\0"] {
        let question = by(&[(b"user", value), (b"address", b"10.0.0.1")]);
        let codes = codes(&vec![question; 3]);
        assert_eq!(codes, [Code::Ok, Code::OverLimit, Code::OverLimit]);
    }
}

#[test]
fn a_byte_that_is_not_utf8_switches_no_other_limit_off() {
    let question = |user: &[u8]| by(&[(b"user", user), (b"address", b"10.0.0.1")]);
    let questions = [b"a\xff", b"a\xfe", b"a\xfd", b"a\xfc"].map(|user| question(user));
    let expected = [Code::Ok, Code::Ok, Code::Ok, Code::OverLimit];
    assert_eq!(codes(&questions), expected);
}

#[test]
fn different_bytes_are_different_callers() {
    let values = [
        &b"bob"[..],
        b"bob\xff",
        b"bob\xfe",
        b"bob\xff\xff",
        "bob\u{fffd}".as_bytes(),
        "bob\u{fffd}ff".as_bytes(),
    ];
    let questions = values.map(|value| by(&[(b"user", value)]));
    assert_eq!(codes(&questions), [Code::Ok; 6]);
}

#[test]
fn a_key_that_is_not_utf8_meets_the_rule_that_writes_it_escaped() {
    let question = by(&[(b"\xff", b"x")]);
    let expected = [Code::Ok, Code::OverLimit];
    assert_eq!(codes(&[question.clone(), question]), expected);
}

/// The code and the reason of a denial without a decision.
fn denial(answer: &RateLimitResponse) -> (Code, &str) {
    let metadata = answer.dynamic_metadata.as_ref().unwrap();
    match &metadata.fields["refused"].kind {
        Some(Kind::Text(reason)) => (answer.overall_code(), reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn too_much_of_anything_is_denied() {
    let request = |descriptors| RateLimitRequest {
        domain: "api".to_owned(),
        descriptors,
        hits_addend: 0,
    };
    let many = request(vec![descriptor(&[("user", "7")]); 33]);
    let wide = request(vec![descriptor(&[("user", "7"); 33])]);
    let long = request(vec![descriptor(&[("user", &"x".repeat(5_000))])]);
    let config = GrpcConfig {
        max_message_bytes: 4_000,
        ..GrpcConfig::default()
    };
    let answers = answers(config, &[many, wide, long]);
    let expected = [
        (Code::OverLimit, "more than 32 descriptors"),
        (Code::OverLimit, "more than 32 entries in descriptor 0"),
        (Code::OverLimit, "a message of 5020 bytes; 4000 are taken"),
    ];
    assert_eq!(answers.iter().map(denial).collect::<Vec<_>>(), expected);
}
