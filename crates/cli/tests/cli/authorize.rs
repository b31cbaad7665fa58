//! `/v1/authorize` with rules and settings that do not fit each other: nobody is limited in silence.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::program::{check, command, scratch};
use crate::server::{OTHERS, Server};

const PER_USER: &str = "
domain: api
descriptors:
  - key: user_id
    rate_limit: {unit: minute, requests_per_unit: 100}
";

const UNMET: &str = "can be met by the descriptors of /v1/authorize";

/// Starts a server with these rules and settings.
fn start(name: &str, rules: &str, settings: &str) -> Server {
    start_in(&scratch(name), rules, settings)
}

fn start_in(folder: &Path, rules: &str, settings: &str) -> Server {
    fs::write(folder.join("rules.yaml"), rules).unwrap();
    fs::write(folder.join("tidegate.yaml"), settings).unwrap();
    let args = ["serve", "--http", "127.0.0.1:0", "--rules", "rules.yaml"];
    let mut command = command(&[&args[..], &OTHERS, &["--config", "tidegate.yaml"]].concat());
    command.current_dir(folder);
    Server::run(command)
}

fn ask(server: &Server, target: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn rules_that_no_request_of_a_proxy_can_meet_are_told_at_start() {
    let mut server = start("unmet", PER_USER, "");
    let line = server.next_line(UNMET);
    assert!(line.contains("domain `api`"), "{line}");
    assert!(line.contains("`path` + `method`"), "{line}");
    assert!(line.contains("authorize.descriptors"), "{line}");
    // True for operators too that use Envoy alone.
    assert!(line.contains("if a proxy such as nginx asks"), "{line}");
    assert!(line.contains("Envoy"), "{line}");
    assert!(ask(&server, "/v1/authorize?domain=api").starts_with("HTTP/1.1 200 "));
}

#[test]
fn rules_that_a_reload_makes_unmet_are_told_once() {
    const RELOADED: &str = "reloaded the rules";
    let settings =
        "{authorize: {descriptors: [{user_id: 'header:x-user-id'}]}, rules: {watch: false}}";
    let folder = scratch("unmet_later");
    let mut server = start_in(&folder, PER_USER, settings);
    let mut told = Vec::new();
    // Met at start, unmet twice, met, unmet again.
    for (key, limit) in [("plan", 1), ("plan", 2), ("user_id", 1), ("plan", 1)] {
        let rules = PER_USER
            .replace("user_id", key)
            .replace("100", &limit.to_string());
        fs::write(folder.join("rules.yaml"), rules).unwrap();
        server.send("-HUP");
        let mut is_told = false;
        loop {
            let line = server.next_line("");
            is_told |= line.contains(UNMET);
            if line.contains(RELOADED) {
                break;
            }
        }
        told.push(is_told);
    }
    assert_eq!(told, [true, false, false, true]);
}

#[test]
fn rules_that_can_be_met_are_no_news() {
    let settings = "authorize: {descriptors: [{user_id: 'header:x-user-id'}]}";
    let server = start("met", PER_USER, settings);
    assert!(ask(&server, "/v1/authorize?domain=api").starts_with("HTTP/1.1 200 "));
    let log = server.end();
    assert!(!log.iter().any(|line| line.contains(UNMET)), "{log:?}");
}

#[test]
fn a_question_that_makes_no_sense_is_logged_with_the_reason() {
    let settings = "authorize: {domain: api, domain_in_query: false}";
    let mut server = start("fixed_domain", PER_USER, settings);
    for _ in 0..20 {
        let answer = ask(&server, "/v1/authorize?domain=api");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    let line = server.next_line("/v1/authorize answered 400");
    assert!(line.contains("leave `domain` out of the query"), "{line}");
    // At most one line in ten seconds, and nothing of a client's that could pass for a line of ours.
    assert!(ask(&server, "/v1/authorize?a%0Ab=1").starts_with("HTTP/1.1 400 "));
    let log = server.end();
    assert!(log.len() <= 1, "{log:?}");
}

#[test]
fn a_denial_may_have_no_body() {
    let rules =
        "{domain: api, descriptors: [{key: all, rate_limit: {unit: day, requests_per_unit: 0}}]}";
    for (body, ending) in [("problem", "}"), ("none", "\r\n\r\n")] {
        let settings = format!(
            "{{authorize: {{descriptors: [{{all: 'constant:x'}}]}}, answers: {{body: {body}}}}}"
        );
        let server = start(&format!("body_{body}"), rules, &settings);
        let answer = ask(&server, "/v1/authorize?domain=api");
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert!(answer.ends_with(ending), "{answer}");
    }
}

#[test]
fn a_request_behind_a_proxy_is_explained() {
    let args = ["explain", "--config", "authorize.yaml", "--domain", "shop"];
    let request = ["--request", "GET /login?x=1", "-H", "x-user-id: 7"];
    check("explain_authorize", &[&args[..], &request].concat());
    check(
        "explain_authorize_unmet",
        &[&args[..], &["--request", "GET /login"]].concat(),
    );
    check(
        "explain_authorize_no_domain",
        &[
            "explain",
            "--config",
            "authorize.yaml",
            "--request",
            "GET /",
        ],
    );
}
