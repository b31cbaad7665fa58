//! Every example in `examples/gateway`, through the real executable.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use tidegate_store_redis::test_util::RedisServer;

use super::upstream::Upstream;
use super::{Answer, ask, start, token};
use crate::program::command;
use crate::server::Server;

const HOUR: u64 = 3_600;

const DAY: u64 = 24 * HOUR;

fn folder(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway");
    examples.join(name)
}

/// The example `name` in front of a server, and that server.
fn serve(name: &str) -> (Server, Upstream) {
    let upstream = Upstream::start();
    (start(&folder(name), &upstream, &[]), upstream)
}

/// The limits of a caller as `usage` tells them for a request such as `GET /x`: limit, window in seconds, remaining.
fn limits(server: &Server, request: &str, headers: &[&str]) -> Vec<[u64; 3]> {
    let (method, path) = request.split_once(' ').unwrap();
    let usage = format!("GET /.tidegate/usage?path={path}&method={method}");
    let answer = ask(server, &usage, headers);
    assert_eq!(answer.status(), 200, "{answer:?}");
    let (_, body) = answer.0.split_once("\r\n\r\n").unwrap();
    let usage: Value = serde_json::from_str(body).unwrap();
    let limits = usage["limits"].as_array().unwrap().iter();
    let number = |limit: &Value, name| limit[name].as_u64().unwrap();
    limits
        .map(|it| ["limit", "window", "remaining"].map(|name| number(it, name)))
        .collect()
}

/// Asks until it is denied, and gives how often it was allowed.
fn ask_until_denied(ask: impl Fn() -> Answer) -> usize {
    // More than any limit that is tested so.
    for allowed in 0..2_000 {
        let answer = ask();
        match answer.status() {
            200 => {}
            429 => {
                assert!(answer.number("retry-after").is_some(), "{answer:?}");
                return allowed;
            }
            other => panic!("{other}: {answer:?}"),
        }
    }
    panic!("never denied");
}

#[test]
fn every_example_is_good_and_has_a_line_in_the_readme() {
    let readme = fs::read_to_string(folder("README.md")).unwrap();
    let mut n_examples = 0;
    for entry in fs::read_dir(folder("")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        n_examples += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("[{name}]({name}/")), "{name}");
        let args = ["check", "rules.yaml", "--config", "tidegate.yaml"];
        let output = command(&args).current_dir(&path).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {said}");
        // The rules of Lyft's documentation are written as books print them.
        assert!(
            name == "lyft" || said.starts_with("valid"),
            "{name}: {said}"
        );
    }
    assert_eq!(n_examples, 14);
}

