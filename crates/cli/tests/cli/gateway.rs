//! The gateway between a client and a server of the test's.

mod certificates;
mod examples;
mod explain;
mod failing;
mod identity;
mod killed;
mod parking;
mod reload;
mod tokens;
pub(crate) mod upstream;
mod websocket;
mod why;

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;

use crate::program::{command, scratch};
use crate::server::{Server, number, value};
use upstream::Upstream;

/// The listeners that the tests of the gateway do not ask.
const NO_OTHERS: [&str; 6] = ["--http", "off", "--grpc", "off", "--admin", "off"];

/// The secret of the examples.
const SECRET: &[u8] = include_bytes!("../../../../examples/gateway/token.secret");

/// An answer of the gateway.
#[derive(Debug)]
struct Answer(String);

// === impl Answer ===

impl Answer {
    fn status(&self) -> u16 {
        let status = self.0.split(' ').nth(1).and_then(|it| it.parse().ok());
        status.unwrap_or_else(|| panic!("no status in {:?}", self.0))
    }

    fn number(&self, header: &str) -> Option<u64> {
        number(&self.0, header)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Starts a gateway in `folder` in front of `upstream`.
fn start(folder: &Path, upstream: &Upstream, args: &[&str]) -> Server {
    let url = upstream.url();
    let front = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let args = [&front[..], &NO_OTHERS, args].concat();
    let mut command = command(&args);
    command.current_dir(folder);
    Server::run(command)
}

/// Sends a request such as `GET /x` with these header lines.
fn ask(server: &Server, request: &str, headers: &[&str]) -> Answer {
    let mut head = format!("{request} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n");
    if request.starts_with("POST") {
        head.push_str("Content-Length: 0\r\n");
    }
    for header in headers {
        write!(head, "{header}\r\n").unwrap();
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Answer(answer)
}

/// A header with a token of these claims, signed with the secret of the examples.
fn token(claims: &str) -> String {
    signed_by(SECRET, "", claims)
}

/// The same, signed with another secret, with more in its header.
fn signed_by(secret: &[u8], header: &str, claims: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim_ascii_end());
    #[expect(clippy::disallowed_methods, reason = "a token has an end")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let payload = format!(r#"{{"exp":{},{claims}}}"#, now.as_secs() + 3_600);
    let head = base64(format!(r#"{{"alg":"HS256"{header}}}"#).as_bytes());
    let signed = format!("{head}.{}", base64(payload.as_bytes()));
    let signature = hmac::sign(&key, signed.as_bytes());
    format!(
        "Authorization: Bearer {signed}.{}",
        base64(signature.as_ref())
    )
}

/// Base64 for URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let digit = bits >> (18 - 6 * place) & 63;
            text.push(char::from(DIGITS[usize::try_from(digit).unwrap()]));
        }
    }
    text
}

#[test]
fn without_rules_each_client_address_is_limited() {
    let upstream = Upstream::start();
    let server = start(&scratch("gateway_alone"), &upstream, &[]);
    let limit = value(&server.banner, "limit");
    assert_eq!(
        limit,
        "for each client address: 50 per second, token_bucket, burst 100"
    );
    let target = value(&server.banner, "gateway");
    assert_eq!(target, format!("all requests to {}", upstream.url()));
    let answer = ask(&server, "GET /a?b=c", &[]);
    assert_eq!(answer.status(), 200, "{answer:?}");
    assert_eq!(answer.number("x-ratelimit-limit"), Some(100));
    assert_eq!(upstream.requests(), ["GET /a?b=c"]);
    let usage = ask(&server, "GET /.tidegate/usage", &[]);
    assert!(usage.0.contains(r#""burst":100"#), "{usage:?}");
}

#[test]
fn rules_for_other_domains_limit_nobody_and_that_is_told() {
    let folder = scratch("gateway_other_domain");
    let rules = "domain: shop\ndescriptors: [{key: a, rate_limit: {unit: day, limit: 1}}]\n";
    let config = "gateway: {routes: [{path: /chat, websocket: {messages: {limit: 20}}}]}\n";
    std::fs::write(folder.join("rules.yaml"), rules).unwrap();
    std::fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let mut server = start(&folder, &upstream, &["--rules", "rules.yaml"]);
    let line = server.next_line("applies no limits");
    assert!(line.contains("no domain `gateway`"), "{line}");
    assert!(
        line.contains("one of: shop; `websocket` of the route `/chat`"),
        "{line}"
    );
}

#[test]
fn a_route_without_descriptors_is_not_limited() {
    let folder = scratch("gateway_unlimited_route");
    let rules = "domain: gateway\n\
                 descriptors: [{key: remote_address, rate_limit: {unit: year, limit: 1}}]\n";
    let routes = "rules: rules.yaml\n\
                  gateway: {routes: [{path: /health, descriptors: []}]}\n";
    std::fs::write(folder.join("rules.yaml"), rules).unwrap();
    std::fs::write(folder.join("tidegate.yaml"), routes).unwrap();
    let upstream = Upstream::start();
    let server = start(&folder, &upstream, &["--config", "tidegate.yaml"]);
    let statuses = ["/a", "/health", "/a", "/health"].map(|path| {
        let answer = ask(&server, &format!("GET {path}"), &[]);
        (answer.status(), answer.number("x-ratelimit-limit"))
    });
    let limited = [(200, Some(1)), (200, None), (429, Some(1)), (200, None)];
    assert_eq!(statuses, limited);
}
