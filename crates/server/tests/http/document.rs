//! The `OpenAPI` document against the server that runs: its examples are answered as it describes, and so are
//! requests that do not fit it.

use serde_json::{Value, json};

use crate::client::{Reply, Server, post_to};
use crate::schema::Document;

const RULES: &str = "
domain: api
descriptors:
  - key: user_id
    rate_limits:
      - {unit: minute, requests_per_unit: 2, name: per_user}
      - {unit: hour, requests_per_unit: 100, algorithm: token_bucket}
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: never
    rate_limit: {unit: minute, requests_per_unit: 0}
";

async fn document(server: &Server) -> Document {
    let reply = server.get("/v1/openapi.json").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    Document(serde_json::from_str(&reply.body).unwrap())
}

/// The description of one method of a path.
fn operation<'d>(document: &'d Document, path: &str) -> &'d Value {
    let methods = document.0["paths"][path].as_object().unwrap();
    assert_eq!(methods.len(), 1, "{path}");
    methods.values().next().unwrap()
}

/// Holds a reply against the description of its path.
#[track_caller]
fn check(document: &Document, path: &str, reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{path}: {reply:?}");
    let responses = &operation(document, path)["responses"];
    let described = document.resolve(&responses[status.to_string()]);
    for (header, _) in described["headers"].as_object().into_iter().flatten() {
        let header = header.to_lowercase();
        assert!(reply.header(&header).is_some(), "{path}: no {header}");
    }
    let Some(content) = described.get("content") else {
        assert_eq!(reply.body, "", "{path}");
        return;
    };
    let (kind, content) = content.as_object().unwrap().iter().next().unwrap();
    let sent = reply.header("content-type").unwrap();
    assert!(sent.starts_with(kind.as_str()), "{path}: {sent}");
    let body = if kind.ends_with("json") {
        serde_json::from_str(&reply.body).unwrap()
    } else {
        Value::String(reply.body.clone())
    };
    let faults = document.faults(&content["schema"], &body);
    assert!(faults.is_empty(), "{path}: {faults:#?} in {body}");
}

/// The content of the body that a path takes.
fn content<'d>(document: &'d Document, path: &str) -> &'d Value {
    &operation(document, path)["requestBody"]["content"]["application/json"]
}

#[tokio::test]
async fn every_path_answers_as_described() {
    let server = Server::start(RULES).await;
    let document = document(&server).await;
    for path in ["/v1/check", "/json"] {
        let server = Server::start(RULES).await;
        let content = content(&document, path);
        let example = &content["example"];
        assert_eq!(document.faults(&content["schema"], example), [""; 0]);
        let post = post_to(path, &example.to_string());
        let mut reply = server.exchange(&post).await;
        check(&document, path, &reply, 200);
        while reply.status == 200 {
            reply = server.exchange(&post).await;
        }
        check(&document, path, &reply, 429);
        let mut other = example.clone();
        other["domain"] = json!("other");
        let reply = server.exchange(&post_to(path, &other.to_string())).await;
        check(&document, path, &reply, 200);
    }
    for path in ["/healthcheck", "/v1/openapi.json"] {
        check(&document, path, &server.get(path).await, 200);
    }
    let authorize = |deny: &str| format!("/v1/authorize?domain=api{deny}");
    let reply = server.get(&authorize("")).await;
    check(&document, "/v1/authorize", &reply, 200);
    for (deny, status) in [
        ("", 429),
        ("&deny=401", 401),
        ("&deny=403", 403),
        ("&deny=503", 503),
    ] {
        let reply = server.get(&authorize(deny)).await;
        check(&document, "/v1/authorize", &reply, status);
    }
    let paths = document.0["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 5, "a path is not tried here");
}

/// The schema and the server agree about each of these bodies.
#[tokio::test]
async fn a_body_is_taken_if_and_only_if_it_fits_the_schema() {
    let server = Server::start(RULES).await;
    let document = document(&server).await;
    let schema = &content(&document, "/v1/check")["schema"];
    let entries = |n: usize| -> Value { (0..n).map(|it| json!([it.to_string(), "x"])).collect() };
    let checks =
        |n: usize| json!({"checks": vec![json!({"domain": "d", "descriptors": [{"a": "b"}]}); n]});
    let of = |descriptor: Value| json!({"domain": "api", "descriptors": [descriptor]});
    let bodies = [
        of(json!({"user_id": "1"})),
        of(json!([["user_id", "1"], ["user_id", "2"]])),
        of(json!({"entries": {"user_id": "1"}, "cost": 0})),
        of(json!({"entries": [["user_id", "1"]], "refund": 3})),
        of(json!({"entries": "text"})),
        of(json!({"never": "1"})),
        of(entries(32)),
        of(entries(33)),
        of(json!({})),
        of(json!([])),
        of(json!("user_id")),
        of(json!({"user_id": 1})),
        of(json!([["user_id"]])),
        of(json!([["user_id", "1", "2"]])),
        of(json!({"entries": {"user_id": "1"}, "cost": -1})),
        json!({"domain": "", "descriptors": [{"a": "b"}]}),
        json!({"domain": "api"}),
        json!({"domain": "api", "descriptors": []}),
        json!({"domain": "api", "descriptors": vec![json!({"a": "b"}); 32], "cost": null}),
        json!({"domain": "api", "descriptors": vec![json!({"a": "b"}); 33]}),
        json!({"domain": "api", "descriptors": [{"a": "b"}], "cost": 1.5}),
        json!({"domain": "api", "descriptors": [{"a": "b"}], "coost": 1}),
        json!({"checks": []}),
        json!([]),
        json!(null),
        checks(256),
        checks(257),
    ];
    for body in bodies {
        let text = body.to_string();
        let reply = server.exchange(&post_to("/v1/check", &text)).await;
        let status = if document.faults(schema, &body).is_empty() {
            assert!([200, 429].contains(&reply.status), "{text}: {reply:?}");
            reply.status
        } else {
            400
        };
        check(&document, "/v1/check", &reply, status);
    }
}

#[tokio::test]
async fn faults_are_answered_as_described() {
    let server = Server::start(RULES).await;
    let document = document(&server).await;
    let large = " ".repeat(70_000);
    for path in ["/v1/check", "/json"] {
        for (body, status) in [("", 400), ("{", 400), ("[]", 400), (&*large, 413)] {
            let reply = server.exchange(&post_to(path, body)).await;
            check(&document, path, &reply, status);
        }
        let cross_site = post_to(path, "{}").replacen(
            "\r\n",
            "\r\nSec-Fetch-Site: cross-site\r\nOrigin: http://evil.example\r\n",
            1,
        );
        let reply = server.exchange(&cross_site).await;
        check(&document, path, &reply, 403);
    }
    check(&document, "/v1/check", &server.get("/v1/check").await, 405);
    for query in ["", "?domain=api&deny=200", "?domain=api&x=1"] {
        let reply = server.get(&format!("/v1/authorize{query}")).await;
        check(&document, "/v1/authorize", &reply, 400);
    }
    let reply = server.exchange(&post_to("/v1/authorize", &large)).await;
    check(&document, "/v1/authorize", &reply, 413);
}
