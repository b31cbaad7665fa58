//! Callers that prove who they are: token keys behind a URL, API keys.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::CertifiedKey;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream};

use super::reload::{KEPT, RELOADED, replace};
use super::upstream::Upstream;
use super::{NO_OTHERS, SECRET, ask, base64, signed_by, start, token};
use crate::program::{command, scratch};
use crate::server::Server;

/// A server of token keys, over TLS. It ends with the process.
struct KeyServer {
    port: u16,
    state: Arc<Mutex<KeyServerState>>,
}

struct KeyServerState {
    status: u16,
    body: String,
    n_requests: usize,
}

// === impl KeyServer ===

impl KeyServer {
    /// Answers with `body`.
    fn start(tls: &Arc<ServerConfig>, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(KeyServerState {
            status: 200,
            body: body.to_owned(),
            n_requests: 0,
        }));
        let server = Self {
            port,
            state: Arc::clone(&state),
        };
        let tls = Arc::clone(tls);
        thread::spawn(move || {
            for socket in listener.incoming() {
                answer_one(&mut socket.unwrap(), &tls, &state);
            }
        });
        server
    }

    /// Answers with this status and body from now on.
    fn answer(&self, status: u16, body: &str) {
        let mut state = self.state.lock().unwrap();
        state.status = status;
        body.clone_into(&mut state.body);
    }

    fn n_requests(&self) -> usize {
        self.state.lock().unwrap().n_requests
    }
}

