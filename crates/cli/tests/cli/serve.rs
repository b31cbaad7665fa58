//! `tidegate serve`, asked over real sockets.

use std::fmt::Write as _;
use std::fs;

use crate::program::{check, command, run, scratch};
use crate::server::{OTHERS, Server, USER, number, value};

#[test]
fn the_banner_says_what_is_loaded_and_the_line_to_try_works() {
    let server = Server::start(&[]);
    assert_eq!(
        server.banner[0],
        concat!("tidegate ", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(value(&server.banner, "domains"), "example");
    assert_eq!(
        value(&server.banner, "counters"),
        "in memory, at most 256 MiB"
    );
    let curl = server.banner.last().unwrap();
    assert!(
        curl.contains(&format!("curl -i http://{}/json -d '", server.address)),
        "{curl}"
    );
    let (_, body) = curl.trim_end_matches('\'').split_once('\'').unwrap();
    let answer = server.ask(body);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("currentLimit"), "{answer}");
}

#[test]
fn a_caller_over_the_limit_is_refused_and_told_when_to_come_again() {
    let server = Server::start(&["--rules", "valid.yaml"]);
    for remaining in [1, 0] {
        let answer = server.ask(USER);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(number(&answer, "x-ratelimit-remaining"), Some(remaining));
    }
    let answer = server.ask(USER);
    assert!(
        answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{answer}"
    );
    assert_eq!(number(&answer, "x-ratelimit-limit"), Some(2));
    // The log counts in grains, so a wait may be a little longer than what is left of the day.
    let wait = number(&answer, "retry-after").unwrap();
    assert!(
        (80_000..=86_410).contains(&wait),
        "a wait of {wait} s for 2 in any day"
    );
    assert_eq!(number(&answer, "x-ratelimit-retry-after"), Some(wait));
    assert!(answer.contains(r#""overallCode":"OVER_LIMIT""#), "{answer}");
    assert!(server.ask("{}").starts_with("HTTP/1.1 400 Bad Request\r\n"));
}

#[test]
fn flags_are_heeded() {
    let args = ["--rules", "valid.yaml", "valid_too.yaml", "--merge-domains"];
    let more = ["--max-memory", "8MiB", "--charging", "every_match"];
    let server = Server::start(&[&args[..], &more].concat());
    assert_eq!(value(&server.banner, "rules"), "valid.yaml, valid_too.yaml");
    assert_eq!(
        value(&server.banner, "loaded"),
        "1 domain, 4 rules, 4 limits"
    );
    assert_eq!(value(&server.banner, "charging"), "every_match");
    assert_eq!(
        value(&server.banner, "counters"),
        "in memory, at most 8 MiB"
    );
    // The first refuses always; only under every_match is the second charged for it.
    let both = r#"{"domain": "shop", "descriptors": [
        {"entries": [{"key": "closed", "value": ""}]}, {"entries": [{"key": "user_id", "value": "7"}]}]}"#;
    assert!(server.ask(both).starts_with("HTTP/1.1 429"));
    assert_eq!(number(&server.ask(USER), "x-ratelimit-remaining"), Some(0));
}

#[test]
fn it_stops_when_it_is_told_to() {
    for signal in ["-TERM", "-INT"] {
        let status = Server::start(&[]).stop(signal);
        assert_eq!(status.code(), Some(0), "{signal}");
    }
}

#[test]
fn what_cannot_be_served_says_why() {
    check("serve_unreadable", &["serve", "--rules", "missing.yaml"]);
    check("serve_faults", &["serve", "--rules", "faults.yaml"]);
    // More than any machine has addresses for.
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--max-memory",
        "1000000000GiB",
    ];
    check("serve_without_memory", &args);
}

/// Rules of more pairs of algorithm and window than the store can tell apart: a large limit has a form of its own.
pub(crate) fn too_many_windows() -> String {
    let mut rules = "domain: shop\ndescriptors:\n".to_owned();
    for minutes in 1..=512 {
        for (size, limit) in [("small", 2), ("large", 1_u64 << 40)] {
            let rate_limit =
                format!("{{limit: {limit}, window: {minutes}m, algorithm: sliding_counter}}");
            writeln!(
                rules,
                "  - {{key: {size}{minutes}, rate_limit: {rate_limit}}}"
            )
            .unwrap();
        }
    }
    rules
}

/// Rules whose limits memory cannot count stop the start before anything says that it serves.
#[test]
fn rules_that_memory_cannot_count_stop_the_start() {
    let file = scratch("serve_unfit").join("rules.yaml");
    fs::write(&file, too_many_windows()).unwrap();
    let serve = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--rules",
        file.to_str().unwrap(),
    ];
    let run = run(&[&serve[..], &OTHERS[..]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    // Warnings about rules that are not in force would be of no use.
    let error = "error: the limits need more than the 1022 pairs of algorithm and window";
    assert!(run.stderr.starts_with(error), "{}", run.stderr);
}

#[test]
fn an_address_in_use_says_what_to_do() {
    let server = Server::start(&[]);
    let args = [&["serve", "--http", &server.address], &OTHERS[..]].concat();
    let output = command(&args).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let start = format!("error: cannot listen on {}: ", server.address);
    assert!(stderr.starts_with(&start), "{stderr}");
    assert!(
        stderr.ends_with("; choose another one with --http\n"),
        "{stderr}"
    );
}
