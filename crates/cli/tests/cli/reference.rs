//! The executable in the place of envoyproxy/ratelimit.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::program::{check_with, command, scratch};
use crate::server::{Server, USER, number, value};

#[test]
fn it_starts_as_the_reference_does_and_says_what_it_does_not_do() {
    let root = scratch("runtime_root");
    let folder = root.join("ratelimit/config/deep");
    fs::create_dir_all(&folder).unwrap();
    // Every file is rules there, whatever its name and however deep.
    let shop = "domain: shop\ndescriptors: [{key: user_id, rate_limit: {unit: year, requests_per_unit: 2}}]\n";
    fs::write(folder.join("shop"), shop).unwrap();
    fs::write(root.join("ratelimit/config/.hidden"), "not rules").unwrap();
    symlink("..", folder.join("circle")).unwrap();
    let variables = [
        ("RUNTIME_ROOT", root.to_str().unwrap()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_REMAINING_HEADER", "X-Left"),
        ("STATSD_HOST", "localhost"),
        ("REDIS_URL", "redis:6379"),
        ("TIDEGATE_STORE_ENGINE", "memory"),
    ];
    let mut server = Server::start_with(&[], &variables);
    assert_eq!(value(&server.banner, "charging"), "every_match");
    assert!(value(&server.banner, "instead of").contains("envoyproxy/ratelimit"));
    let line = server.next_line("not supported: STATSD_HOST");
    assert!(line.contains("scrape /metrics"), "{line}");
    let line = server.next_line("not supported: REDIS_URL");
    assert!(line.contains("memory of this node"), "{line}");
    let answer = server.ask(USER);
    assert_eq!(number(&answer, "x-left"), Some(1), "{answer}");
}

#[test]
fn a_swapped_image_that_shared_counters_says_what_to_do() {
    let variables = [("RUNTIME_ROOT", "data"), ("REDIS_URL", "redis:6379")];
    check_with("reference_redis", &["serve"], &variables);
}

#[test]
fn logs_are_json_if_they_are_asked_to_be() {
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--admin",
        "off",
    ];
    let mut child = command(&args)
        .envs([("LOG_FORMAT", "json"), ("DISABLE_STATS", "false")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
    let mut messages = Vec::new();
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        let message = event["message"].as_str().unwrap().to_owned();
        let is_last = message.starts_with("serving");
        messages.push(message);
        if is_last {
            break;
        }
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        messages[0].starts_with("not supported: DISABLE_STATS"),
        "{messages:?}"
    );
    assert!(
        messages.iter().any(|message| message == "listening"),
        "{messages:?}"
    );
    assert_eq!(output.stdout, b"", "the banner is for people");
}