fn answer_one(socket: &mut TcpStream, tls: &Arc<ServerConfig>, state: &Mutex<KeyServerState>) {
    let mut connection = ServerConnection::new(Arc::clone(tls)).unwrap();
    let mut stream = Stream::new(&mut connection, socket);
    let mut head = [0; 4096];
    // A client that has left sends nothing.
    if stream.read(&mut head).is_ok_and(|n_bytes| n_bytes > 0) {
        let mut state = state.lock().unwrap();
        state.n_requests += 1;
        let KeyServerState { status, body, .. } = &*state;
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

/// A certificate for `localhost`; `folder` gets it as `ca.pem`.
fn certificate(folder: &Path) -> Arc<ServerConfig> {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("ca.pem"), cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

/// A set with the secret of the examples as its only key, with this id.
fn key_set(id: &str) -> String {
    let secret = base64(SECRET.trim_ascii_end());
    format!(r#"{{"keys": [{{"kty": "oct", "kid": "{id}", "k": "{secret}"}}]}}"#)
}

/// The status for a token of `ann`, signed with the key of this id.
fn status_by_key(server: &Server, key: &str) -> u16 {
    let header = format!(r#","kid":"{key}""#);
    let token = signed_by(SECRET, &header, r#""sub":"ann""#);
    ask(server, "GET /", &[&token]).status()
}

/// A gateway for callers with a token, whose keys are at a URL. More settings of identities follow those of tokens.
fn start_with_keys(folder: &Path, upstream: &Upstream, keys: &KeyServer, more: &str) -> Server {
    let port = keys.port;
    let config = format!(
        "gateway:\n  routes:\n    - {{path: /plan, require: {{plan: [premium]}}}}\n    - {{require: {{\"claim:sub\": [ann]}}}}\n\
         identity:\n  tokens: {{jwks: \"https://localhost:{port}/keys\", issuer: any, audience: any, plan_claim: plan}}\n{more}"
    );
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let url = upstream.url();
    let args = ["serve", "--gateway", "127.0.0.1:0", "--upstream", &url];
    let mut command = command(&[&args[..], &NO_OTHERS].concat());
    command
        .current_dir(folder)
        .env("SSL_CERT_FILE", folder.join("ca.pem"));
    Server::run(command)
}

#[test]
fn token_keys_are_fetched_from_a_url() {
    let folder = scratch("gateway_jwks");
    let keys = KeyServer::start(&certificate(&folder), &key_set("k1"));
    let upstream = Upstream::start();
    let server = start_with_keys(&folder, &upstream, &keys, "");
    let status = |key: &str, sub: &str| {
        let header = format!(r#","kid":"{key}""#);
        let token = signed_by(SECRET, &header, &format!(r#""sub":"{sub}""#));
        ask(&server, "GET /", &[&token]).status()
    };
    assert_eq!(status("k1", "ann"), 200);
    assert_eq!(status("k1", "bob"), 403);
    assert_eq!(status("k2", "ann"), 401, "a key that is not in the set");
    assert_eq!(ask(&server, "GET /", &[]).status(), 403, "no token");
}

#[test]
fn without_token_keys_no_token_is_good() {
    let folder = scratch("gateway_no_jwks");
    // It is no set of keys.
    let keys = KeyServer::start(&certificate(&folder), "{}");
    let upstream = Upstream::start();
    let mut server = start_with_keys(&folder, &upstream, &keys, "");
    let line = server.next_line("cannot fetch token keys");
    assert!(
        line.contains("until they are there, no token is good"),
        "{line}"
    );
    let token = signed_by(SECRET, "", r#""sub":"ann""#);
    assert_eq!(ask(&server, "GET /", &[&token]).status(), 401);
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_reload_whose_token_keys_cannot_be_fetched_keeps_the_keys_in_force() {
    let folder = scratch("gateway_other_jwks");
    let tls = certificate(&folder);
    let keys = KeyServer::start(&tls, &key_set("k1"));
    let others = KeyServer::start(&tls, "{}");
    let upstream = Upstream::start();
    let mut server = start_with_keys(&folder, &upstream, &keys, "");
    let path = folder.join("tidegate.yaml");
    let config = fs::read_to_string(&path).unwrap();
    replace(
        &path,
        &config.replace(&keys.port.to_string(), &others.port.to_string()),
    );
    let line = server.next_line(KEPT);
    let reason = format!(
        "cannot fetch token keys from https://localhost:{}/keys: not a JWK set",
        others.port
    );
    assert!(line.contains(&reason), "{line}");
    assert_eq!(status_by_key(&server, "k1"), 200, "the keys before stay");
    // The file is the same, but now the keys can be fetched.
    others.answer(200, &key_set("k2"));
    server.next_line(RELOADED);
    assert_eq!(status_by_key(&server, "k2"), 200);
    assert_eq!(status_by_key(&server, "k1"), 401);
}

/// Takes a minute, because that is the promise.
#[test]
fn unknown_keys_lead_to_one_fetch_a_minute_and_the_last_good_keys_stay() {
    let folder = scratch("gateway_unknown_keys");
    let keys = KeyServer::start(&certificate(&folder), &key_set("k1"));
    let upstream = Upstream::start();
    let mut server = start_with_keys(&folder, &upstream, &keys, "");
    #[expect(
        clippy::disallowed_methods,
        reason = "the real program cannot move its clock"
    )]
    let started = Instant::now();
    keys.answer(503, "");
    for _ in 0..3 {
        assert_eq!(status_by_key(&server, "k2"), 401);
        server.send("-HUP");
        server.next_line(RELOADED);
    }
    server.next_line("cannot fetch token keys: status 503");
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_secs(59), "{elapsed:?}");
    assert_eq!(keys.n_requests(), 2, "one at start");
    assert_eq!(status_by_key(&server, "k1"), 200);
}

/// A fault in a file that is being edited must not keep new keys out: tokens of the old ones would be all that is good.
#[test]
fn new_token_keys_come_into_force_beside_a_broken_table() {
    let folder = scratch("gateway_rotation");
    // There are no keys yet, so that they are fetched again within seconds.
    let keys = KeyServer::start(&certificate(&folder), "{}");
    let table = "  api_keys: {file: keys.yaml, hash_key_file: hash.key}\n";
    write_api_keys(&folder, "ann", "key-of-ann");
    let upstream = Upstream::start();
    let mut server = start_with_keys(&folder, &upstream, &keys, table);
    assert_eq!(status_by_key(&server, "k1"), 401);
    fs::write(folder.join("keys.yaml"), "keys: [{id: half").unwrap();
    server.next_line("settings reload failed; the previous settings stay in force");
    keys.answer(200, &key_set("k1"));
    server.next_line("fetched new token keys");
    assert_eq!(status_by_key(&server, "k1"), 200);
    let by_key = ask(&server, "GET /plan", &["X-Api-Key: key-of-ann"]);
    assert_eq!(by_key.status(), 200, "the last good table stays");
}

#[test]
fn every_role_in_a_token_counts() {
    let folder = scratch("gateway_roles");
    fs::write(folder.join("token.secret"), SECRET).unwrap();
    let config = "gateway:\n  routes:\n\
                  \x20   - {path: /edit, require: {plan: [editor]}}\n\
                  \x20   - {deny: {\"claim:roles\": [banned]}}\n\
                  identity: {tokens: {secret_file: token.secret, issuer: any, audience: any, plan_claim: roles}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let server = start(&folder, &upstream, &[]);
    let status = |path: &str, roles: &str| {
        let token = token(&format!(r#""roles":{roles}"#));
        ask(&server, &format!("GET {path}"), &[&token]).status()
    };
    assert_eq!(status("/edit", r#"["author","editor"]"#), 200);
    assert_eq!(status("/edit", r#"["author"]"#), 403);
    assert_eq!(status("/", r#"["author","editor"]"#), 200);
    assert_eq!(status("/", r#"["author","banned"]"#), 403);
    assert_eq!(status("/", r#""banned""#), 403);
}

/// Without a limit by address, forged tokens would be checked at any rate.
#[test]
fn of_one_address_few_bad_tokens_are_checked() {
    let folder = scratch("gateway_forged_tokens");
    fs::write(folder.join("token.secret"), SECRET).unwrap();
    let config = "gateway: {descriptors: [{user: \"claim:sub\"}]}\n\
                  identity: {tokens: {secret_file: token.secret, issuer: any, audience: any}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let server = start(&folder, &upstream, &[]);
    let good = token(r#""sub":"ann""#);
    let forged = signed_by(&[7; 32], "", r#""sub":"ann""#);
    assert_eq!(ask(&server, "GET /", &[&good]).status(), 200);
    let mut n_checked = 0;
    let denied = loop {
        let answer = ask(&server, "GET /", &[&forged]);
        if answer.status() != 401 {
            break answer;
        }
        n_checked += 1;
        assert!(n_checked < 10_000, "any number is checked");
    };
    assert_eq!(denied.status(), 429);
    assert_eq!(denied.number("retry-after"), Some(1));
    assert!(n_checked >= 100, "{n_checked}");
    assert_eq!(ask(&server, "GET /", &[&good]).status(), 200);
    assert_eq!(ask(&server, "GET /", &[]).status(), 200, "no token");
}

/// Writes a table with one API key, whose plan is `premium`, and the key of its hashes, where it is not there yet.
pub(super) fn write_api_keys(folder: &Path, id: &str, api_key: &str) {
    let hash_key = "0123456789abcdef0123456789abcdef\n";
    if !folder.join("hash.key").exists() {
        fs::write(folder.join("hash.key"), hash_key).unwrap();
    }
    let mut hashing = command(&["hash-key", "--key-file", "hash.key"]);
    hashing
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut hashing = hashing.spawn().unwrap();
    writeln!(hashing.stdin.take().unwrap(), "{api_key}").unwrap();
    let output = hashing.wait_with_output().unwrap();
    let hash = String::from_utf8(output.stdout).unwrap();
    let hash = hash.trim();
    let table = format!("keys:\n  - {{id: {id}, plan: premium, hash: \"{hash}\"}}\n");
    replace(&folder.join("keys.yaml"), &table);
}

#[test]
fn api_keys_have_plans() {
    let folder = scratch("gateway_api_keys");
    write_api_keys(&folder, "ann", "key-of-ann");
    let config = "gateway: {routes: [{require: {plan: [premium]}}]}\n\
                  identity: {api_keys: {file: keys.yaml, hash_key_file: hash.key}}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    let upstream = Upstream::start();
    let server = start(&folder, &upstream, &[]);
    let status = |key: &str| ask(&server, "GET /", &[&format!("X-Api-Key: {key}")]).status();
    assert_eq!(status("key-of-ann"), 200);
    assert_eq!(status("key-of-bob"), 403);
}

#[test]
fn proxies_that_ask_have_the_same_identities() {
    let folder = scratch("authorize_labels");
    let rules = "domain: shop\ndescriptors: [{key: site, rate_limit: {unit: year, limit: 7}}]\n";
    fs::write(folder.join("rules.yaml"), rules).unwrap();
    let config = "rules: rules.yaml\nidentity: {labels: {site: sites.csv}}\n\
                  authorize: {domain: shop, descriptors: [{site: \"label:site\"}]}\n";
    fs::write(folder.join("tidegate.yaml"), config).unwrap();
    fs::write(folder.join("sites.csv"), "10.0.0.0/8,office\n").unwrap();
    let args = [
        "serve",
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "off",
        "--admin",
        "off",
    ];
    let mut command = command(&args);
    command.current_dir(&folder);
    let mut server = Server::run(command);
    let limit = |server: &Server| {
        let client = ["X-Forwarded-For: 203.0.113.7", "X-Forwarded-Uri: /"];
        ask(server, "GET /v1/authorize", &client).number("x-ratelimit-limit")
    };
    assert_eq!(limit(&server), None);
    fs::write(folder.join("sites.csv"), "203.0.113.0/24,office\n").unwrap();
    server.next_line("reloaded the settings");
    assert_eq!(limit(&server), Some(7));
}
