//! Calls that are not quite what they should be.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use tidegate_limiter::LimiterConfig;
use tidegate_server::GrpcConfig;
use tokio::time::Instant;

use crate::client::{Reply, SHOULD_RATE_LIMIT, Server, framed, head, run};
use crate::wire::{RateLimitRequest, ask};

const RULES: &str = "
domain: api
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 100 }
";

/// Sends a body in pieces, and hands on what comes back.
fn check(request: Request<()>, pieces: &[&[u8]], assert: impl FnOnce(Reply)) {
    run(async {
        let server = Server::new(RULES);
        let mut client = server.connect().await;
        assert(client.send(request, pieces).await);
    });
}

fn check_body(body: &[u8], expected: (&str, &str)) {
    check(call(), &[body], |reply| {
        assert_eq!(reply.http, StatusCode::OK);
        assert_eq!(reply.status(), expected, "{body:?}");
        assert_eq!(reply.body.len(), 0);
    });
}

fn call() -> Request<()> {
    head(SHOULD_RATE_LIMIT).body(()).unwrap()
}

fn question() -> Bytes {
    framed(&ask("api", &[("user", "7")]))
}

#[test]
fn a_message_may_come_in_any_pieces() {
    let question = question();
    for at in [0, 1, 4, 5, 6, question.len() - 1, question.len()] {
        let (first, rest) = question.split_at(at);
        for pieces in [&[first, rest][..], &[first, &[], rest, &[]]] {
            check(call(), pieces, |reply| {
                assert_eq!(reply.status(), ("0", ""));
            });
        }
    }
    let bytes = question.chunks(1).collect::<Vec<_>>();
    check(call(), &bytes, |reply| {
        assert_eq!(reply.status(), ("0", ""));
    });
}

#[test]
fn one_message_and_no_other_number_is_taken() {
    let more = "more than one message in a call that takes one";
    check_body(&[question(), question()].concat(), ("12", more));
    check(call(), &[], |reply| {
        assert_eq!(
            reply.status(),
            ("12", "the call broke off before its message")
        );
    });
}

#[test]
fn a_length_that_is_not_true_is_named() {
    check_body(&[0, 0, 0, 0, 9, 1], ("13", "the message breaks off"));
    check_body(&[0, 0, 0], ("13", "the message breaks off"));
}

#[test]
fn a_message_that_is_none_is_named() {
    check_body(
        &[0, 0, 0, 0, 1, 0x0b],
        (
            "13",
            "grpc: error unmarshalling request: field 1 is a group or of no known wire type",
        ),
    );
    check_body(
        &[0, 0, 0, 0, 2, 0x08, 1],
        (
            "13",
            "grpc: error unmarshalling request: field 1 is of another type",
        ),
    );
    check_body(
        &[0, 0, 0, 0, 3, 0x0a, 1, 0xff],
        (
            "13",
            "grpc: error unmarshalling request: field 1 is not UTF-8",
        ),
    );
    check_body(
        &[0, 0, 0, 0, 2, 0x12, 9],
        (
            "13",
            "grpc: error unmarshalling request: the message breaks off",
        ),
    );
}

#[test]
fn questions_without_sense_have_the_words_of_the_reference() {
    check_body(
        &framed(&ask("", &[])),
        ("2", "rate limit domain must not be empty"),
    );
    let nothing = RateLimitRequest {
        domain: "api".to_owned(),
        ..RateLimitRequest::default()
    };
    check_body(
        &framed(&nothing),
        ("2", "rate limit descriptor list must not be empty"),
    );
}

#[test]
fn compression_is_not_known() {
    let request = head(SHOULD_RATE_LIMIT).header("grpc-encoding", "gzip");
    check(request.body(()).unwrap(), &[&question()], |reply| {
        assert_eq!(reply.status().0, "12");
        assert_eq!(reply.headers["grpc-accept-encoding"], "identity");
    });
    let unnamed = "a compressed message, and no compression was named";
    check_body(&[1, 0, 0, 0, 0], ("13", unnamed));
    check_body(
        &[2, 0, 0, 0, 0],
        ("13", "a message is marked neither plain nor compressed"),
    );
}

#[test]
fn what_is_no_call_is_answered_in_http() {
    let check = |request: http::request::Builder, expected| {
        let request = request.body(()).unwrap();
        check(request, &[], |reply| assert_eq!(reply.http, expected));
    };
    let uri = format!("http://tidegate{SHOULD_RATE_LIMIT}");
    check(Request::get(&uri), StatusCode::METHOD_NOT_ALLOWED);
    check(Request::post(&uri), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let json = Request::post(&uri).header("content-type", "application/json");
    check(json, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let large = head(SHOULD_RATE_LIMIT).header("x", "x".repeat(70_000));
    check(large, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[test]
fn other_methods_are_not_implemented_in_the_words_of_the_reference() {
    for (path, expected) in [
        ("/", "malformed method name: \"/\""),
        (
            "/envoy.service.ratelimit.v3.RateLimitService/Nope",
            "unknown method Nope for service envoy.service.ratelimit.v3.RateLimitService",
        ),
        ("/a.B/C%25", "unknown service a.B"),
    ] {
        check(head(path).body(()).unwrap(), &[b""], |reply| {
            assert_eq!(reply.http, StatusCode::OK);
            assert_eq!(reply.status(), ("12", expected));
        });
    }
}

/// How long a call takes whose message never comes, and what comes of it.
fn late(request: http::request::Builder) -> (Duration, String) {
    let mut outcome = None;
    run(async {
        let config = GrpcConfig {
            call_timeout: Duration::from_secs(7),
            ..GrpcConfig::default()
        };
        let server = Server::with(RULES, config, LimiterConfig::default());
        let mut client = server.connect().await;
        let started = Instant::now();
        let reply = client.begin(request.body(()).unwrap()).await;
        outcome = Some((started.elapsed(), reply.status().0.to_owned()));
    });
    outcome.unwrap()
}

#[test]
fn who_waits_for_its_message_waits_no_longer_than_the_deadline() {
    let deadline = head(SHOULD_RATE_LIMIT).header("grpc-timeout", "20m");
    let (took, status) = late(deadline);
    assert_eq!(status, "4");
    assert!(
        took >= Duration::from_millis(20) && took < Duration::from_millis(25),
        "{took:?}"
    );

    let (took, status) = late(head(SHOULD_RATE_LIMIT));
    assert_eq!(status, "4");
    assert_eq!(took.as_secs(), 7);

    let (took, status) = late(head(SHOULD_RATE_LIMIT).header("grpc-timeout", "20"));
    assert_eq!((took, &*status), (Duration::ZERO, "13"));
}

#[test]
fn many_calls_at_once_are_each_answered() {
    run(async {
        let server = Server::new(RULES);
        let client = server.connect().await;
        let calls = (0..200).map(|user| {
            let mut client = client.clone();
            tokio::task::spawn_local(async move {
                client
                    .ask(&ask("api", &[("user", &user.to_string())]))
                    .await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().statuses[0].limit_remaining, 99);
        }
    });
}
