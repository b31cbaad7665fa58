//! `tidegate serve`, asked over real sockets.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use crate::program::{check, command};

/// A running server. Killed when the test ends, however it ends.
struct Server {
    child: Child,
    banner: Vec<String>,
    address: String,
    errors: Lines<BufReader<ChildStderr>>,
}

// === impl Server ===

impl Server {
    /// Starts a server on a free port and reads its banner up to the line to try.
    fn start(args: &[&str]) -> Self {
        let args = [&["serve", "--http", "127.0.0.1:0"], &OTHERS[..], args].concat();
        let mut command = command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut banner = Vec::new();
        while !banner
            .last()
            .is_some_and(|line: &String| line.contains("curl "))
        {
            banner.push(lines.next().expect("a banner with a line to try"));
        }
        let address = value(&banner, "listening").replace("http://", "");
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            banner,
            address,
            errors,
        }
    }

    /// Posts `body` to `/json` and gives the whole answer.
    fn ask(&self, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head =
            format!("POST /json HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn stop(mut self, signal: &str) -> ExitStatus {
        self.send(signal);
        self.child.wait().unwrap()
    }

    /// Has the rules read again and gives the last line it says of that.
    fn reload(&mut self) -> String {
        self.send("-HUP");
        let mut lines = self.errors.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains("reloaded")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a line of the banner.
fn value<'a>(banner: &'a [String], name: &str) -> &'a str {
    let line = banner
        .iter()
        .find(|line| line.trim_start().starts_with(name));
    line.unwrap_or_else(|| panic!("no {name} in {banner:?}"))
        .trim_start()[name.len()..]
        .trim()
}

/// The number in a header of an answer.
fn number(answer: &str, header: &str) -> Option<u64> {
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix(header)?.strip_prefix(": "))?;
    Some(line.parse().unwrap())
}

/// Free ports for the listeners that a test does not ask.
const OTHERS: [&str; 4] = ["--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

const USER: &str =
    r#"{"domain": "shop", "descriptors": [{"entries": [{"key": "user_id", "value": "7"}]}]}"#;

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
fn a_hangup_reloads_the_rules_and_keeps_the_counters() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("changing.yaml");
    let put = |limit: &str| {
        let rule =
            format!("{{key: user_id, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}");
        fs::write(&path, format!("domain: shop\ndescriptors: [{rule}]\n")).unwrap();
    };
    put("1");
    let mut server = Server::start(&["--rules", path.to_str().unwrap()]);
    assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    assert!(server.ask(USER).starts_with("HTTP/1.1 429"));
    put("2");
    let loaded = "reloaded the rules: 1 domain, 1 rule, 1 limit";
    assert_eq!(server.reload(), loaded);
    assert!(server.ask(USER).starts_with("HTTP/1.1 200"));
    put("none");
    let kept = "the rules were not reloaded; those before stay in force";
    assert_eq!(server.reload(), kept);
    let answer = server.ask(USER);
    assert_eq!(number(&answer, "x-ratelimit-limit"), Some(2), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
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