/// A limit by a claim has no counter for a caller without one, so a token is demanded there.
#[test]
fn limits_by_claim_are_not_evaded_without_a_token() {
    for (name, path) in [
        ("posts-per-user", "/posts"),
        ("posts-per-3-hours", "/posts"),
        ("rewards-per-device", "/rewards"),
        ("failed-payments", "/payments"),
        ("three-buckets", "/likes"),
    ] {
        let (server, upstream) = serve(name);
        let request = format!("POST {path}");
        let forged = token(r#""sub":"ann""#).replace('.', ".e30.");
        for (headers, challenge) in [
            (&[][..], "Bearer"),
            (&["Authorization: Basic YTpi"], "Bearer"),
            (&[&*forged], "Bearer error=\"invalid_token\""),
        ] {
            let answer = ask(&server, &request, headers);
            assert_eq!(answer.status(), 401, "{name}: {answer:?}");
            assert_eq!(answer.header("www-authenticate"), Some(challenge), "{name}");
        }
        assert!(upstream.requests().is_empty(), "{name}");
        let page = [
            "Origin: https://a.example",
            "Access-Control-Request-Method: POST",
        ];
        let preflight = ask(&server, &format!("OPTIONS {path}"), &page);
        assert_eq!(preflight.status(), 200, "{name}: {preflight:?}");
        let anonymous = ask(&server, "GET /", &[]).status();
        // The others demand tokens on one route.
        let expected = if name == "three-buckets" { 401 } else { 200 };
        assert_eq!(anonymous, expected, "{name}");
    }
}

#[test]
fn two_posts_a_second_for_each_user() {
    let (server, _upstream) = serve("posts-per-user");
    let (ann, bob) = (token(r#""sub":"ann""#), token(r#""sub":"bob""#));
    assert_eq!(limits(&server, "POST /posts", &[&ann]), [[2, 1, 2]]);
    let first = ask(&server, "POST /posts", &[&ann]);
    assert_eq!(
        (first.status(), first.number("x-ratelimit-limit")),
        (200, Some(2))
    );
    assert!(ask_until_denied(|| ask(&server, "POST /posts", &[&ann])) >= 1);
    assert_eq!(ask(&server, "POST /posts", &[&bob]).status(), 200);
    let reading = ask(&server, "GET /posts", &[&ann]);
    assert_eq!(
        (reading.status(), reading.number("x-ratelimit-limit")),
        (200, None)
    );
}

#[test]
fn ten_accounts_a_day_for_each_address() {
    let (server, upstream) = serve("accounts-per-address");
    let client = |address: &str| format!("X-Forwarded-For: {address}");
    let (one, other) = (client("203.0.113.7"), client("203.0.113.8"));
    assert_eq!(limits(&server, "POST /accounts", &[&one]), [[10, DAY, 10]]);
    assert_eq!(
        ask_until_denied(|| ask(&server, "POST /accounts", &[&one])),
        10
    );
    assert_eq!(ask(&server, "POST /accounts", &[&other]).status(), 200);
    assert_eq!(upstream.requests().len(), 11);
}

#[test]
fn five_rewards_a_week_for_each_device() {
    let (server, _upstream) = serve("rewards-per-device");
    let (one, other) = (token(r#""device":"d1""#), token(r#""device":"d2""#));
    assert_eq!(limits(&server, "POST /rewards", &[&one]), [[5, 7 * DAY, 5]]);
    assert_eq!(
        ask_until_denied(|| ask(&server, "POST /rewards", &[&one])),
        5
    );
    assert_eq!(ask(&server, "POST /rewards", &[&other]).status(), 200);
}

#[test]
fn three_buckets_for_one_user() {
    let (server, _upstream) = serve("three-buckets");
    let ann = token(r#""sub":"ann""#);
    for (path, limit, window) in [("/posts", 1, 1), ("/friends", 150, DAY), ("/likes", 5, 1)] {
        let request = format!("POST {path}");
        let told = limits(&server, &request, &[&ann]);
        assert_eq!(told, [[limit, window, limit]], "{path}");
        let answer = ask(&server, &request, &[&ann]);
        assert_eq!(answer.number("x-ratelimit-limit"), Some(limit), "{path}");
        assert_eq!(
            answer.number("x-ratelimit-remaining"),
            Some(limit - 1),
            "{path}"
        );
    }
    assert_eq!(
        ask_until_denied(|| ask(&server, "POST /friends", &[&ann])),
        149
    );
}

#[test]
fn three_hundred_posts_in_three_hours() {
    let (server, _upstream) = serve("posts-per-3-hours");
    let ann = token(r#""sub":"ann""#);
    let told = limits(&server, "POST /posts", &[&ann]);
    assert_eq!(told, [[300, 3 * HOUR, 300]]);
    assert_eq!(
        ask_until_denied(|| ask(&server, "POST /posts", &[&ann])),
        300
    );
}

#[test]
fn ten_a_minute_of_five_hundred_an_hour() {
    let (server, _upstream) = serve("hour-and-minute");
    let all = limits(&server, "GET /", &[]);
    assert_eq!(all, [[500, HOUR, 500], [10, 60, 10]]);
    let first = ask(&server, "GET /", &[]);
    assert_eq!(first.number("x-ratelimit-limit"), Some(10));
    let n_allowed = 1 + ask_until_denied(|| ask(&server, "GET /", &[])) as u64;
    assert!(n_allowed >= 10);
    // Denied requests consume none of the hour.
    let remaining = limits(&server, "GET /", &[])[0][2];
    assert!((500 - n_allowed..500).contains(&remaining), "{remaining}");
}

#[test]
fn a_hundred_a_minute_and_a_thousand_an_hour() {
    let (server, _upstream) = serve("minute-and-hour");
    let all = limits(&server, "GET /", &[]);
    assert_eq!(all, [[100, 60, 100], [1_000, HOUR, 1_000]]);
    let n_allowed = ask_until_denied(|| ask(&server, "GET /", &[])) as u64;
    assert!(n_allowed >= 100);
    let remaining = limits(&server, "GET /", &[])[1][2];
    assert!(
        (1_000 - n_allowed..1_000).contains(&remaining),
        "{remaining}"
    );
}

#[test]
fn the_plan_is_in_the_token() {
    let (server, _upstream) = serve("plans");
    let caller = |sub: &str, plan: &str| token(&format!(r#""sub":"{sub}","plan":"{plan}""#));
    let (free, premium) = (caller("ann", "free"), caller("bob", "premium"));
    assert_eq!(limits(&server, "GET /", &[&free]), [[10, DAY, 10]]);
    assert_eq!(limits(&server, "GET /", &[&premium]), [[100, DAY, 100]]);
    assert_eq!(ask_until_denied(|| ask(&server, "GET /", &[&free])), 10);
    assert_eq!(ask_until_denied(|| ask(&server, "GET /", &[&premium])), 100);
    let admin = caller("eve", "admin");
    for _ in 0..150 {
        assert_eq!(ask(&server, "GET /", &[&admin]).status(), 200);
    }
    assert_eq!(
        ask(&server, "GET /", &[]).status(),
        403,
        "no token, no plan"
    );
    let forged = free.replace('.', ".e30.");
    assert_eq!(ask(&server, "GET /", &[&forged]).status(), 401);
}

#[test]
fn one_limit_for_everybody() {
    let (server, _upstream) = serve("global");
    let all = limits(&server, "GET /", &[]);
    assert_eq!(all, [[10_000, 1, 10_000]]);
    let answer = ask(&server, "GET /", &["X-Forwarded-For: 203.0.113.7"]);
    assert_eq!(answer.number("x-ratelimit-limit"), Some(10_000));
}

/// Two servers allow 30 a second together, so only the limit of each server can deny there. Of three, which would allow 45, all
/// servers together allow 40.
#[test]
fn each_server_and_all_servers_have_a_limit() {
    let redis = RedisServer::start();
    let upstream = Upstream::start();
    let url = format!("redis://{}", redis.address());
    let node = || {
        let args = ["--store", &url, "--max-memory", "8MiB"];
        start(&folder("node-and-fleet"), &upstream, &args)
    };
    assert_eq!(denying_limits(&[node(), node()]), ["this server"]);
    let of_three = denying_limits(&[node(), node(), node()]);
    assert!(of_three.contains(&"all servers"), "{of_three:?}");
}

/// Asks all nodes without a pause until each of them has denied a hundred requests, and gives the limits that denied them.
fn denying_limits(nodes: &[Server]) -> Vec<&'static str> {
    let n_done = AtomicUsize::new(0);
    let ask_node = |node: &Server| {
        let mut denials = Vec::new();
        // Other nodes may be slower, and all must be busy until the end.
        while n_done.load(Ordering::Relaxed) < nodes.len() {
            let answer = ask(node, "GET /", &[]);
            if answer.status() == 429 {
                denials.push(answer);
                n_done.fetch_add(usize::from(denials.len() == 100), Ordering::Relaxed);
            }
        }
        denials
    };
    let denials: Vec<Answer> = thread::scope(|scope| {
        let asking: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(|| ask_node(node)))
            .collect();
        asking
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    let is_denying = |name: &&str| {
        let (first, second) = (format!("[\"{name}\""), format!(",\"{name}\"]"));
        denials
            .iter()
            .any(|it| it.0.contains(&first) || it.0.contains(&second))
    };
    ["this server", "all servers"]
        .into_iter()
        .filter(is_denying)
        .collect()
}

#[test]
fn the_rules_of_lyft_hold() {
    let (server, _upstream) = serve("lyft");
    assert_eq!(limits(&server, "GET /marketing", &[]), [[5, DAY, 5]]);
    assert_eq!(limits(&server, "GET /login", &[]), [[5, 60, 5]]);
    assert_eq!(ask_until_denied(|| ask(&server, "GET /marketing", &[])), 5);
    assert!(ask_until_denied(|| ask(&server, "GET /login", &[])) >= 5);
    assert_eq!(ask(&server, "GET /other", &[]).status(), 200);
}

#[test]
fn pages_are_for_subscribers() {
    let (server, upstream) = serve("subscribers");
    let page = |headers: &[&str]| ask(&server, "GET /magazine/1", headers).status();
    assert_eq!(page(&[]), 403);
    assert_eq!(page(&[&token(r#""plan":"free""#)]), 403);
    assert_eq!(page(&[&token(r#""plan":"subscriber""#)]), 200);
    assert_eq!(ask(&server, "GET /", &[]).status(), 200);
    assert_eq!(upstream.requests(), ["GET /magazine/1", "GET /"]);
}

#[test]
fn address_and_user_are_limited_together() {
    let (server, upstream) = serve("address-and-user");
    let (ann, bob) = (token(r#""sub":"ann""#), token(r#""sub":"bob""#));
    let both = [[20, DAY, 20], [10, DAY, 10]];
    assert_eq!(limits(&server, "GET /", &[&ann]), both);
    assert_eq!(ask_until_denied(|| ask(&server, "GET /", &[&ann])), 10);
    assert_eq!(ask_until_denied(|| ask(&server, "GET /", &[&bob])), 10);
    let before = upstream.requests().len();
    assert_eq!(ask_until_denied(|| ask(&server, "POST /login", &[])), 3);
    assert_eq!(
        upstream.requests().len() - before,
        3,
        "no password is looked at"
    );
}

#[test]
fn declined_payments_are_counted_and_others_refunded() {
    let (server, upstream) = serve("failed-payments");
    let pay = |user: &str, status: &str| {
        let token = token(&format!(r#""sub":"{user}""#));
        let wanted = format!("x-answer: {status}");
        ask(&server, "POST /payments", &[&token, &wanted]).status()
    };
    for _ in 0..10 {
        assert_eq!(pay("ann", "200"), 200, "a good payment counts nothing");
    }
    let declined: Vec<u16> = (0..4).map(|_| pay("ann", "402")).collect();
    assert_eq!(declined, [402, 402, 402, 429]);
    assert_eq!(
        pay("ann", "200"),
        429,
        "whoever had three is denied before the payment"
    );
    assert_eq!(upstream.requests().len(), 13);
}

/// Every attempt is charged before it is sent on, so that no crowd comes through while answers are awaited.
#[test]
fn of_a_hundred_payments_at_once_three_are_declined() {
    let (server, upstream) = serve("failed-payments");
    let token = token(r#""sub":"bob""#);
    let pay = || ask(&server, "POST /payments", &[&token, "x-answer: 402"]).status();
    let statuses = thread::scope(|scope| {
        let payments: Vec<_> = (0..100).map(|_| scope.spawn(pay)).collect();
        let statuses = payments.into_iter().map(|it| it.join().unwrap());
        statuses.collect::<Vec<u16>>()
    });
    let n_with = |status| statuses.iter().filter(|it| **it == status).count();
    assert_eq!((n_with(402), n_with(429)), (3, 97));
    assert_eq!(upstream.requests().len(), 3);
}
